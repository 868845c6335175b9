"""Uploads: whatever does not fit a frame goes in, comes out exact, and is refused as a whole or not at all."""

from __future__ import annotations

import hashlib
import json
import tracemalloc
from typing import Any
from urllib.parse import unquote

import msgspec
import pytest

from tests.support.conversations import ROUNDTRIP_VALUES
from tests.support.house import LAPTOP, PHONE, WORKER, Answer, Device, Frame, House, text_part
from threadkeep.domain import ids, ops, times
from threadkeep.domain.bounds import DOWNLOAD_URL_S, UPLOAD_BYTES_MAX
from threadkeep.domain.json_values import encode

OTHER_USER = Device(connection="other=", user="bob")
OTHER_TENANT = Device(connection="foreign=", tenant="globex")
FIVE_MB = 5_000_000


def spoken_of(content: bytes) -> dict[str, Any]:
    return {"bytes": len(content), "sha256": hashlib.sha256(content).hexdigest()}


def as_json(parts: Any) -> bytes:
    return json.dumps(parts, ensure_ascii=False, separators=(",", ":")).encode()


def place(house: House, conversation: str, content: bytes, *, by: Device = PHONE, put: bool = True) -> Frame:
    """Ask for an upload of that content, and put it; what was said of it."""
    upload: Frame = house.ok(by, "blob.create", conversation=conversation, **spoken_of(content))["upload"]
    assert not put or house.uploads.put(upload["url"], upload["headers"], content)
    return upload


def upload(house: House, conversation: str, content: bytes, **more: Any) -> dict[str, str]:
    """Upload a content; how a request names it."""
    return {"ref": place(house, conversation, content, **more)["ref"]}


def send(house: House, conversation: str, parts: Any, **more: Any) -> Frame:
    """Send a root message; the reply."""
    said = {"parent": None, "role": "user", "fork": True} | more
    return house.say(said.pop("by", PHONE), "message.create", conversation=conversation, parts=parts, **said)


def read(house: House, message: Frame) -> Any:
    """A message's parts, read in frames."""
    if "parts" in message:
        return message["parts"]
    assembly = ops.Assembly()
    epoch = offset = 0
    more = True
    while more:
        page = house.ok(
            LAPTOP,
            "stream.resume",
            conversation=message["conversation"],
            stream=message["id"],
            epoch=epoch,
            offset=offset,
        )
        assert page["at"] == offset
        assembly.apply(msgspec.json.decode(encode(page["ops"]), type=list[ops.PieceOp]))
        epoch, offset, more = page["epoch"], page["offset"], page["more"]
    return json.loads(encode(assembly.parts()))


@pytest.fixture
def conversation(house: House) -> str:
    return house.conversation()


# --- asking ---------------------------------------------------------------------------------------------------


def test_an_upload_is_told_where_and_how_long(house: House, conversation: str) -> None:
    told = place(house, conversation, b"[]", put=False)
    assert set(told) == {"ref", "method", "url", "headers", "expires_at"}
    assert (told["method"], told["expires_at"]) == ("PUT", "2027-01-15T08:15:00.001Z")


def test_asked_again_it_is_the_same_ref_and_another_content_is_another(house: House, conversation: str) -> None:
    refs = [place(house, conversation, content)["ref"] for content in (b"[]", b"[]", b"[ ]")]
    assert refs[0] == refs[1] != refs[2]


def test_8_mib_may_be_uploaded_and_no_more(house: House, conversation: str) -> None:
    digest = "0" * 64
    house.ok(PHONE, "blob.create", conversation=conversation, bytes=UPLOAD_BYTES_MAX, sha256=digest)
    for size in (UPLOAD_BYTES_MAX + 1, 2**53 - 1):
        refused = house.say(PHONE, "blob.create", conversation=conversation, bytes=size, sha256=digest)
        assert (refused["code"], refused["retryable"]) == ("too_large", False)
        assert str(UPLOAD_BYTES_MAX) in refused["message"]


