"""What follows from a message's content."""

from __future__ import annotations

import msgspec
import pytest

from threadkeep.domain import ids
from threadkeep.domain.json_values import encode, read_object
from threadkeep.domain.model import Caller, Message, Tokens
from threadkeep.domain.ops import Parts

NOW_MS = 1_790_000_000_000
PARTS: Parts = (read_object(b'{"type":"text","text":"hello"}'),)  # 32 bytes as a list


def message() -> Message:
    return Message.new(
        id=ids.mint(NOW_MS),
        conversation=ids.mint(NOW_MS),
        parent=None,
        role="user",
        status="complete",
        parts=PARTS,
        metadata={},
    )


def test_a_message_is_of_the_time_in_its_id() -> None:
    assert message().created_at == "2026-09-21T14:13:20.000Z"


def test_what_is_absent_does_not_travel_but_a_root_says_so() -> None:
    travelled = msgspec.json.decode(encode(message()))
    assert set(travelled) == {
        *("id", "conversation", "parent", "role", "status", "created_at", "metadata", "tokens", "parts")
    }
    assert travelled["parent"] is None


def test_without_its_parts_a_message_says_what_they_take() -> None:
    bare = message().without_parts()
    travelled = msgspec.json.decode(encode(bare))
    assert "parts" not in travelled
    assert travelled["bytes"] == len(encode(PARTS)) == 32
    assert bare.without_parts() == bare


@pytest.mark.parametrize(
    ("usage", "tokens"),
    [
        (None, Tokens(8, estimated=True)),
        ("{}", Tokens(8, estimated=True)),
        ('{"output_tokens":7}', Tokens(7)),
        ('{"completion_tokens":0}', Tokens(0)),
        ('{"completion_tokens":5,"output_tokens":7}', Tokens(7)),
        ('{"output_tokens":null,"completion_tokens":5}', Tokens(5)),
        ('{"output_tokens":-1}', Tokens(8, estimated=True)),
        ('{"output_tokens":7.0}', Tokens(8, estimated=True)),
        ('{"output_tokens":"7"}', Tokens(8, estimated=True)),
        ('{"output_tokens":999999999999999}', Tokens(999_999_999_999_999)),
        ('{"output_tokens":1' + "0" * 5_000 + "}", Tokens(8, estimated=True)),
    ],
)
def test_tokens_are_told_or_a_quarter_of_the_bytes(usage: str | None, tokens: Tokens) -> None:
    assert Tokens.of(PARTS, None if usage is None else read_object(usage.encode())) == tokens


def test_only_the_scope_to_produce_produces() -> None:
    caller = Caller(tenant="t", user="u", scopes=frozenset({"chat", "admin"}), expires_at_ms=0, connection="c")
    assert not caller.produces
    assert msgspec.structs.replace(caller, scopes=frozenset({"produce"})).produces
