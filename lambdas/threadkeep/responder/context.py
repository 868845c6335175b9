"""The part of a conversation that a model reads before it answers: a path of the tree, from one message up."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Final

from msgspec import UNSET

from threadkeep.domain.model import ConversationKey, Message
from threadkeep.ports import WarmStore

_PAGE_MESSAGES: Final = 50


def read_context(
    warm: WarmStore, key: ConversationKey, leaf: str, *, messages_max: int, tokens_max: int
) -> tuple[Message, ...]:
    """The path that ends with ``leaf``, oldest first, with all parts.

    Of the newest ``messages_max`` messages those that together take up to ``tokens_max`` tokens, the leaf in any case,
    and all system messages among them however many tokens those take.

    Raises:
        WarmUnavailable: the table cannot be read.
    """
    kept: list[Message] = []
    tokens = 0
    for message in islice(_path(warm, key, leaf), messages_max):
        tokens += message.tokens.count
        if tokens <= tokens_max or message.role == "system" or message.id == leaf:
            kept.append(_whole(warm, key, message))
    return tuple(reversed(kept))


def _path(warm: WarmStore, key: ConversationKey, leaf: str) -> Iterator[Message]:
    """From the leaf to the root. Ends early where a message is not here (yet)."""
    wanted: str | None = leaf
    before = leaf + "~"  # sorts right behind the leaf: bounds are exclusive
    while wanted is not None:
        page = warm.read_messages(key, before=before, limit=_PAGE_MESSAGES)
        for stored in page.messages:
            before = stored.message.id
            if before == wanted:
                yield stored.message
                wanted = stored.message.parent
        if not page.more or (wanted is not None and before < wanted):
            return


def _whole(warm: WarmStore, key: ConversationKey, message: Message) -> Message:
    """With its parts: pages come without large ones."""
    if message.parts is not UNSET:
        return message
    stored = warm.read_message(key, message.id)
    return message if stored is None else stored.message
