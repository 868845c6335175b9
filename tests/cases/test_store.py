"""Faults that people met in what is kept: sizes, kinds of values, characters, times (table: README.md)."""

from __future__ import annotations

import ast
import hashlib
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final
from urllib.parse import unquote

import pytest

from tests.support.conversations import ROUNDTRIP_VALUES, noise, noise_of_three_bytes
from tests.support.house import LAPTOP, PHONE, WORKER, Frame, House, message_event, text_part
from tests.support.moto_table import REGION, TABLE, buckets_of, moto_clients
from tests.support.transfers import as_json, export, read_all, read_parts, send_large, upload
from tests.unit.threadkeep.stores.test_warm_dynamodb import ITEM_BYTES_MAX, item_bytes
from threadkeep.domain import times
from threadkeep.domain.bounds import UPLOAD_BYTES_MAX
from threadkeep.schema import PARTITION_KEY, SORT_KEY
from threadkeep.stores import table_keys
from threadkeep.stores.bodies_s3 import BodiesS3
from threadkeep.stores.warm_dynamodb import WarmDynamoDB

LAMBDAS: Final = Path(__file__).parents[2] / "lambdas"
RFC_3339: Final = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z")
SAFE_MAX: Final = 2**53 - 1
"""The greatest whole number that JavaScript holds with all before it."""


class Stored:
    """A house whose table and bucket are moto's, so that an item has to be one that DynamoDB takes."""

    def __init__(self, house: House, table: Any, bucket: Any) -> None:
        self.house = house
        self.table = table
        house.replace(warm=WarmDynamoDB(table, TABLE, BodiesS3(buckets_of(bucket), REGION)))
        self.conversation = house.conversation()

    def item(self, message: str) -> dict[str, Any]:
        """A message as it lies in the table."""
        key = {PARTITION_KEY: {"S": f"acme#{self.conversation}"}, SORT_KEY: {"S": table_keys.message(message)}}
        item: dict[str, Any] = self.table.get_item(TableName=TABLE, Key=key)["Item"]
        return item


@pytest.fixture
def stored(house: House) -> Iterator[Stored]:
    with moto_clients() as (table, bucket):
        yield Stored(house, table, bucket)


# --- sizes ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "parts",
    [
        pytest.param([text_part(noise(399 * 1_024))], id="399 KB of ASCII"),
        pytest.param([text_part(noise_of_three_bytes(200_000))], id="200,000 characters of three bytes"),
        pytest.param(
            [
                {"type": "tool_result", "call_id": str(number), "output": noise(60 * 1_024, number)}
                for number in range(20)
            ],
            id="20 tool results of 60 KB",
        ),
    ],
)
def test_a31_what_no_item_can_hold_is_kept_whole_all_the_same(stored: Stored, parts: list[Frame]) -> None:
    """A31: "Item size has exceeded": a long input is shown and never stored."""
    sent = send_large(stored.house, stored.conversation, parts)
    assert sent["bytes"] == len(as_json(parts))  # counted as they lie there, not in characters
    assert item_bytes(stored.item(sent["id"])) < ITEM_BYTES_MAX
    assert as_json(read_parts(stored.house, stored.conversation, sent["id"])) == as_json(parts)


def test_a32_an_attachment_is_an_object_that_the_message_points_to(stored: Stored) -> None:
    """A32: the bytes of an image lie in the item of the message."""
    house = stored.house
    image = noise(3 * 1024 * 1024).encode()
    named = {"type": "blob", "media_type": "image/png"} | upload(house, stored.conversation, image)
    sent = house.message(stored.conversation, parts=[named])
    assert item_bytes(stored.item(sent)) < 1_024
    (shown,) = house.ok(LAPTOP, "message.list", conversation=stored.conversation)["messages"]
    assert shown["parts"] == [named]
    link = house.ok(LAPTOP, "blob.get", conversation=stored.conversation, blob=named["ref"])["download"]
    assert house.uploads.objects[unquote(link["url"].removeprefix("memory:"))] == image