@pytest.mark.parametrize(
    "said",
    [
        {"bytes": 0},
        {"bytes": -1},
        {"bytes": 1.5},
        {"bytes": "1"},
        {"sha256": "0" * 63},
        {"sha256": "A" * 64},
        {"sha256": "0" * 64 + "\n"},
        {"sha256": "../" + "0" * 61},
        {"media_type": "text"},
        {"media_type": "text/plain\r\nx-amz-acl: public-read"},
        {"media_type": ""},
    ],
    ids=str,
)
def test_what_is_malformed_is_a_bad_request(house: House, conversation: str, said: Frame) -> None:
    fields = {"bytes": 1, "sha256": "0" * 64} | said
    assert house.say(PHONE, "blob.create", conversation=conversation, **fields)["code"] == "bad_request"


def test_only_whoever_may_write_there_may_upload(house: House, conversation: str) -> None:
    for device in (OTHER_USER, OTHER_TENANT):
        refused = house.say(device, "blob.create", conversation=conversation, **spoken_of(b"[]"))
        assert refused["code"] == "not_found"
    assert house.ok(WORKER, "blob.create", conversation=conversation, **spoken_of(b"[]"))["upload"]["ref"]


# --- a message ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("letter", ["a", "\u754c", "\U0001f600", "\0", '"'])
def test_a_question_of_5_mb_comes_back_exact(house: House, conversation: str, letter: str) -> None:
    parts = [text_part(letter * (FIVE_MB // len(as_json(letter)[1:-1])) + ".")]
    content = as_json(parts)
    assert abs(len(content) - FIVE_MB) < 100
    message = house.ok(
        PHONE,
        "message.create",
        conversation=conversation,
        parent=None,
        role="user",
        parts=upload(house, conversation, content),
    )["message"]
    assert "parts" not in message
    assert message["bytes"] == len(content)
    assert read(house, message) == parts


def test_those_who_watch_are_told_of_it_in_a_frame(house: House, conversation: str) -> None:
    house.ok(LAPTOP, "conversation.subscribe", conversation=conversation)
    sent = send(house, conversation, upload(house, conversation, as_json([text_part("x" * 50_000)])))["message"]
    (frame,) = house.frames(LAPTOP)
    assert (frame["type"], frame["message"]) == ("message.created", sent)


@pytest.mark.parametrize("size", [24_500, 24_600, 31_900, 32_100, 127_900, 128_100])
def test_around_the_gateways_bounds_no_frame_is_over_ours_and_no_character_is_cut(house: House, size: int) -> None:
    """`House` holds every reply and every event to our bound in bytes; characters would count to a third of it."""
    answer = Answer(house)
    house.ok(LAPTOP, "conversation.subscribe", conversation=answer.conversation)
    text = "\u754c" * (size // 3)
    sent = send(house, answer.conversation, upload(house, answer.conversation, as_json([text_part(text)])))["message"]
    opened = answer.written(*ops.cut_text(text, 16_000), fork=True)
    settled = answer.close(opened, len(list(ops.cut_text(text, 16_000))))["message"]
    assert [read(house, message) for message in (sent, settled)] == [[text_part(text)]] * 2
    created = [frame["message"] for frame in house.frames(LAPTOP) if frame["type"] == "message.created"]
    assert created == [sent, settled]


def test_a_small_message_may_be_uploaded_too(house: House, conversation: str) -> None:
    parts = [text_part("hello")]
    assert send(house, conversation, upload(house, conversation, as_json(parts)))["message"]["parts"] == parts


def test_values_keep_their_kind_and_every_digit(house: House, conversation: str) -> None:
    part = b'{"type":"data","one":1.0,"padding":"' + b"x" * 30_000 + b'","values":'
    content = b"[" + part + ROUNDTRIP_VALUES.read_bytes().strip() + b"}]"
    message = send(house, conversation, upload(house, conversation, content))["message"]
    stored = house.warm.read_message(house.key(conversation), message["id"])
    assert stored is not None
    assert encode(stored.message.parts) == content
    assert read(house, message) == json.loads(content)


def test_a_value_of_100_kb_and_twenty_tool_results_of_60_kb_are_read_in_frames(house: House, conversation: str) -> None:
    results = [
        {"type": "tool_result", "call_id": str(number), "output": "\u754c" * 20_000 + str(number)}
        for number in range(20)
    ]
    parts = [{"type": "data", "x": "x" * 100_000, "y": [{"z": "\u754c" * 40_000}]}, *results]
    message = send(house, conversation, upload(house, conversation, as_json(parts)))["message"]
    assert read(house, message) == parts


def test_half_surrogates_are_replaced_as_in_a_frame(house: House, conversation: str) -> None:
    content = rb'[{"type":"text","text":"\ud83d \ud83d\ude00 \\ud83d"},{"type":"data","x\ude00":["\ud800"]}]'
    message = send(house, conversation, upload(house, conversation, content))["message"]
    assert message["parts"] == [text_part("\ufffd \U0001f600 \\ud83d"), {"type": "data", "x\ufffd": ["\ufffd"]}]


@pytest.mark.parametrize(
    "content",
    [
        b" ",
        b"{}",
        b"null",
        b'"text"',
        b"[1]",
        b"[[]]",
        b"[{}",
        b"[{}] []",
        b"\xef\xbb\xbf[{}]",
        b'[{"type":"text","text":"\xff"}]',
        b'[{"type":"text","text":"\xe7\x95"}]',
        b"[{" + b'"a":[' * 63 + b"]" * 63 + b"}]",
        b"[" + b'{"a":' * 100_000,
        b"[" + b"{}," * 1_000 + b"{}]",
        b'[{"' + b"x" * 1_025 + b'":1}]',
        b'[{"a":NaN}]',
    ],
    ids=lambda content: repr(content[:20]),
)
def test_what_would_be_refused_in_a_frame_is_refused_and_nothing_is_stored(
    house: House, conversation: str, content: bytes
) -> None:
    refused = send(house, conversation, upload(house, conversation, content))
    assert refused["code"] in {"bad_request", "too_large"}
    assert house.ok(PHONE, "message.list", conversation=conversation, leaf="all")["messages"] == []


def test_fields_without_number_are_refused_before_they_take_the_memory(house: House, conversation: str) -> None:
    fields = b",".join(b'"%x":1' % number for number in range(100_001))
    refused = send(house, conversation, upload(house, conversation, b"[{" + fields + b"}]"))
    assert refused["code"] == "too_large"
    within = send(house, conversation, upload(house, conversation, b"[{" + fields.rpartition(b",")[0] + b"}]"))
    assert len(read(house, within["message"])[0]) == 100_000


@pytest.mark.parametrize(
    "inner",
    [
        '"text":"' + "\u754c" * 340_000 + '"',
        '"text":"' + "\\n" * 500_000 + '"',
        '"text":"' + "\\ud800" * 170_000 + '"',
        '"text":"' + "\U0001f600" + "a" * 1_000_000 + '"',
        '"x":[' + "1," * 500_000 + "1]",
        '"x":[' + "[]," * 340_000 + "[]]",
    ],
    ids=["three bytes", "escapes", "halves", "wide", "numbers", "lists"],
)
def test_a_megabyte_takes_a_few_megabytes_of_memory_whatever_stands_in_it(
    house: House, conversation: str, inner: str
) -> None:
    content = ('[{"type":"data",' + inner + "}]").encode()
    named = upload(house, conversation, content)
    del inner
    tracemalloc.start()
    sent = send(house, conversation, named)
    sent_peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.reset_peak()
    page = {"conversation": conversation, "stream": sent["message"]["id"], "epoch": 0, "offset": 0}
    assert house.ok(LAPTOP, "stream.resume", **page)["more"]
    read_peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert max(sent_peak, read_peak) < 8 * len(content), (sent_peak / len(content), read_peak / len(content))


def test_64_deep_and_1000_parts_are_taken(house: House, conversation: str) -> None:
    deep = b'[{"a":' + b"[" * 62 + b"]" * 62 + b"}]"
    assert "message" in send(house, conversation, upload(house, conversation, deep))
    many = b"[" + b"{}," * 999 + b"{}]"
    assert "message" in send(house, conversation, upload(house, conversation, many))


# --- what is wrong with an upload -----------------------------------------------------------------------------


def test_named_before_it_is_there_it_is_missing_and_afterwards_taken(house: House, conversation: str) -> None:
    content = as_json([text_part("x" * 30_000)])
    told = place(house, conversation, content, put=False)
    said = {"parts": {"ref": told["ref"]}, "message": house.new_id()}
    refused = send(house, conversation, **said)
    assert (refused["code"], refused["reason"], refused["retryable"]) == ("conflict", "upload_missing", False)
    assert house.ok(PHONE, "message.list", conversation=conversation, leaf="all")["messages"] == []
    assert house.uploads.put(told["url"], told["headers"], content)
    assert read(house, send(house, conversation, **said)["message"]) == json.loads(content)


@pytest.mark.parametrize("wrong", [b"", b'[{"type":"text"', b'[{"type":"text","text":"b"}]', b'[{"type":"text"}]    '])
def test_cut_short_or_another_content_it_never_gets_there(house: House, conversation: str, wrong: bytes) -> None:
    told = place(house, conversation, b'[{"type":"text","text":"a"}]', put=False)
    assert not house.uploads.put(told["url"], told["headers"], wrong)
    assert send(house, conversation, {"ref": told["ref"]})["reason"] == "upload_missing"


@pytest.mark.parametrize("wrong", [b"", b'[{"type":"text"', b'[{"type":"text","text":"b"}]', b'[{"type":"text"}]    '])
def test_damaged_where_it_lies_it_is_refused_and_nothing_is_stored(
    house: House, conversation: str, wrong: bytes
) -> None:
    named = upload(house, conversation, b'[{"type":"text","text":"a"}]')
    (object_key,) = house.uploads.objects
    house.uploads.objects[object_key] = wrong
    refused = send(house, conversation, named)
    assert (refused["code"], refused["reason"], refused["retryable"]) == ("conflict", "upload_damaged", False)
    assert house.ok(PHONE, "message.list", conversation=conversation, leaf="all")["messages"] == []


def test_in_another_conversation_or_tenant_it_names_nothing(house: House, conversation: str) -> None:
    named = upload(house, conversation, as_json([text_part("secret")]))
    assert send(house, house.conversation(), named)["reason"] == "upload_missing"
    assert send(house, house.conversation(OTHER_USER), named, by=OTHER_USER)["reason"] == "upload_missing"
    assert send(house, house.conversation(OTHER_TENANT), named, by=OTHER_TENANT)["reason"] == "upload_missing"
    assert send(house, conversation, named, by=OTHER_TENANT)["code"] == "not_found"


def test_the_same_conversation_id_in_another_tenant_is_another_conversation(house: House, conversation: str) -> None:
    named = upload(house, conversation, as_json([text_part("secret")]))
    house.ok(OTHER_TENANT, "conversation.create", conversation=conversation)
    assert send(house, conversation, named, by=OTHER_TENANT)["reason"] == "upload_missing"


@pytest.mark.parametrize("ref", ["", "x", "0" * 64, "../" * 20, "0" * 64 + ".0", "0" * 64 + ".9999999999"])
def test_a_ref_that_nobody_gave_is_a_bad_request(house: House, conversation: str, ref: str) -> None:
    assert send(house, conversation, {"ref": ref})["code"] == "bad_request"


def test_a_ref_that_lies_about_the_size_is_damaged(house: House, conversation: str) -> None:
    digest = upload(house, conversation, as_json([text_part("x")]))["ref"].partition(".")[0]
    assert send(house, conversation, {"ref": f"{digest}.7"})["reason"] == "upload_damaged"


def test_with_the_store_away_all_that_needs_it_is_unavailable(house: House, conversation: str) -> None:
    named = upload(house, conversation, as_json([text_part("x")]))
    house.uploads.unavailable = True
    refused = send(house, conversation, named)
    assert (refused["code"], refused["retryable"]) == ("unavailable", True)
    assert "message" in send(house, conversation, [text_part("inline")])


# --- twice ----------------------------------------------------------------------------------------------------


def test_named_twice_it_is_a_duplicate_by_its_content(house: House, conversation: str) -> None:
    parts = [text_part("\u754c" * 30_000)]
    said = {"message": house.new_id(), "parts": upload(house, conversation, as_json(parts))}
    first = send(house, conversation, **said)
    again = send(house, conversation, **said)
    assert again == first | {"duplicate": True}
    spaced = upload(house, conversation, json.dumps(parts).encode())
    assert send(house, conversation, **said | {"parts": spaced}) == again
    other = upload(house, conversation, as_json([text_part("\u754c" * 30_001)]))
    assert send(house, conversation, **said | {"parts": other})["reason"] == "id_taken"


def test_sent_in_a_frame_and_uploaded_it_is_the_same_message(house: House, conversation: str) -> None:
    parts = [text_part("hello")]
    said = {"message": house.new_id(), "parts": parts}
    first = send(house, conversation, **said)
    uploaded = upload(house, conversation, as_json(parts))
    assert send(house, conversation, **said | {"parts": uploaded}) == first | {"duplicate": True}


def test_one_upload_may_be_named_by_two_messages(house: House, conversation: str) -> None:
    parts = [text_part("x" * 30_000)]
    named = upload(house, conversation, as_json(parts))
    sent = [send(house, conversation, named)["message"] for _ in range(2)]
    assert [read(house, message) for message in sent] == [parts, parts]


# --- an answer ------------------------------------------------------------------------------------------------


@pytest.fixture
def answer(house: House) -> Answer:
    return Answer(house)


def body_of(answer: Answer, content: bytes, **more: Any) -> Frame:
    ref = upload(answer.house, answer.conversation, content, by=WORKER, **more)
    return {"body": ref, "parent": answer.question, "role": "assistant"}


@pytest.mark.parametrize("away", [False, True], ids=["lost", "away"])
def test_an_answer_of_5_mb_is_closed_by_an_uploaded_body_without_the_hot_tier(answer: Answer, away: bool) -> None:  # noqa: FBT001 -- a parameter
    opened = answer.written("begun")
    answer.house.lose_hot()
    answer.house.hot.unavailable = away
    parts = [text_part("\u754c" * (FIVE_MB // 3))]
    said = body_of(answer, as_json(parts))
    message = answer.close(opened, 1, **said)["message"]
    assert message["status"] == "complete"
    assert read(answer.house, message) == parts
    assert answer.close(opened, 1, **said)["message"] == message


def test_a_body_that_is_missing_or_damaged_settles_nothing_and_can_be_said_again(answer: Answer) -> None:
    opened = answer.written("begun")
    answer.house.lose_hot()
    content = as_json([text_part("the end")])
    missing = answer.close(opened, 1, **body_of(answer, content, put=False))
    assert (missing["code"], missing["reason"]) == ("conflict", "upload_missing")
    assert not answer.house.warm.has_message(answer.house.key(answer.conversation), answer.stream)
    assert answer.close(opened, 1, **body_of(answer, content))["message"]["parts"] == [text_part("the end")]


def test_a_body_that_the_hot_tier_needs_not_is_not_even_read(answer: Answer) -> None:
    opened = answer.written("whole")
    said = body_of(answer, as_json([text_part("other")]), put=False)
    assert answer.close(opened, 1, **said)["message"]["parts"] == [text_part("whole")]


def test_an_answer_of_5_mb_is_streamed_settled_and_read_exact(answer: Answer) -> None:
    piece = "\u754c" * 5_000
    count = FIVE_MB // 15_000
    opened = answer.written(*[piece] * count)
    message = answer.close(opened, count)["message"]
    assert "parts" not in message
    assert read(answer.house, message) == [text_part(piece * count)]


def test_a_body_says_the_same_as_the_log_it_stands_for(answer: Answer) -> None:
    """The close was heard and stored, its reply lost and the hot tier after it: the body finds what it says."""
    opened = answer.written("caf\u00e9")
    message = answer.close(opened, 1)["message"]
    answer.house.lose_hot()
    said = body_of(answer, rb'[{"text": "caf\u00e9", "type": "text"}]')
    assert answer.close(opened, 1, **said)["message"] == message


# --- parts that name uploads ----------------------------------------------------------------------------------

PIXELS = bytes(range(256)) * 12_000


def blob_part(ref: str, content: bytes = PIXELS) -> dict[str, Any]:
    return {"type": "blob", "media_type": "image/png", **spoken_of(content), "ref": ref}


def expire_uploads(house: House) -> None:
    """As the bucket's rule does, days later."""
    for object_key in [name for name in house.uploads.objects if name.startswith("uploads/")]:
        del house.uploads.objects[object_key]


def kept(house: House) -> list[bytes]:
    expire_uploads(house)
    return list(house.uploads.objects.values())


def test_a_file_of_3_mb_is_named_by_a_part_and_stays(house: House, conversation: str) -> None:
    part = blob_part(place(house, conversation, PIXELS)["ref"])
    message = send(house, conversation, [text_part("look"), part])["message"]
    assert message["parts"] == [text_part("look"), part]
    assert kept(house) == [PIXELS]
    assert send(house, conversation, [part])["message"]["parts"] == [part], "what is kept may be named again"


def test_what_no_message_names_does_not_stay(house: House, conversation: str) -> None:
    place(house, conversation, PIXELS)
    send(house, conversation, upload(house, conversation, as_json([text_part("x" * 30_000)])))
    assert kept(house) == []


def test_a_part_in_an_upload_may_name_another(house: House, conversation: str) -> None:
    parts = [text_part("x" * 30_000), blob_part(place(house, conversation, PIXELS)["ref"])]
    message = send(house, conversation, upload(house, conversation, as_json(parts)))["message"]
    assert read(house, message) == parts
    assert kept(house) == [PIXELS]


def downloaded(house: House, conversation: str, ref: str, *, by: Device = PHONE) -> bytes:
    """What lies under the URL that one is given for a ref."""
    download = house.ok(by, "blob.get", conversation=conversation, blob=ref)["download"]
    assert times.from_rfc3339(download["expires_at"]) == house.clock.ms + DOWNLOAD_URL_S * 1_000
    return house.uploads.objects[unquote(download["url"].partition(":")[2])]


def test_what_a_message_keeps_is_downloaded_by_its_ref(house: House, conversation: str) -> None:
    ref = place(house, conversation, PIXELS)["ref"]
    assert house.say(PHONE, "blob.get", conversation=conversation, blob=ref)["code"] == "not_found", "nobody named it"
    send(house, conversation, [blob_part(ref)])
    expire_uploads(house)
    assert downloaded(house, conversation, ref) == PIXELS
    assert downloaded(house, conversation, ref, by=WORKER) == PIXELS


def test_no_other_conversation_user_or_tenant_downloads_it(house: House, conversation: str) -> None:
    ref = place(house, conversation, PIXELS)["ref"]
    send(house, conversation, [blob_part(ref)])
    unknown = house.say(PHONE, "blob.get", conversation=ids.mint(house.clock.ms), blob=ref)
    assert unknown["code"] == "not_found"
    assert house.say(PHONE, "blob.get", conversation=house.conversation(), blob=ref) == unknown
    for device in (OTHER_USER, OTHER_TENANT):
        assert house.say(device, "blob.get", conversation=conversation, blob=ref) == unknown
    for nothing in ("x", ref[:-1], ref + "0", f"{'0' * 64}.1", "../" + ref):
        assert house.say(PHONE, "blob.get", conversation=conversation, blob=nothing) == unknown


def test_with_its_conversation_a_file_is_gone(house: House, conversation: str) -> None:
    ref = place(house, conversation, PIXELS)["ref"]
    send(house, conversation, [blob_part(ref)])
    downloaded(house, conversation, ref)
    house.ok(LAPTOP, "conversation.delete", conversation=conversation)
    assert house.say(PHONE, "blob.get", conversation=conversation, blob=ref)["code"] == "not_found"


@pytest.mark.parametrize("put", [False, True])
def test_a_file_that_is_not_there_or_elsewhere_is_missing_and_nothing_is_stored(
    house: House,
    conversation: str,
    put: bool,  # noqa: FBT001 -- a parameter
) -> None:
    elsewhere = house.conversation() if put else conversation
    part = blob_part(place(house, elsewhere, PIXELS, put=put)["ref"])
    refused = send(house, conversation, [part])
    assert (refused["code"], refused["reason"]) == ("conflict", "upload_missing")
    assert house.ok(PHONE, "message.list", conversation=conversation, leaf="all")["messages"] == []


@pytest.mark.parametrize("lie", [{"bytes": 1}, {"sha256": "0" * 64}, {"bytes": "3072000"}, {"sha256": None}], ids=str)
def test_a_part_that_says_other_than_its_ref_is_a_bad_request(house: House, conversation: str, lie: Frame) -> None:
    part = blob_part(place(house, conversation, PIXELS)["ref"]) | lie
    assert send(house, conversation, [part])["code"] == "bad_request"


@pytest.mark.parametrize("part", [{"type": "blob", "ref": "https://example.com/x.png"}, {"type": "blob"}, {"ref": 1}])
def test_a_ref_that_is_none_of_ours_is_the_clients_own(house: House, conversation: str, part: Frame) -> None:
    assert send(house, conversation, [part])["message"]["parts"] == [part]


def test_16_files_may_be_named_at_once_and_no_more(house: House, conversation: str) -> None:
    contents = [bytes([number]) for number in range(17)]
    parts = [blob_part(place(house, conversation, content)["ref"], content) for content in contents]
    assert send(house, conversation, parts)["code"] == "too_large"
    assert send(house, conversation, [*parts[:16], parts[0]])["message"]["parts"] == [*parts[:16], parts[0]]


def test_an_answer_names_files_as_it_is_written_and_is_told_at_once_if_one_is_missing(answer: Answer) -> None:
    house = answer.house
    opened = answer.open()
    there, missing = (
        blob_part(place(house, answer.conversation, content, by=WORKER, put=put)["ref"], content)
        for content, put in ((PIXELS, True), (b"nowhere", False))
    )
    where = {"conversation": answer.conversation, **answer.place(opened, 0)}
    refused = house.say(WORKER, "stream.append", ops=[["part", 0, missing]], **where)
    assert (refused["code"], refused["reason"]) == ("conflict", "upload_missing")
    late = [["part", 0, {"type": "blob"}], ["set", 0, {"ref": missing["ref"]}]]
    assert house.say(WORKER, "stream.append", ops=late, **where)["reason"] == "upload_missing"
    house.ok(WORKER, "stream.append", ops=[["part", 0, there]], **where)
    assert answer.close(opened, 1)["message"]["parts"] == [there]
    assert kept(house) == [PIXELS]


def test_an_append_without_files_asks_no_store(answer: Answer) -> None:
    answer.house.uploads.unavailable = True
    opened = answer.written("text", "more")
    assert answer.close(opened, 2)["message"]["parts"] == [text_part("textmore")]


def test_a_body_keeps_the_files_that_it_names(answer: Answer) -> None:
    opened = answer.written("begun")
    answer.house.lose_hot()
    part = blob_part(place(answer.house, answer.conversation, PIXELS, by=WORKER)["ref"])
    said: Frame = {"body": [part], "parent": answer.question, "role": "assistant"}
    assert answer.close(opened, 1, **said)["message"]["parts"] == [part]
    assert kept(answer.house) == [PIXELS]
