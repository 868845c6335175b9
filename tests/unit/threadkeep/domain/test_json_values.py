"""Clients' own JSON: every byte of it, and what counts as the same."""

from __future__ import annotations

import msgspec
import pytest
from msgspec import Raw

from threadkeep.domain.json_values import encode, read_object, read_text, same

AWKWARD = (
    '{"float":1.0,"int":1,"exponent":1e400,"tiny":1e-130,"big":9007199254740993,"digits":12345678901234567890123,'
    '"negative_zero":-0.0,"tenth":0.1,"list":[],"map":{},"empty":"","":[""],"nul":"a\\u0000b","null":null,'
    '"spaced":[1, 2,\\n3],"🙂":"caf\u00e9 cafe\u0301"}'
).replace("\\n", "\n")


def test_an_object_comes_back_byte_for_byte() -> None:
    assert encode(read_object(AWKWARD.encode())).decode() == AWKWARD


@pytest.mark.parametrize("data", ["[]", "1", '"a"', "null", "", "{", '{"a":}', "{1:2}"])
def test_what_is_no_object_is_refused(data: str) -> None:
    with pytest.raises(msgspec.DecodeError):
        read_object(data.encode())


@pytest.mark.parametrize(
    ("value", "text"),
    [('"a"', "a"), ('""', ""), ('"\\u0000\\ud83d\\ude42"', "\0🙂"), ("1", None), ("null", None), ('["a"]', None)],
)
def test_only_a_string_reads_as_text(value: str, text: str | None) -> None:
    assert read_text(Raw(value.encode())) == text


def test_nothing_reads_as_no_text() -> None:
    assert read_text(None) is None


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ('{"a":1,"b":[2]}', '{"b":[2],"a":1}'),
        ('{"a":[1,2]}', '{"a":[1,\n 2]}'),
        ('{"a":"caf\u00e9/"}', '{"a":"caf\\u00e9\\/"}'),
        ('{"a":1e400}', '{"a":1e400}'),
    ],
)
def test_spacing_escapes_and_order_of_names_do_not_matter(one: str, other: str) -> None:
    assert same(read_object(one.encode()), read_object(other.encode()))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("1", "1.0"),
        ("1", "1e0"),
        ("1", '"1"'),
        ('"1"', "1"),
        ("0.0", "-0.0"),
        ("9007199254740993", "9007199254740992"),
        ("1e400", "1e401"),
        ("null", "false"),
        ("0", "false"),
        ("1", "true"),
        ("[]", "{}"),
        ("[1,2]", "[2,1]"),
        ('"caf\u00e9"', '"cafe\u0301"'),
        ('""', "null"),
    ],
)
def test_what_differs_in_value_or_kind_is_not_the_same(one: str, other: str) -> None:
    assert not same({"a": [Raw(one.encode())]}, {"a": [Raw(other.encode())]})
    assert not same({}, {"a": Raw(one.encode())})
