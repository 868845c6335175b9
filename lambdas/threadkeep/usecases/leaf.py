"""The present leaf: the newest message of a conversation, settled or live."""

from __future__ import annotations

import msgspec

from threadkeep.domain.errors import HotUnavailable
from threadkeep.domain.model import ConversationKey, LiveStream
from threadkeep.usecases.services import Services


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


def read_tip(services: Services, key: ConversationKey) -> Tip:
    """Read it. The live ones first: one that settles in between is then seen twice rather than not at all."""
    try:
        live = services.hot.live(key)
    except HotUnavailable:
        live = ()  # what streams there settles in the table all the same
    return Tip(services.warm.newest_id(key), live)
