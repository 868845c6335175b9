"""The hot tier as tests use it: its implementations, one conversation in one, and what only a test does to them."""

from __future__ import annotations

import time
from typing import Any
from uuid import uuid4

from valkey import Valkey

from local.state import Address
from tests.support.conversations import message as new_message
from threadkeep.config import HotConfig
from threadkeep.domain import ids
from threadkeep.domain.leaf import Claimed, ClaimVerdict, LeafUnknown, Register
from threadkeep.domain.model import ConversationKey, Message, StoredMessage
from threadkeep.domain.streams import (
    AppendVerdict,
    ExpireVerdict,
    Facts,
    Limits,
    Opened,
    OpenVerdict,
    ResumeVerdict,
    Seal,
    Sealed,
    SealedUnopened,
    SealVerdict,
    Writer,
)
from threadkeep.domain.tail import Erased, Tail
from threadkeep.ports import HotStore
from threadkeep.stores.hot_keys import HotKeys, deadline_entry, deadlines_of
from threadkeep.stores.hot_memory import HotMemory
from threadkeep.stores.hot_valkey import HotValkey
from threadkeep.stores.valkey_client import ValkeyClient, connect

REGION = "eu-west-1"
ANN = Writer("ann", "run-1")
"""The usual writer."""
COMPLETE = Seal(status="complete")
ROOT = Facts(parent=None, role="assistant")


class SystemClock:
    """The system's time."""

    def now_ms(self) -> int:
        return time.time_ns() // 1_000_000


class SetClock:
    """A time that tests set."""

    def __init__(self, now_ms: int = 1_800_000_000_000) -> None:
        self.ms = now_ms

    def now_ms(self) -> int:
        return self.ms


def client_of(address: Address, *, is_cluster: bool) -> ValkeyClient:
    """A client of a local Valkey."""
    config = HotConfig(host=address.host, port=address.port)
    return ValkeyClient(lambda: connect(config, region=REGION, is_cluster=is_cluster))


def hot_valkey(client: ValkeyClient, limits: Limits | None = None) -> HotValkey:
    """The hot tier in a local Valkey."""
    return HotValkey(client, region=REGION, limits=limits)


def new_key() -> ConversationKey:
    """A conversation that nobody else has, of a tenant that nobody else is."""
    return ConversationKey(f"tenant-{uuid4()}", new_id())


class _Ids:
    """Ids of some time ago, each newer than all before: of many in a millisecond, some ahead of the clock."""

    def __init__(self, ago_ms: int = 0) -> None:
        self._ago_ms = ago_ms
        self._last_ms = 0

    def mint(self) -> str:
        self._last_ms = max(SystemClock().now_ms() - self._ago_ms, self._last_ms + 1)
        return ids.mint(self._last_ms)


_IDS = _Ids()
_OLDER_IDS = _Ids(60_000)


def new_id() -> str:
    """An id of now, newer than all before."""
    return _IDS.mint()


def older_id() -> str:
    """An id older than any of `new_id`, newer than all of its own before."""
    return _OLDER_IDS.mint()


class ShiftedClock:
    """The system's time, with what has been added to it."""

    def __init__(self) -> None:
        self.ms = 0

    def now_ms(self) -> int:
        return SystemClock().now_ms() + self.ms


