"""The hot tier in Valkey: each verb is one script, named for it, in `threadkeep.stores.lua`."""

from __future__ import annotations

from typing import Final

import msgspec
from msgspec import UNSET, UnsetType

from threadkeep.domain.bounds import LEAF_MS, LIVE_STREAMS_MAX, PAGE_OPS_BYTES_MAX, SETTLED_STATE_MS, TAIL_MS
from threadkeep.domain.json_values import encode
from threadkeep.domain.leaf import ClaimVerdict
from threadkeep.domain.model import ConversationKey, LiveStream, Role, StoredMessage
from threadkeep.domain.streams import (
    DEAD,
    SILENT,
    TOO_LONG,
    Accepted,
    Alive,
    AppendVerdict,
    Duplicate,
    ExpireVerdict,
    Facts,
    Opened,
    OpenVerdict,
    Resumed,
    ResumeVerdict,
    Seal,
    Sealed,
    SealedUnopened,
    SealVerdict,
    Writer,
)
from threadkeep.domain.tail import Erased
from threadkeep.stores.hot_keys import HotKeys
from threadkeep.stores.lua import script
from threadkeep.stores.tail_elements import kind_of_new, to_element
from threadkeep.stores.valkey_client import MemoryFull
from threadkeep.stores.valkey_deadlines import DeadlinesInValkey
from threadkeep.stores.valkey_replies import read_names, read_verdict
from threadkeep.stores.valkey_tail import TAIL_BOUNDS, TailInValkey
from threadkeep.stores.valkey_viewers import ViewersInValkey


class _Told(msgspec.Struct, frozen=True):
    """What a viewer is told of a live stream besides its place."""

    parent: str | None
    role: Role


_NEVER_MS: Final = 2**53
"""After every moment that the scripts, which reckon in doubles, can tell from the next."""
_TOLD = msgspec.json.Decoder(_Told)
_DEAD, _SILENT, _TOO_LONG = encode(DEAD), encode(SILENT), encode(TOO_LONG)


