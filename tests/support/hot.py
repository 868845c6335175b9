"""The hot tier as tests use it: its implementations, and one conversation in one with the usual arguments filled in."""

from __future__ import annotations

import time
from typing import Any
from uuid import uuid4

from local.state import Address
from threadkeep.config import HotConfig
from threadkeep.domain import ids
from threadkeep.domain.model import ConversationKey
from threadkeep.domain.streams import (
    AppendVerdict,
    Facts,
    Limits,
    Opened,
    OpenVerdict,
    ResumeVerdict,
    Seal,
    Sealed,
    SealVerdict,
    Writer,
)
from threadkeep.ports import HotStore
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


def new_id() -> str:
    """An id of now."""
    return ids.mint(time.time_ns() // 1_000_000)


def older_id() -> str:
    """An id older than any of `new_id`."""
    return ids.mint(time.time_ns() // 1_000_000 - 60_000)


class Talk:
    """One conversation in a hot tier, and one stream of it."""

    def __init__(self, hot: HotStore, key: ConversationKey | None = None, stream: str | None = None) -> None:
        self.hot = hot
        self.key = new_key() if key is None else key
        self.stream = new_id() if stream is None else stream

    def other(self) -> Talk:
        """Another stream of the conversation, newer."""
        return Talk(self.hot, self.key, ids.mint(ids.time_ms(self.stream) + 1))

    def open(self, *, writer: Writer = ANN, facts: Facts = ROOT, **options: Any) -> OpenVerdict:
        return self.hot.open(self.key, self.stream, writer=writer, facts=facts, **options)

    def opened(self, **options: Any) -> int:
        """Open it; its epoch."""
        verdict = self.open(**options)
        assert isinstance(verdict, Opened), verdict
        return verdict.epoch

    def append(self, epoch: int, offset: int, ops: bytes = b"[]", *, principal: str = "ann") -> AppendVerdict:
        return self.hot.append(self.key, self.stream, principal=principal, epoch=epoch, offset=offset, ops=ops)

    def seal(self, epoch: int, offset: int, *, principal: str = "ann", seal: Seal = COMPLETE) -> SealVerdict:
        return self.hot.seal(self.key, self.stream, principal=principal, epoch=epoch, offset=offset, seal=seal)

    def settle(self) -> tuple[str, ...]:
        return self.hot.settle(self.key, self.stream)

    def resume(self, epoch: int = 0, offset: int = 0) -> ResumeVerdict:
        return self.hot.resume(self.key, self.stream, epoch=epoch, offset=offset)

    def watch(self, connection: str, *, lease_ms: int = 60_000) -> None:
        assert self.hot.subscribe(self.key, connection, lease_ms=lease_ms) is None

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
