"""Messages as the tail keeps them: every one comes back as it was, and small ones are small."""

from __future__ import annotations

from typing import Any
from unittest import mock

import pytest
from msgspec import Raw

from tests.support.conversations import awkward_object, message, noise_of_three_bytes, text_parts
from threadkeep.domain.bounds import FRAME_BYTES_MAX
from threadkeep.domain.json_values import encode
from threadkeep.domain.model import ConversationKey, Message, StoredMessage, Tokens
from threadkeep.stores import tail_elements
from threadkeep.stores.tail_elements import from_element, id_of, parent_of, to_element
from threadkeep.stores.tail_path import tail_of

KEY = ConversationKey("acme", "01890000-0000-7000-8000-000000000000")
PARENT = "01890000-0000-7000-8000-00000000002d"  # its bytes hold a newline's and a dash's neighbours
MESSAGES: dict[str, dict[str, Any]] = {
    "a short one": {},
    "a root": {"parent": None},
    "a child": {"parent": PARENT},
    "an answer": {
        "role": "assistant",
        "model": "m",
        "reply": PARENT,
        "usage": {"output_tokens": Raw(b"7"), "cost": Raw(b"1.0")},
    },
    "a failed one": {"role": "assistant", "status": "failed", "error": {"code": Raw(b'"x"')}},
    "one without parts": {"parts": ()},
    "awkward JSON": {"parts": ({"type": Raw(b'"odd"')} | awkward_object(),), "metadata": awkward_object()},
    "another script": {"parts": text_parts(noise_of_three_bytes(5_000))},
    "a system message": {"role": "system"},
    "a tool's": {"role": "tool", "status": "interrupted"},
}


@pytest.mark.parametrize("name", MESSAGES)
@pytest.mark.parametrize("epoch", [0, 2**53 - 1])
def test_every_message_comes_back_as_it_was(name: str, epoch: int) -> None:
    stored = StoredMessage(message(KEY, **MESSAGES[name]), epoch)
    element = to_element(stored)
    assert from_element(KEY.conversation, element) == stored
    assert encode(from_element(KEY.conversation, element)) == encode(stored)  # to the byte
    assert (id_of(element), parent_of(element)) == (stored.message.id, stored.message.parent)


def test_what_fits_no_frame_keeps_how_large_it_is_and_how_many_tokens_it_takes() -> None:
    whole = message(KEY, text_parts("x" * FRAME_BYTES_MAX), usage={"output_tokens": Raw(b"123")})
    kept = from_element(KEY.conversation, to_element(StoredMessage(whole)))
    assert kept == StoredMessage(whole.without_parts())
    assert kept is not None
    assert kept.message.tokens == Tokens(123)
    assert to_element(kept) == to_element(StoredMessage(whole))


def test_a_short_message_takes_little_more_than_its_ids_and_its_text() -> None:
    for text in ("Thanks!", "Qwxz 7?"):
        assert len(to_element(StoredMessage(message(KEY, text_parts(text))))) <= 16 + 16 + 4 + 2 + len(text) + 14


def test_a_path_ends_before_what_another_version_has_written() -> None:
    """Its format cannot be read here: as good as missing, so that the table is asked for it."""
    root = StoredMessage(message(KEY, id=KEY.conversation))
    middle = StoredMessage(message(KEY, id=PARENT, parent=root.message.id))
    newest = StoredMessage(message(KEY, parent=middle.message.id))
    path = [to_element(each) for each in (newest, middle, root)]
    with mock.patch.object(tail_elements, "_FORMAT", b"\x63"):
        path[1] = to_element(middle)
    tail = tail_of(KEY, owner="ann", leaf=newest.message.id, path=path)
    assert tail.messages == (newest,)
    assert tail.following == middle.message.id


@pytest.mark.parametrize("changed", [0x01, 0x80, 0xFF])
def test_an_element_that_is_not_as_it_was_written_is_as_good_as_missing(changed: int) -> None:
    """Nor is it taken for another text. Only the count, which the tier writes, may be another."""
    said = message(KEY, text_parts("hello world, and some more words"), id=KEY.conversation, parent=PARENT)
    element = to_element(StoredMessage(said))
    kept = from_element(KEY.conversation, element)
    for at in range(len(element)):
        other = element[:at] + bytes([element[at] ^ changed]) + element[at + 1 :]
        assert from_element(KEY.conversation, other) == (kept if 32 <= at < 36 else None)
    assert from_element(KEY.conversation, element[:-1]) is None
    assert from_element(KEY.conversation, element[:36]) is None


def test_the_element_of_one_conversation_says_nothing_of_it() -> None:
    """Nor of its time, which its id tells."""
    one: Message = message(KEY)
    element = to_element(StoredMessage(one))
    kept = from_element(KEY.conversation, element)
    assert kept is not None
    assert (kept.message.conversation, kept.message.created_at) == (KEY.conversation, one.created_at)
    assert KEY.conversation.encode() not in element
