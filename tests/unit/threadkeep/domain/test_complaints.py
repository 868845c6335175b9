from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any, Literal, get_args

import msgspec
import pytest
from msgspec import Meta, inspect

from threadkeep.domain import ops
from threadkeep.domain.commands import COMMANDS
from threadkeep.domain.complaints import SPELLINGS, choices_of, in_words
from threadkeep.domain.exports import Format
from threadkeep.domain.model import Role


class Inner(msgspec.Struct, forbid_unknown_fields=True):
    name: str = ""


class Tagged(msgspec.Struct, tag_field="action", tag="a"):
    x: int


class Other(msgspec.Struct, tag_field="action", tag="b"):
    x: int


def complained(data: bytes, of: Any) -> str:
    with pytest.raises(msgspec.DecodeError) as raised:
        msgspec.json.decode(data, type=of)
    return in_words(str(raised.value))


@pytest.mark.parametrize(
    ("data", "of", "words"),
    [
        (b"{}", Tagged | Other, "`action` is missing."),
        (b'{"action": "a"}', Tagged | Other, "`x` is missing."),
        (b'{"action": "c\' - at `$.y`"}', Tagged | Other, "`action` is none of those that there are."),
        (b'{"odd": 1}', Inner, "`odd` is a field that is not known here."),
        (b'[{"odd": 1}]', list[Inner], "`[0].odd` is a field that is not known here."),
        (b'"c"', Literal["a", "b"], "It is none of the values that it may be."),
        (b"7", str, "It must be a string, not a whole number."),
        (b"1.5", int, "It must be a whole number, without a fraction."),
        (b'{"x": [1, null]}', dict[str, list[int]], "`[\u2026][1]` must be a whole number, not null."),
        (b"true", str | list[int] | None, "It must be a string or a list or null, not true or false."),
        (b'""', Annotated[str, Meta(min_length=1)], "It must not be empty."),
        (b'"a"', Annotated[str, Meta(min_length=2)], "It must have at least 2 characters."),
        (b'"abc"', Annotated[str, Meta(max_length=2)], "It may have at most 2 characters."),
        (b"[1]", Annotated[list[int], Meta(max_length=0)], "It may have at most 0 items."),
        (b"0", Annotated[int, Meta(ge=1)], "It must be a number of at least 1."),
        (b"9007199254740992", Annotated[int, Meta(lt=2**53)], "It must be a number of at most 9,007,199,254,740,991."),
        (b"[1]", tuple[int, int], "It must have 2 items."),
        (b'"x"', Annotated[str, Meta(pattern="^a+$")], "It must be spelled otherwise."),
        (b'{"1": 1}', dict[Literal["a"], int], "A name in it is none of the values that it may be."),
        (b"[1, ", list[int], "It is no JSON, or cut off."),
        (b"{x}", Inner, "It is no JSON, or cut off."),
    ],
)
def test_every_kind_of_complaint_has_words(data: bytes, of: Any, words: str) -> None:
    assert complained(data, of) == words


class Choosing(msgspec.Struct, tag_field="action", tag="a"):
    role: Literal["user", "tool"] | None = None
    form: Literal["x"] = "x"


class AlsoChoosing(msgspec.Struct, tag_field="action", tag="b"):
    role: Literal["user", "tool"] = "user"
    form: Literal["y"] = "y"


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b'{"action": "a", "role": "x"}', "`role` must be one of `tool`, `user`."),
        (b'{"action": "b", "form": "x"}', "`form` is none of the values that it may be."),
        (b'{"action": "c"}', "`action` is none of those that there are."),
    ],
)
def test_where_the_choices_are_few_they_are_named(data: bytes, words: str) -> None:
    with pytest.raises(msgspec.DecodeError) as raised:
        msgspec.json.decode(data, type=Choosing | AlsoChoosing)
    assert in_words(str(raised.value), choices=choices_of(Choosing, AlsoChoosing)) == words


def test_the_choices_of_requests_and_of_ops_are_those_that_are_read() -> None:
    assert choices_of(*COMMANDS)["role"] == tuple(sorted(get_args(Role)))
    assert choices_of(*COMMANDS)["format"] == tuple(sorted(get_args(Format)))
    with pytest.raises(msgspec.DecodeError) as raised:
        ops.decode(b'[["sing", 0]]')
    told = in_words(str(raised.value), choices=choices_of(*get_args(ops.Op)))
    assert told == "`[0][0]` must be one of `part`, `text`, `set`, `meta`."
    for kind in choices_of(*get_args(ops.Op))["[0]"]:
        with pytest.raises(msgspec.DecodeError, match="length"):
            ops.decode(msgspec.json.encode([[kind]]))


@pytest.mark.parametrize("pattern", SPELLINGS)
def test_every_pattern_has_words(pattern: str) -> None:
    assert complained(b'{"x": "?"}', dict[str, Annotated[str, Meta(pattern=pattern)]]) == (
        f"`[\u2026]` must be {SPELLINGS[pattern]}."
    )


def patterns(of: Any) -> Iterator[str]:
    """All patterns within a type."""
    if isinstance(of, inspect.StrType) and of.pattern is not None:
        yield of.pattern
    inner = [getattr(of, name, None) for name in ("types", "item_types", "item_type", "key_type", "value_type")]
    inner += [field.type for field in getattr(of, "fields", ())]
    for each in inner:
        for one in each if isinstance(each, tuple) else [each]:
            if isinstance(one, inspect.Type):
                yield from patterns(one)


def test_no_request_has_a_pattern_without_words() -> None:
    found = {pattern for command in COMMANDS for pattern in patterns(inspect.type_info(command))}
    assert found
    assert found <= SPELLINGS.keys()


@pytest.mark.parametrize("odd", [b"7", b'"?"', b"[]", b"{}", b"null", b"true", b"1.5", b"-1", b"[7]", b'{"x": 7}'])
@pytest.mark.parametrize("command", COMMANDS)
def test_no_field_of_any_request_is_complained_of_in_a_programmers_words(command: Any, odd: bytes) -> None:
    told_of = inspect.type_info(command)
    assert isinstance(told_of, inspect.StructType)
    for field in told_of.fields:
        data = b'{"action": %b, %b: %b}' % (msgspec.json.encode(command.__struct_config__.tag), b'"x"', b"1")
        data = data.replace(b'"x": 1', msgspec.json.encode(field.encode_name) + b": " + odd)
        try:
            msgspec.json.decode(data, type=command)
        except msgspec.DecodeError as error:
            told = in_words(str(error))
            assert told.endswith(".")
            assert not [word for word in ("Expected", "regex", "$", "`str`", "`int`", "JSON") if word in told], told


def test_what_is_wrong_with_an_op_is_said_in_words() -> None:
    with pytest.raises(msgspec.DecodeError) as raised:
        ops.decode(b'[["text", 0]]')
    assert "Expected" not in in_words(str(raised.value))
