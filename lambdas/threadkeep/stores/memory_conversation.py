"""What the hot tier in memory holds, and what every side of it works with."""

from __future__ import annotations

import msgspec

from threadkeep.domain.bounds import LEAF_MS
from threadkeep.domain.errors import HotUnavailable
from threadkeep.domain.leaf import Register
from threadkeep.domain.model import ConversationKey
from threadkeep.domain.streams import Limits, Seal, Stream
from threadkeep.ports import Clock


class Conversation(msgspec.Struct):
    """What the tier holds of a conversation.

    Attributes:
        streams: by id, the live ones and those that settled lately.
        forgotten_ms: when a settled stream's state goes.
        stopped: seals of streams that were never opened, and when each goes (ms).
        register: the leaf, and when it is forgotten (ms).
        owner: whose it is, forgotten with the register.
        tail: the newest settled messages, packed (`threadkeep.stores.tail_elements`), and when they go (ms).
        first: the conversation's first message, packed, where it is a prompt; and when it goes (ms).
        first_id: of it where it is none, forgotten with the register.
        has_several: that several are roots, one of them a prompt; forgotten with the register.
        loading: who is filling the tail, and until when (ms).
        gravestone_ends_ms: it was deleted, and until then that is remembered.
        leases: each viewer's connection, and when its lease ends (ms).
        lagging: so of viewers that lag.
    """

    streams: dict[str, Stream] = {}
    forgotten_ms: dict[str, int] = {}
    stopped: dict[str, tuple[Seal, int]] = {}
    register: Register = msgspec.field(default_factory=Register)
    register_ends_ms: int = 0
    owner: str | None = None
    tail: dict[str, bytes] = {}
    tail_ends_ms: int = 0
    first: bytes | None = None
    first_ends_ms: int = 0
    first_id: str | None = None
    has_several: bool = False
    loading: tuple[str, int] | None = None
    gravestone_ends_ms: int = 0
    leases: dict[str, int] = {}
    lagging: dict[str, int] = {}

    @property
    def live(self) -> tuple[str, ...]:
        """Ids of the streams that have not settled."""
        return tuple(stream for stream, record in self.streams.items() if not record.settled)

    @property
    def is_buried(self) -> bool:
        """Whether a gravestone stands."""
        return self.gravestone_ends_ms > 0

    def forget(self, now_ms: int) -> None:
        """Drop what has run out."""
        for leases in (self.leases, self.lagging):
            for connection in [name for name, end_ms in leases.items() if end_ms <= now_ms]:
                del leases[connection]
        for stream in [name for name, end_ms in self.forgotten_ms.items() if end_ms <= now_ms]:
            del self.forgotten_ms[stream], self.streams[stream]
        for stream in [name for name, (_, end_ms) in self.stopped.items() if end_ms <= now_ms]:
            del self.stopped[stream]
        if self.register_ends_ms <= now_ms:
            self.register, self.owner, self.first_id, self.has_several = Register(), None, None, False
        if self.tail_ends_ms <= now_ms:
            self.tail.clear()
        if self.first_ends_ms <= now_ms:
            self.first = None
        if self.loading is not None and self.loading[1] <= now_ms:
            self.loading = None
        if self.gravestone_ends_ms <= now_ms:
            self.gravestone_ends_ms = 0

    def keep_register(self, now_ms: int) -> Register:
        """The register, about to be changed: it stays a while longer."""
        self.register_ends_ms = now_ms + LEAF_MS
        return self.register


class MemoryTier:
    """Conversations in memory, by a clock.

    Attributes:
        unavailable: while set, every call raises `HotUnavailable`.
    """

    def __init__(self, clock: Clock, *, region: str, limits: Limits | None = None) -> None:
        self.unavailable = False
        self._clock = clock
        self._region = region
        self._limits = limits or Limits()
        self._conversations: dict[ConversationKey, Conversation] = {}
        self._deadlines: dict[tuple[ConversationKey, str], int] = {}

    def _check(self) -> None:
        if self.unavailable:
            raise HotUnavailable("the hot tier in memory is told to be unavailable")

    def _conversation(self, key: ConversationKey) -> Conversation:
        """The conversation as it stands now. Every call about one goes through here."""
        self._check()
        conversation = self._conversations.setdefault(key, Conversation())
        conversation.forget(self._clock.now_ms())
        return conversation