class Talk:
    """One conversation in a hot tier, and one stream of it."""

    def __init__(self, hot: HotStore, key: ConversationKey | None = None, stream: str | None = None) -> None:
        self.hot = hot
        self.key = new_key() if key is None else key
        self.stream = new_id() if stream is None else stream

    def other(self) -> Talk:
        """Another stream of the conversation, newer."""
        return Talk(self.hot, self.key)

    def open(self, *, writer: Writer = ANN, facts: Facts = ROOT, **options: Any) -> OpenVerdict | Erased:
        return self.hot.open(self.key, self.stream, writer=writer, facts=facts, **options)

    def opened(self, **options: Any) -> int:
        """Open it; its epoch."""
        verdict = self.open(**options)
        assert isinstance(verdict, Opened), verdict
        return verdict.epoch

    def answering(self, parent: str) -> Talk:
        """A new stream under that settled message, opened."""
        talk = self.other()
        talk.opened(facts=Facts(parent=parent, role="assistant"), leaf=parent)
        return talk

    def append(
        self, epoch: int, offset: int, ops: bytes = b"[]", *, principal: str = "ann", **told: Any
    ) -> AppendVerdict:
        return self.hot.append(self.key, self.stream, principal=principal, epoch=epoch, offset=offset, ops=ops, **told)

    def seal(self, epoch: int, offset: int, *, principal: str = "ann", seal: Seal = COMPLETE) -> SealVerdict:
        return self.hot.seal(self.key, self.stream, principal=principal, epoch=epoch, offset=offset, seal=seal)

    def stop(self, seal: Seal) -> Sealed | SealedUnopened:
        return self.hot.stop(self.key, self.stream, seal)

    def expire(self) -> ExpireVerdict:
        return self.hot.expire(self.key, self.stream)

    def file(self) -> None:
        self.hot.file(self.key, self.stream)

    def settle(self) -> tuple[str, ...]:
        return self.hot.settle(self.key, stored(self.key, self.stream))

    def fill(self, message: str, **facts: Any) -> tuple[str, ...]:
        """Have it filled as a message of that id."""
        return self.hot.fill(self.key, stored(self.key, message, **facts))

    def resume(self, epoch: int = 0, offset: int = 0, **options: Any) -> ResumeVerdict:
        return self.hot.resume(self.key, self.stream, epoch=epoch, offset=offset, **options)

    def watch(self, connection: str, *, lease_ms: int = 60_000) -> None:
        assert self.hot.subscribe(self.key, connection, lease_ms=lease_ms) is None

    def lag(self, *connections: str) -> None:
        self.hot.mark_lagging(self.key, connections)

    def written(self, *log: bytes, **options: Any) -> int:
        """Open it and write that; its epoch."""
        epoch = self.opened(**options)
        for offset, ops in enumerate(log):
            self.append(epoch, offset, ops)
        return epoch

    def closed(self, *log: bytes, seal: Seal = COMPLETE, **options: Any) -> int:
        """Open it, write that and seal it; its epoch."""
        epoch = self.written(*log, **options)
        assert isinstance(self.seal(epoch, len(log), seal=seal), Sealed)
        return epoch

    def claim(self, message: str, parent: str | None, *, fork: bool = False, **options: Any) -> ClaimVerdict | Erased:
        return self.hot.claim(self.key, message, parent=parent, fork=fork, **options)

    def kept(self, *, parent: str | None = None, fork: bool = True) -> str:
        """A new message that is claimed, put and filled; its id."""
        message = new_id()
        verdict = self.claim(message, parent, fork=fork)
        if verdict == LeafUnknown():
            verdict = self.claim(message, parent, fork=fork, confirmed=parent)
        assert verdict == Claimed(), verdict
        self.fill(message, parent=parent)
        return message

    def said(self, count: int, *, parent: str | None = None, **facts: Any) -> list[StoredMessage]:
        """So many new messages, each under the one before, filled by whoever has read the table; the oldest first."""
        self.hot.load(self.key, (), owner="ann", newest=parent)
        path: list[StoredMessage] = []
        for _ in range(count):
            path.append(stored(self.key, new_id(), parent=path[-1].message.id if path else parent, **facts))
            self.hot.fill(self.key, path[-1])
        return path

    def tail(self, leaf: str | None = None, *, limit: int = 20, reader: str | None = None, **options: bool) -> Tail:
        """The newest of the path, where nobody has deleted the conversation."""
        tail = self.hot.read_tail(self.key, leaf=leaf, limit=limit, reader=reader, **options)
        assert isinstance(tail, Tail), tail
        return tail


