"""News of another region: what its writing means for those who watch a conversation here. Ids and facts, no content."""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import Meta

from threadkeep.domain.ids import ID_PATTERN
from threadkeep.domain.model import Role

Id = Annotated[str, Meta(pattern=ID_PATTERN)]


class _News(msgspec.Struct, frozen=True, kw_only=True, tag_field="job"):
    """Whose conversation it is of."""

    tenant: Annotated[str, Meta(min_length=1)]
    conversation: Id


class MessageNews(_News, frozen=True, kw_only=True, tag="message"):
    """A message has come.

    Attributes:
        is_other: it has taken the place of one that stood here under its id, as a global table has it where two regions
            wrote under one id without knowing of each other.
    """

    message: Id
    is_other: bool = False


class RootsNews(_News, frozen=True, kw_only=True, tag="roots"):
    """Several of its messages are roots, one of them a prompt."""


class HeadNews(_News, frozen=True, kw_only=True, tag="head"):
    """Title or metadata changed.

    Attributes:
        is_other: it is another owner's, as it is where two regions gave one id to two users.
    """

    is_other: bool = False


class StreamNews(_News, frozen=True, kw_only=True, tag="stream"):
    """A message begins to be written in that region, or begins anew; to be followed at its endpoint."""

    stream: Id
    epoch: int
    parent: Id | None
    role: Role
    region: str
    endpoint: str


News = MessageNews | RootsNews | HeadNews | StreamNews