def test_a32_above_the_limit_it_is_refused_with_the_limit_and_nothing_is_kept(stored: Stored) -> None:
    """A32: too large an image takes the whole conversation with it."""
    house = stored.house
    digest = hashlib.sha256(b"").hexdigest()
    refused = house.say(
        PHONE, "blob.create", conversation=stored.conversation, bytes=UPLOAD_BYTES_MAX + 1, sha256=digest
    )
    assert (refused["code"], refused["retryable"]) == ("too_large", False)
    assert str(UPLOAD_BYTES_MAX) in refused["message"]
    assert house.uploads.objects == {}
    house.message(stored.conversation)


def test_a33_fifty_turns_take_fifty_times_what_one_takes(stored: Stored) -> None:
    """A33: each run stores all former messages again."""
    house = stored.house
    parent: str | None = None
    sizes: list[int] = []
    for number in range(50):
        question = house.message(stored.conversation, parent, text=noise(250, number))
        place = house.stream(stored.conversation, question)
        place["offset"] = house.ok(WORKER, "stream.append", **place, ops=[["text", 0, noise(1_500, number)]])["offset"]
        parent = house.ok(WORKER, "stream.close", **place, status="complete")["message"]["id"]
        sizes.append(item_bytes(stored.item(question)) + item_bytes(stored.item(str(parent))))
    assert sizes[49] <= 1.2 * sizes[4]
    answer = stored.table.scan(TableName=TABLE)
    assert "LastEvaluatedKey" not in answer
    beside = sum(item_bytes(item) for item in answer["Items"]) - sum(sizes)
    assert beside < 1_024  # the head and the pulse


# --- kinds of values ------------------------------------------------------------------------------------------


def test_a34_floats_are_taken_and_come_back(stored: Stored) -> None:
    """A34: a float in the metadata is refused by the driver, after the answer was shown."""
    house = stored.house
    metadata = json.loads(ROUNDTRIP_VALUES.read_text())
    sent = house.message(stored.conversation, metadata=metadata, parts=[{"type": "data"} | metadata])
    (shown,) = house.ok(LAPTOP, "message.list", conversation=stored.conversation)["messages"]
    assert shown["id"] == sent
    assert shown["metadata"] == metadata
    assert shown["parts"] == [{"type": "data"} | metadata]
    owned = house.conversation(metadata=metadata)
    assert house.ok(LAPTOP, "conversation.get", conversation=owned)["conversation"]["metadata"] == metadata


def test_a35_numbers_stay_numbers_of_their_kind_with_every_digit(stored: Stored) -> None:
    """A35: numbers come back as text, or as others."""
    written = ROUNDTRIP_VALUES.read_text()
    said = as_json(
        {
            "action": "message.create",
            "ref": "r",
            "conversation": stored.conversation,
            "parent": None,
            "role": "user",
            "parts": [text_part("hello")],
        }
    )
    assert stored.house.post(PHONE, f'{said[:-1].decode()},"metadata":{written}}}')["type"] == "message.create.ok"
    asked = as_json({"action": "message.list", "ref": "r", "conversation": stored.conversation}).decode()
    answer = stored.house.invoke(message_event(LAPTOP, asked))["body"]
    shown = _with_numbers_as_written(answer)["messages"][0]["metadata"]
    assert shown == _with_numbers_as_written(written)
    assert shown["big_int"] == ("number", "9007199254740993")
    assert (shown["one_int"], shown["one_float"]) == (("number", "1"), ("number", "1.0"))


def _with_numbers_as_written(text: str) -> Any:
    """JSON whose numbers are told from texts and keep their digits."""
    return json.loads(text, parse_float=lambda digits: ("number", digits), parse_int=lambda digits: ("number", digits))


