"""Frames as they come in: cleaned, bounded, decoded; whatever comes, the error is the protocol's."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from threadkeep.domain.commands import AppendStream, CreateConversation, Ping
from threadkeep.domain.errors import Refused
from threadkeep.gateway.reading import read_command, read_envelope

CONVERSATION = "0193e4a0-0000-7000-8000-000000000001"


def refusal(body: str) -> Refused:
    frame, _, _ = read_envelope(body)
    with pytest.raises(Refused) as caught:
        read_command(frame)
    return caught.value


def command(body: str) -> object:
    return read_command(read_envelope(body)[0])


@pytest.mark.parametrize(
    "body",
    [
        "",
        "no json",
        "[]",
        "null",
        '"ping"',
        "{}",
        '{"action": 1}',
        '{"action": null}',
        '{"action": "$connect"}',
        '{"action": "nothing.known"}',
        '{"action": "ping", "ref": 1}',
        '{"action": "ping"} {}',
        '{"action": "conversation.get"}',
        '{"action": "conversation.get", "conversation": 7}',
        f'{{"action": "conversation.get", "conversation": "{CONVERSATION.upper()}"}}',
        f'{{"action": "conversation.get", "conversation": " {CONVERSATION}"}}',
        f'{{"action": "conversation.get", "conversation": "{CONVERSATION}\\n"}}',
        '{"action": "conversation.get", "conversation": "0193e4a0-0000-4000-8000-000000000001"}',
        '{"action": "conversation.create", "metadata": []}',
        '{"action": "conversation.create", "metadata": null}',
        '{"action": "conversation.list", "limit": 0}',
        '{"action": "conversation.list", "limit": 101}',
        '{"action": "conversation.list", "limit": 1.5}',
    ],
)
def test_what_is_malformed_is_a_bad_request(body: str) -> None:
    assert refusal(body).code == "bad_request"


def test_a_bad_request_names_the_choices_where_they_are_few() -> None:
    told = refusal('{"action": "export.create", "format": "pdf"}').message
    assert told == "`format` must be one of `chatgpt`, `jsonl`, `markdown`."


def test_a_bad_request_names_the_field() -> None:
    told = refusal('{"action": "conversation.list", "limit": "ten"}').message
    assert told == "`limit` must be a whole number, not a string."


def test_the_ref_of_a_request_that_fails_is_still_known() -> None:
    assert read_envelope('{"ref": "r1", "action": "conversation.get"}')[1:] == ("conversation.get", "r1")


def test_a_ref_that_is_none_is_not_echoed() -> None:
    assert read_envelope('{"ref": {"x": 1}, "action": "ping"}')[2] is None
    assert read_envelope('{"ref": "' + "r" * 257 + '", "action": "ping"}')[2] is None


def test_64_deep_is_taken_and_65_refused() -> None:
    def nested(depth: int) -> str:
        return '{"action": "conversation.create", "metadata": {"a": ' + "[" * (depth - 2) + "]" * (depth - 2) + "}}"

    assert isinstance(command(nested(64)), CreateConversation)
    assert refusal(nested(65)).code == "bad_request"


def test_a_hundred_thousand_brackets_recurse_nowhere() -> None:
    assert refusal('{"action": "ping", "x": ' + "[" * 100_000).code == "bad_request"


def test_brackets_in_strings_are_no_depth() -> None:
    assert isinstance(command('{"action": "ping", "x": "' + "[" * 100 + '\\"{{"}'), Ping)


def test_a_frame_is_measured_in_bytes_of_utf_8() -> None:
    def frame(letters: int) -> str:
        return json.dumps({"action": "ping", "x": "界" * letters}, ensure_ascii=False)

    assert isinstance(command(frame(8_180)), Ping)
    assert refusal(frame(8_192)).code == "too_large"


@pytest.mark.parametrize(
    ("sent", "kept"),
    [
        (r"\ud83d\ude00", "😀"),
        (r"\ud83d", "�"),
        (r"\ude00", "�"),
        (r"\ude00\ud83d", "��"),
        (r"\ud83d\ud83d\ude00", "�😀"),
        (r"\\ud83d", r"\ud83d"),
        (r"\\\ud83d", "\\�"),
        (r"a\u0000b", "a\x00b"),
        ("\ud83d", "�"),
        ("界", "界"),
    ],
)
def test_half_surrogates_are_replaced_and_nothing_else(sent: str, kept: str) -> None:
    read = command('{"action": "conversation.create", "metadata": {"a": "' + sent + '"}, "title": "' + sent + '"}')
    assert isinstance(read, CreateConversation)
    assert read.title == kept
    assert json.loads(bytes(read.metadata["a"])) == kept


@pytest.mark.parametrize(
    "number", ["1", "1.0", "-0.0", "9007199254740993", "1e400", "0.1", "123456789012345678901234567890"]
)
def test_numbers_of_clients_stay_as_they_were_written(number: str) -> None:
    read = command('{"action": "conversation.create", "metadata": {"n": {"deep": [' + number + "]}}}")
    assert isinstance(read, CreateConversation)
    assert bytes(read.metadata["n"]) == b'{"deep": [' + number.encode() + b"]}"


def test_ops_stay_bytes() -> None:
    read = command(
        f'{{"action": "stream.append", "conversation": "{CONVERSATION}", "stream": "{CONVERSATION}", "epoch": 1,'
        ' "offset": 0, "ops": [["text", 0, "a"]]}'
    )
    assert isinstance(read, AppendStream)
    assert bytes(read.ops) == b'[["text", 0, "a"]]'


@given(st.text())
def test_any_text_is_a_command_or_a_refusal(body: str) -> None:
    frame, _, _ = read_envelope(body)
    try:
        read_command(frame)
    except Refused as refused:
        assert refused.code in {"bad_request", "too_large"}  # noqa: PT017 -- both outcomes are right
