"""The hot tier in Valkey: each verb is one script, named for it, in `threadkeep.stores.lua`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from threadkeep.domain.bounds import (
    LEASE_MS,
    LIVE_STREAMS_MAX,
    PAGE_OPS_BYTES_MAX,
    SETTLED_STATE_MS,
    VIEWERS_MAX,
)
from threadkeep.domain.json_values import encode
from threadkeep.domain.model import ConversationKey, LiveStream, Role
from threadkeep.domain.streams import (
    Accepted,
    AppendVerdict,
    Closed,
    Diverged,
    Duplicate,
    Facts,
    Fenced,
    Full,
    Gap,
    Held,
    Opened,
    OpenVerdict,
    ParentMissing,
    ParentOpen,
    Resumed,
    ResumeVerdict,
    Seal,
    Sealed,
    SealVerdict,
    StaleLeaf,
    Unknown,
    Writer,
)
from threadkeep.stores.hot_keys import HotKeys
from threadkeep.stores.lua import script
from threadkeep.stores.valkey_client import ValkeyClient


class _Told(msgspec.Struct, frozen=True):
    """What a viewer is told of a live stream besides its place."""

    parent: str | None
    role: Role


_TOLD = msgspec.json.Decoder(_Told)
_FACTS = msgspec.json.Decoder(Facts)
_SEAL = msgspec.json.Decoder(Seal)
_REFUSALS = {
    b"diverged": Diverged(),
    b"fenced": Fenced(),
    b"full": Full(),
    b"held": Held(),
    b"parent_missing": ParentMissing(),
    b"parent_open": ParentOpen(),
    b"unknown": Unknown(),
}


class HotValkey:
    """`HotStore` in Valkey. Every method is one command, but `live`, which takes two where anything is live."""

    def __init__(self, client: ValkeyClient, *, region: str) -> None:
        self._client = client
        self._region = region

    def open(
        self,
        key: ConversationKey,
        stream: str,
        *,
        writer: Writer,
        facts: Facts,
        held: int | None = None,
        takeover: bool = False,
        fork: bool = False,
        leaf: str | None = None,
        parent_settled: bool = True,
    ) -> OpenVerdict:
        """See `HotStore.open`."""
        keys = HotKeys(key)
        reply = self._client.run(
            script("open"),
            [keys.state(stream), keys.log(stream), keys.live, keys.viewers],
            [
                stream,
                writer.principal,
                writer.producer,
                encode(facts),
                encode(_Told(facts.parent, facts.role)),
                facts.parent or "",
                leaf or "",
                "" if held is None else held,
                int(takeover),
                int(fork),
                int(parent_settled),
                LEASE_MS,
                LIVE_STREAMS_MAX,
            ],
        )
        match reply:
            case [b"opened", epoch, offset, fresh, viewers]:
                return Opened(epoch, offset, fresh=bool(fresh), viewers=_names(viewers))
        refusal: OpenVerdict = _refusal(reply)
        return refusal

    def append(
        self, key: ConversationKey, stream: str, *, principal: str, epoch: int, offset: int, ops: bytes
    ) -> AppendVerdict:
        """See `HotStore.append`."""
        keys = HotKeys(key)
        reply = self._client.run(
            script("append"),
            [keys.state(stream), keys.log(stream), keys.viewers],
            [principal, epoch, offset, ops, LEASE_MS],
        )
        match reply:
            case [b"accepted", after, viewers]:
                return Accepted(after, _names(viewers))
            case [b"duplicate", after, viewers]:
                return Duplicate(after, _names(viewers))
        refusal: AppendVerdict = _refusal(reply)
        return refusal

    def seal(
        self, key: ConversationKey, stream: str, *, principal: str, epoch: int, offset: int, seal: Seal
    ) -> SealVerdict:
        """See `HotStore.seal`."""
        keys = HotKeys(key)
        reply = self._client.run(
            script("seal"), [keys.state(stream), keys.log(stream)], [principal, epoch, offset, encode(seal)]
        )
        match reply:
            case [b"sealed", kept, facts, settled, log]:
                return Sealed(
                    epoch=epoch,
                    seal=_SEAL.decode(kept),
                    facts=_FACTS.decode(facts),
                    log=tuple(log),
                    settled=bool(settled),
                )
        refusal: SealVerdict = _refusal(reply)
        return refusal

    def settle(self, key: ConversationKey, stream: str) -> tuple[str, ...]:
        """See `HotStore.settle`. A stream without a seal is forgotten as a whole."""
        keys = HotKeys(key)
        return _names(
            self._client.run(
                script("settle"),
                [keys.state(stream), keys.log(stream), keys.live, keys.viewers],
                [stream, SETTLED_STATE_MS],
            )
        )

    def resume(self, key: ConversationKey, stream: str, *, epoch: int, offset: int) -> ResumeVerdict:
        """See `HotStore.resume`."""
        keys = HotKeys(key)
        reply = self._client.run(
            script("resume"), [keys.state(stream), keys.log(stream)], [epoch, offset, PAGE_OPS_BYTES_MAX]
        )
        match reply:
            case [b"resumed", known, at, end, more, sealed, log]:
                return Resumed(epoch=known, at=at, log=tuple(log), offset=end, more=bool(more), sealed=bool(sealed))
        refusal: ResumeVerdict = _refusal(reply)
        return refusal

    def live(self, key: ConversationKey) -> tuple[LiveStream, ...]:
        """See `HotStore.live`."""
        keys = HotKeys(key)
        streams = sorted(_names(self._client.command("HKEYS", keys.live)))
        if not streams:
            return ()
        places = self._client.run(
            script("places"),
            [keys.live, *(name for stream in streams for name in (keys.state(stream), keys.log(stream)))],
            streams,
        )
        return tuple(self._live_stream(*place) for place in places)

    def subscribe(self, key: ConversationKey, connection: str, *, lease_ms: int) -> Full | None:
        """See `HotStore.subscribe`."""
        reply = self._client.run(script("subscribe"), [HotKeys(key).viewers], [connection, lease_ms, VIEWERS_MAX])
        refusal: Full | None = None if reply == [b"subscribed"] else _refusal(reply)
        return refusal

    def unsubscribe(self, key: ConversationKey, connections: Sequence[str]) -> None:
        """See `HotStore.unsubscribe`."""
        if connections:
            self._client.command("ZREM", HotKeys(key).viewers, *connections)

    def viewers(self, key: ConversationKey) -> tuple[str, ...]:
        """See `HotStore.viewers`."""
        return _names(self._client.run(script("viewers"), [HotKeys(key).viewers]))

    def _live_stream(self, stream: bytes, told: bytes, epoch: int, offset: int) -> LiveStream:
        known = _TOLD.decode(told)
        return LiveStream(
            stream=stream.decode(),
            epoch=epoch,
            offset=offset,
            parent=known.parent,
            role=known.role,
            region=self._region,
        )


def _refusal(reply: Any) -> Any:
    """What a script refused with: one of its own verb's verdicts."""
    match reply:
        case [b"closed", seal]:
            return Closed(_SEAL.decode(seal))
        case [b"gap", expected]:
            return Gap(expected)
        case [b"stale_leaf", leaf]:
            return StaleLeaf(leaf.decode() or None)
        case [name]:
            return _REFUSALS[name]
    raise AssertionError("a script answered with a verdict that this version does not know")


def _names(words: Sequence[bytes]) -> tuple[str, ...]:
    return tuple(word.decode() for word in words)