class HotValkey(ViewersInValkey, DeadlinesInValkey, TailInValkey):
    """`HotStore` in Valkey. Every method is one command, but `live` (two where anything is live) and `bury` (two)."""

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
    ) -> OpenVerdict | Erased:
        """See `HotStore.open`."""
        keys = HotKeys(key)
        reply = self._client.run(
            script("open"),
            [keys.state(stream), keys.log(stream), keys.live, keys.viewers, keys.register, keys.gravestone],
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
                self._limits.lease_ms,
                self._limits.silent_ms,
                self._limits.stream_ms_max,
                LIVE_STREAMS_MAX,
                self._limits.claim_void_ms,
                LEAF_MS,
                facts.ends_ms or "",
            ],
        )
        match reply:
            case [b"opened", epoch, offset, fresh, viewers]:
                return Opened(epoch, offset, fresh=bool(fresh), viewers=read_names(viewers))
        refusal: OpenVerdict | Erased = read_verdict(reply)
        return refusal

    def append(
        self,
        key: ConversationKey,
        stream: str,
        *,
        principal: str,
        epoch: int,
        offset: int,
        ops: bytes,
        ends_ms: int | UnsetType | None = UNSET,
    ) -> AppendVerdict:
        """See `HotStore.append`."""
        keys = HotKeys(key)
        reply = self._client.run(
            script("append"),
            [keys.state(stream), keys.log(stream), keys.viewers],
            [
                principal,
                epoch,
                offset,
                ops,
                self._limits.lease_ms,
                self._limits.silent_ms,
                self._limits.stream_bytes_max,
                "" if ends_ms is UNSET else ends_ms or _NEVER_MS,
            ],
        )
        match reply:
            case [b"accepted", after, viewers]:
                return Accepted(after, read_names(viewers))
            case [b"duplicate", after, viewers]:
                return Duplicate(after, read_names(viewers))
        refusal: AppendVerdict = read_verdict(reply)
        return refusal

    def seal(
        self, key: ConversationKey, stream: str, *, principal: str, epoch: int, offset: int, seal: Seal
    ) -> SealVerdict:
        """See `HotStore.seal`."""
        keys = HotKeys(key)
        verdict: SealVerdict = read_verdict(
            self._client.run(
                script("seal"),
                [keys.state(stream), keys.log(stream), keys.live],
                [principal, epoch, offset, encode(seal), stream, self._limits.seal_old_ms],
            )
        )
        return verdict

    def stop(self, key: ConversationKey, stream: str, seal: Seal) -> Sealed | SealedUnopened:
        """See `HotStore.stop`."""
        keys = HotKeys(key)
        verdict: Sealed | SealedUnopened = read_verdict(
            self._client.run(
                script("stop"),
                [keys.state(stream), keys.log(stream), keys.live],
                [stream, encode(seal), self._limits.seal_old_ms, SETTLED_STATE_MS],
            )
        )
        return verdict

    def expire(self, key: ConversationKey, stream: str) -> ExpireVerdict:
        """See `HotStore.expire`."""
        keys = HotKeys(key)
        reply = self._client.run(
            script("expire"),
            [keys.state(stream), keys.log(stream), keys.live],
            [stream, _DEAD, _SILENT, _TOO_LONG, self._limits.seal_old_ms],
        )
        match reply:
            case [b"alive", until_ms]:
                return Alive(until_ms)
        verdict: ExpireVerdict = read_verdict(reply)
        return verdict

    def settle(self, key: ConversationKey, stored: StoredMessage) -> tuple[str, ...]:
        """See `HotStore.settle`. A stream without a seal is forgotten as a whole."""
        keys, stream, element = HotKeys(key), stored.message.id, to_element(stored)
        return read_names(
            self._client.run(
                script("settle"),
                [
                    keys.state(stream),
                    keys.log(stream),
                    keys.live,
                    keys.viewers,
                    keys.register,
                    keys.gravestone,
                    keys.tail,
                    keys.first,
                ],
                [stream, SETTLED_STATE_MS, LEAF_MS, element, *TAIL_BOUNDS, TAIL_MS, kind_of_new(stored, element)],
            )
        )

    def claim(
        self,
        key: ConversationKey,
        message: str,
        *,
        parent: str | None,
        fork: bool,
        confirmed: str | UnsetType | None = UNSET,
    ) -> ClaimVerdict | Erased:
        """See `HotStore.claim`."""
        keys = HotKeys(key)
        verdict: ClaimVerdict | Erased = read_verdict(
            self._client.run(
                script("claim"),
                [keys.register, keys.live, keys.gravestone],
                [
                    message,
                    parent or "",
                    int(fork),
                    int(confirmed is not UNSET),
                    confirmed or "",
                    self._limits.claim_void_ms,
                    LEAF_MS,
                ],
            )
        )
        return verdict

    def fill(self, key: ConversationKey, stored: StoredMessage) -> tuple[str, ...]:
        """See `HotStore.fill`. A second command where memory is full: what frees it must not be refused."""
        keys, message, element = HotKeys(key), stored.message.id, to_element(stored)
        kind = kind_of_new(stored, element)
        try:
            reply = self._client.run(
                script("fill"),
                [keys.register, keys.viewers, keys.gravestone, keys.tail, keys.first, keys.live],
                [message, LEAF_MS, element, *TAIL_BOUNDS, TAIL_MS, kind],
            )
        except MemoryFull:
            reply = self._client.run(
                script("fill_bare"),
                [keys.register, keys.viewers, keys.gravestone, keys.first],
                [message, LEAF_MS, kind],
            )
        return read_names(reply)

    def release(self, key: ConversationKey, message: str) -> None:
        """See `HotStore.release`."""
        self._client.command("HDEL", HotKeys(key).register, message)

    def resume(
        self, key: ConversationKey, stream: str, *, epoch: int, offset: int, connection: str | None = None
    ) -> ResumeVerdict:
        """See `HotStore.resume`."""
        keys = HotKeys(key)
        reply = self._client.run(
            script("resume"),
            [keys.state(stream), keys.log(stream), keys.viewers, keys.lagging],
            [epoch, offset, PAGE_OPS_BYTES_MAX, connection or ""],
        )
        match reply:
            case [b"resumed", known, at, end, more, sealed, is_due, log]:
                return Resumed(
                    epoch=known,
                    at=at,
                    log=tuple(log),
                    offset=end,
                    more=bool(more),
                    sealed=bool(sealed),
                    is_due=bool(is_due),
                )
        refusal: ResumeVerdict = read_verdict(reply)
        return refusal

    def live(self, key: ConversationKey) -> tuple[LiveStream, ...]:
        """See `HotStore.live`."""
        keys = HotKeys(key)
        streams = sorted(read_names(self._client.command("HKEYS", keys.live)))
        if not streams:
            return ()
        places = self._client.run(
            script("places"),
            [keys.live, *(name for stream in streams for name in (keys.state(stream), keys.log(stream)))],
            streams,
        )
        return tuple(self._live_stream(*place) for place in places)

    def _live_stream(self, stream: bytes, told: bytes, epoch: int, offset: int, is_due: int) -> LiveStream:
        known = _TOLD.decode(told)
        return LiveStream(
            stream=stream.decode(),
            epoch=epoch,
            offset=offset,
            parent=known.parent,
            role=known.role,
            region=self._region,
            is_due=bool(is_due),
        )