def stored(key: ConversationKey, message: str, *, epoch: int = 0, **facts: Any) -> StoredMessage:
    """A message of that id as the table holds it: a short one unless told."""
    made: Message = new_message(key, id=message, **facts)
    return StoredMessage(made, epoch)


class Lab:
    """A hot tier in memory, with what only a test does to it."""

    hot: HotStore

    def __init__(self) -> None:
        self._clock = ShiftedClock()
        self.hot = self._memory = HotMemory(self._clock, region=REGION)

    def limited(self, limits: Limits) -> HotStore:
        """A hot tier with other limits."""
        return HotMemory(self._clock, region=REGION, limits=limits)

    def pass_ms(self, talk: Talk, ms: int) -> None:  # noqa: ARG002 -- Valkey's clock cannot be set
        """Let so much time pass for a conversation, its stream and its entry in the index; viewers' leases apart."""
        self._clock.ms += ms

    def lose_register(self, talk: Talk) -> None:
        """Forget a conversation's leaf, as an eviction does."""
        conversation = self._memory._conversation(talk.key)
        conversation.register, conversation.owner, conversation.register_ends_ms = Register(), None, 0
        conversation.first_id = None

    def lose(self, talk: Talk) -> None:
        """Forget a conversation, as a cache that was lost."""
        self._memory._conversations.pop(talk.key, None)

    def lose_entry(self, talk: Talk) -> None:
        """Forget that the stream was filed, as a failover of the index's node may."""
        self._memory._deadlines.pop((talk.key, talk.stream), None)

    def close(self) -> None:
        """Give back what it holds."""


class ValkeyLab(Lab):
    """A hot tier in a real Valkey. Its clock goes on by itself: for time to pass, moments are moved back."""

    def __init__(self, address: Address, *, is_cluster: bool) -> None:
        self._client = client_of(address, is_cluster=is_cluster)
        self._server: Any = Valkey(host=address.host, port=address.port)  # the library types it for async use too
        self.hot = hot_valkey(self._client)

    def limited(self, limits: Limits) -> HotStore:
        return hot_valkey(self._client, limits)

    def pass_ms(self, talk: Talk, ms: int) -> None:
        keys = HotKeys(talk.key)
        state = keys.state(talk.stream)
        for field in ("lease", "silent", "long", "old"):
            self._move_back(state, field, ms)
        for name in (keys.tail, keys.first, keys.loading, keys.gravestone):
            if (ends_in_ms := self._server.pttl(name)) > 0:
                self._server.pexpire(name, ends_in_ms - ms)
        for field in self._server.hkeys(keys.register):
            if field not in {b"leaf", b"owner", b"first"}:
                self._move_back(keys.register, field, ms)
        shard, entry = deadlines_of(talk.key), deadline_entry(talk.key, talk.stream)
        if self._server.zscore(shard, entry) is not None:
            self._server.zincrby(shard, -ms, entry)

    def lose_register(self, talk: Talk) -> None:
        self._server.delete(HotKeys(talk.key).register)

    def lose(self, talk: Talk) -> None:
        keys = HotKeys(talk.key)
        streams = [stream.decode() for stream in self._server.hkeys(keys.live)]
        names = [name for stream in (*streams, talk.stream) for name in (keys.state(stream), keys.log(stream))]
        self._server.delete(
            keys.register,
            keys.live,
            keys.viewers,
            keys.lagging,
            keys.tail,
            keys.first,
            keys.loading,
            keys.gravestone,
            *names,
        )

    def lose_entry(self, talk: Talk) -> None:
        self._server.zrem(deadlines_of(talk.key), deadline_entry(talk.key, talk.stream))

    def close(self) -> None:
        self._client.close()
        self._server.close()

    def _move_back(self, name: str, field: str | bytes, ms: int) -> None:
        if self._server.hexists(name, field):
            self._server.hincrby(name, field, -ms)