@pytest.mark.parametrize("value", [{"tags": []}, {"tags": [""]}, {"": "of no name"}, {"": {}}], ids=str)
def test_a36_empty_lists_texts_and_names_come_back(stored: Stored, value: Frame) -> None:
    """A36: an empty set is refused, and an empty text or name by some implementations."""
    house = stored.house
    house.message(stored.conversation, metadata=value, parts=[{"type": "data"} | value])
    (shown,) = house.ok(LAPTOP, "message.list", conversation=stored.conversation)["messages"]
    assert (shown["metadata"], shown["parts"]) == (value, [{"type": "data"} | value])
    renamed = house.ok(PHONE, "conversation.update", conversation=stored.conversation, metadata=value)
    assert renamed["conversation"]["metadata"] == value
    assert house.ok(LAPTOP, "conversation.get", conversation=stored.conversation)["conversation"]["metadata"] == value


# --- characters -----------------------------------------------------------------------------------------------


class Everywhere:
    """A text said by a user and, piece by piece, by a model; and where all of that can be read."""

    def __init__(self, house: House, text: str) -> None:
        self.house = house
        self.conversation = house.conversation()
        house.ok(LAPTOP, "conversation.subscribe", conversation=self.conversation)
        said: Frame = {"action": "message.create", "ref": "r", "conversation": self.conversation, "parent": None}
        said |= {"message": house.new_id(), "role": "user", "parts": [text_part(text)]}
        # As a client writes it that escapes what is no character by itself.
        assert house.post(PHONE, json.dumps(said))["type"] == "message.create.ok"
        place = house.stream(self.conversation, said["message"])
        append = {"action": "stream.append", "ref": "r", "ops": [["text", 0, text]]} | place
        place["offset"] = house.post(WORKER, json.dumps(append))["offset"]
        house.ok(WORKER, "stream.close", **place, status="complete")

    def texts(self) -> set[str]:
        """What is shown of it: live, settled, as history, as a log, in an export."""
        frames = self.house.frames(LAPTOP)
        live = [frame["ops"][0][2] for frame in frames if frame["type"] == "stream.delta" and frame["ops"]]
        told = [frame["message"] for frame in frames if frame["type"] == "message.created"]
        listed = read_all(self.house, self.conversation)
        assert len(live) == 1
        assert len(told) == len(listed) == 2
        logs = [read_parts(self.house, self.conversation, message["id"])[0]["text"] for message in listed]
        lines = export(self.house, self.conversation).splitlines()
        exported = [part["text"] for line in map(json.loads, lines) for part in line.get("parts", [])]
        assert len(exported) == 2
        return {*live, *logs, *exported, *(message["parts"][0]["text"] for message in (*told, *listed))}


def test_a59_half_a_surrogate_is_cleaned_at_the_door(house: House) -> None:
    """A59: a stored text that cannot be encoded keeps its chat from being opened ever again."""
    assert Everywhere(house, "a\ud83db").texts() == {"a\ufffdb"}


def test_a60_a_nul_is_kept_and_is_the_same_everywhere(house: House) -> None:
    """A60: a message with U+0000 is never stored."""
    assert Everywhere(house, "a\0b").texts() == {"a\0b"}


def test_a61_titles_come_back_as_they_were_spelled(house: House) -> None:
    """A61: decomposed letters are taken for others, or composed unasked."""
    titles = ["cafe\u0301", "caf\u00e9"]
    for title in titles:
        house.conversation(title=title)
    listed = house.ok(LAPTOP, "conversation.list")["items"]
    assert [found["title"] for found in listed] == titles[::-1]


# --- times and whole numbers ----------------------------------------------------------------------------------


