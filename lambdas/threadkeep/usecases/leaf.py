"""The present leaf, the newest message of a conversation, settled or live; and why none may stand where it would."""

from __future__ import annotations

from contextlib import suppress

import msgspec

from threadkeep.domain.errors import HotUnavailable, Refused, conflict
from threadkeep.domain.model import ConversationKey, LiveStream
from threadkeep.usecases.gaps import Gaps
from threadkeep.usecases.services import Services
from threadkeep.usecases.tiers import Tiers


class Tip(msgspec.Struct, frozen=True):
    """Where a conversation ends: its newest settled message and its live streams."""

    settled: str | None
    live: tuple[LiveStream, ...]

    @property
    def leaf(self) -> str | None:
        """The newest of both."""
        return max((*(stream.stream for stream in self.live), *([self.settled] if self.settled else ())), default=None)

    @property
    def parents(self) -> dict[str, str | None]:
        """The live streams, each with its parent."""
        return {stream.stream: stream.parent for stream in self.live}

    def path_end(self, leaf: str | None) -> str | None:
        """The newest settled message on the way to that leaf."""
        parents = self.parents
        while leaf in parents:
            leaf = parents[leaf]
        return leaf


def read_live(services: Services, key: ConversationKey) -> tuple[LiveStream, ...]:
    """The live streams, as far as the hot tier can be reached."""
    try:
        return services.hot.live(key)
    except HotUnavailable:
        return ()  # what streams there settles in the table all the same


def read_tip(services: Services, key: ConversationKey) -> Tip:
    """Read it. The live ones first: one that settles in between is then seen twice rather than not at all."""
    live = read_live(services, key)
    return Tip(Tiers.of(services).newest_id(key), live)


def has_parent(services: Services, key: ConversationKey, parent: str | None) -> bool:
    """Whether the parent has settled, be it archived; a root needs none.

    It may have settled in another region and not be here yet. Then the hot tier is told of it, as it is told of any
    message, so that a turn under it is judged by it.
    """
    if parent is None or Tiers.of(services).has_message(key, parent):
        return True
    stored = Gaps.of(services).find(key, parent)
    if stored is None:
        return False
    with suppress(HotUnavailable):
        services.hot.fill(key, stored)
    return True


def is_ahead(services: Services, parent: str | None, leaf: str | None) -> bool:
    """Whether a parent that is not the leaf may be one that another region has written since."""
    return services.others is not None and parent is not None and (leaf is None or parent > leaf)


def stale_leaf(present: str | None) -> Refused:
    """The parent is not the present leaf, and no branch is meant."""
    return conflict("stale_leaf", "The conversation has gone on; read on from `leaf`, or fork.", leaf=present)


def parent_open() -> Refused:
    """The parent has not settled."""
    return conflict("parent_open", "The parent is still being written; ask again when it has settled.")


def parent_missing() -> Refused:
    """The parent is nowhere to be seen."""
    return conflict("parent_missing", "The parent is not here (yet); ask again in a moment.")
