"""The end of a conversation as the hot tier keeps it: its newest messages, one by one."""

from __future__ import annotations

from typing import Final

import msgspec
from msgspec import UNSET, UnsetType

from threadkeep.domain.model import Message, StoredMessage


class Erased(msgspec.Struct, frozen=True):
    """A gravestone stands here: the conversation was deleted, and nothing of it is taken in or given out."""


class Several(msgspec.Struct, frozen=True):
    """Several messages are roots and one of them is a prompt: what a path begins with is its own root, no other."""


SEVERAL: Final = Several()


class Tail(msgspec.Struct, frozen=True, kw_only=True):
    """What the hot tier knows of a path, from its newest message up.

    Attributes:
        owner: of the conversation; None where the tier does not know.
        leaf: the newest settled message on the way to the leaf that was asked for; None where there is none.
        messages: the path from there, newest first, as far as the tier holds it (page form, as
            `WarmStore.read_messages` gives them) and as was asked for.
        following: the message that comes next on the path; None where the root has been reached.
        first: the conversation's first message (page form), if it `is_prompt`; None: it is none; or `SEVERAL`. UNSET
            where the tier does not know, or it was not asked for: where the path reaches its root it never is.
        is_known: False where the tier cannot say where the path begins: the register was lost, or is not sure.
        is_loading: somebody else is filling the tail just now; wait a little and ask again.
    """

    owner: str | None = None
    leaf: str | None = None
    messages: tuple[StoredMessage, ...] = ()
    following: str | None = None
    first: StoredMessage | Several | UnsetType | None = UNSET
    is_known: bool = True
    is_loading: bool = False


def is_prompt(message: Message) -> bool:
    """Whether a conversation whose first message it is begins with what its models are told: a system message."""
    return message.role == "system" and message.parent is None