def everything_told(house: House) -> list[Frame]:
    """Replies and events of a conversation's whole life."""
    told: list[Frame] = [house.ok(PHONE, "ping")]
    conversation = house.conversation(title="t", retention_days=30)
    told.append(house.ok(LAPTOP, "conversation.subscribe", conversation=conversation))
    named = {"type": "blob", "media_type": "text/plain"} | upload(house, conversation, b"text")
    question = house.message(conversation, parts=[named])
    told.append(house.ok(PHONE, "blob.get", conversation=conversation, blob=named["ref"]))
    place = house.stream(conversation, question)
    told.append(place)
    ops = [["text", 0, "answer"]]
    place["offset"] = house.ok(WORKER, "stream.append", **place, ops=ops)["offset"]
    told.append(house.ok(LAPTOP, "conversation.subscribe", conversation=conversation))
    told.append(house.ok(LAPTOP, "stream.resume", **place | {"epoch": 0, "offset": 0}))
    told.append(house.ok(WORKER, "stream.close", **place, status="complete", usage={"output_tokens": SAFE_MAX}))
    told.append(house.ok(LAPTOP, "stream.resume", **place | {"epoch": 0, "offset": 0}))
    reads = ("message.list", "context.read", "conversation.get")
    told += [house.ok(PHONE, action, conversation=conversation) for action in reads]
    told.append(house.ok(PHONE, "conversation.list"))
    asked = house.ok(PHONE, "export.create", format="jsonl", conversation=conversation)
    told += [asked, house.ok(PHONE, "export.get", export=asked["export"]["id"])]
    deleted = house.ok(PHONE, "conversation.delete", conversation=conversation)
    told += [deleted, house.ok(PHONE, "erasure.get", erasure=deleted["erasure"]["id"])]
    return told + house.frames(LAPTOP)


def leaves(value: Any, name: str = "") -> Iterator[tuple[str, Any]]:
    """All that is no list and no object, each with the nearest name above it."""
    if isinstance(value, dict):
        for inner, content in value.items():
            yield from leaves(content, inner)
    elif isinstance(value, list):
        for content in value:
            yield from leaves(content, name)
    else:
        yield name, value


def test_a62_late_evening_in_new_york_is_the_next_day_in_utc_with_a_z(house: House) -> None:
    """A62: chats stand under the wrong day, and local time goes out with a Z."""
    house.clock.ms = times.from_rfc3339("2026-03-02T04:30:00.000Z")  # 23:30 on the 1st at UTC-5
    conversation = house.conversation()
    shown = house.ok(PHONE, "conversation.get", conversation=conversation)["conversation"]
    assert shown["created_at"] == "2026-03-02T04:30:00.001Z"
    found = [(name, value) for frame in everything_told(house) for name, value in leaves(frame) if _is_of_time(name)]
    assert {name for name, _ in found} >= {"now", "created_at", "active_at", "expires_at", "requested_at"}
    assert [pair for pair in found if not RFC_3339.fullmatch(str(pair[1]))] == []


def _is_of_time(name: str) -> bool:
    return name == "now" or name.endswith("_at")


def test_a62_no_line_of_the_service_asks_for_a_naive_time() -> None:
    """A62: a naive timestamp is somebody's local time."""
    naive = []
    for file in LAMBDAS.rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
                method, given = node.func.attr, {*(keyword.arg for keyword in node.keywords), *map(ast.dump, node.args)}
                bare = method in {"utcnow", "utcfromtimestamp", "localtime", "ctime"}
                zoned = any("UTC" in str(each) or each in {"tz", "tzinfo"} for each in given)
                if bare or (method in {"now", "fromtimestamp", "strptime", "today"} and not zoned):
                    naive.append(f"{file.name}:{node.lineno} {ast.unparse(node)}")
    assert naive == []


def test_a63_no_number_is_beyond_what_javascript_holds_and_ids_are_texts(house: House) -> None:
    """A63: 64-bit ids change in JavaScript."""
    found = [pair for frame in everything_told(house) for pair in leaves(frame)]
    numbers = [value for _, value in found if isinstance(value, int)]
    assert numbers
    assert max(map(abs, numbers)) <= SAFE_MAX
    named = [value for name, value in found if name in {"id", "conversation", "message", "parent", "stream", "leaf"}]
    assert {type(value) for value in named} <= {str, type(None)}
