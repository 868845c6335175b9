"""Packed bodies: small, exact, and never another content than the one that was packed."""

from __future__ import annotations

import hashlib
import json
import zlib
from pathlib import Path

import pytest

from tests.support.conversations import awkward_object, message, text_parts
from threadkeep.domain.errors import Unreadable
from threadkeep.domain.json_values import encode
from threadkeep.domain.model import ConversationKey, Message
from threadkeep.stores.packing import Body, pack, unpack
from threadkeep.stores.packing_dictionary import DICTIONARY

HEADER_BYTES = 17
OTHER_LANGUAGES = Path(__file__).parents[3] / "data" / "other-languages.json"
KEY = ConversationKey("acme", "01a0c450-6c00-7745-89d2-49210750a2df")


@pytest.fixture
def packed_message() -> Message:
    return message(KEY, (awkward_object(),), metadata=awkward_object(), usage=awkward_object(), reply=KEY.conversation)


def test_a_body_comes_back_byte_for_byte(packed_message: Message) -> None:
    body = unpack(KEY.conversation, packed_message.id, pack(packed_message))
    assert encode(body) == encode(Body.from_message(packed_message))


def test_packing_is_always_alike(packed_message: Message) -> None:
    assert pack(packed_message) == pack(packed_message)


def test_every_single_damaged_byte_is_noticed(packed_message: Message) -> None:
    packed = pack(packed_message)
    for place in range(len(packed)):
        damaged = packed[:place] + bytes([packed[place] ^ 1]) + packed[place + 1 :]
        with pytest.raises(Unreadable):
            unpack(KEY.conversation, packed_message.id, damaged)


@pytest.mark.parametrize("kept_bytes", [0, 1, 16, 17, 18, -1])
def test_a_body_cut_short_is_noticed(packed_message: Message, kept_bytes: int) -> None:
    with pytest.raises(Unreadable):
        unpack(KEY.conversation, packed_message.id, pack(packed_message)[:kept_bytes])


def test_another_messages_body_is_damage_too_and_the_error_says_which_message(packed_message: Message) -> None:
    other = message(KEY, text_parts("other"))
    with pytest.raises(Unreadable, match=packed_message.id) as unreadable:
        unpack(KEY.conversation, packed_message.id, pack(other))
    assert (unreadable.value.conversation, unreadable.value.item) == (KEY.conversation, packed_message.id)
    with pytest.raises(Unreadable):
        unpack(other.id, packed_message.id, pack(packed_message))


def test_an_unknown_format_says_so(packed_message: Message) -> None:
    with pytest.raises(Unreadable, match="not of format 2"):
        unpack(KEY.conversation, packed_message.id, b"\x01" + pack(packed_message)[1:])


def test_the_dictionary_of_format_2_is_the_one_that_bodies_were_packed_with() -> None:
    known = "59998f3eeea44818195b77116616202dd5f963aed91dc531abb2ce818c80cd63"
    assert hashlib.sha256(DICTIONARY).hexdigest() == known


def test_a_short_body_takes_less_than_its_text() -> None:
    text = "Could you explain how this works, and what other people use it for?"
    assert len(pack(message(KEY, text_parts(text)))) <= 0.8 * len(text)  # its header with it


def plain_bytes(packed: Message) -> int:
    """What deflate makes of a body that it was told nothing about."""
    deflate = zlib.compressobj(wbits=-15)
    return len(deflate.compress(encode(Body.from_message(packed))) + deflate.flush())


OTHERS = json.loads(OTHER_LANGUAGES.read_text("utf-8")) | {
    "code": "def by_place(rows):\n    return sorted(rows, key=lambda row: (row['place'], -row['age']))\n",
    "empty": "",
    "what no word is like": "".join(chr(33 + number * 7919 % 90) for number in range(400)),
}


@pytest.mark.parametrize("name", OTHERS)
def test_what_is_not_english_takes_less_than_by_plain_deflate_too(name: str) -> None:
    """A tenth less; or 40 bytes, which are the frame of its JSON."""
    told = message(KEY, text_parts(OTHERS[name]))
    packed = pack(told)
    assert unpack(KEY.conversation, told.id, packed).parts == told.parts
    plain = plain_bytes(told)
    assert len(packed) - HEADER_BYTES <= max(0.9 * plain, plain - 40)
