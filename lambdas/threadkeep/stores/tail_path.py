"""What a hot tier has found of a path, told as a `Tail`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from msgspec import UNSET, UnsetType

from threadkeep.domain.bounds import TAIL_BYTES_MAX
from threadkeep.domain.model import ConversationKey
from threadkeep.domain.tail import Tail
from threadkeep.stores.tail_elements import first_from, from_element, parent_of

ROOM_BYTES: Final = TAIL_BYTES_MAX * 3 // 4
"""A tail that takes more is full: of messages that fit a page, hardly one more would fit."""


def tail_of(
    key: ConversationKey,
    *,
    owner: str | None,
    leaf: str | UnsetType | None,
    path: Sequence[bytes],
    first: bytes = b"",
    is_loading: bool = False,
) -> Tail:
    """The tail from the elements of a path, newest first; ``leaf`` is UNSET where the tier is not sure of it.

    ``first`` is the element of the conversation's first message, its id alone (16 bytes), or `SEVERAL_ELEMENT`; empty:
    not known.

    The path ends before an element that cannot be read: another version has written it, or its bytes have changed, and
    it is as good as missing.
    """
    found = first_from(key.conversation, first)
    if leaf is UNSET:
        return Tail(owner=owner, first=found, is_known=False, is_loading=is_loading)
    messages = []
    following = leaf
    for element in path:
        stored = from_element(key.conversation, element)
        if stored is None:
            break
        messages.append(stored)
        following = parent_of(element)
    return Tail(
        owner=owner, leaf=leaf, messages=tuple(messages), following=following, first=found, is_loading=is_loading
    )
