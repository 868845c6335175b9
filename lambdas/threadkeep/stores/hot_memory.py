"""The hot tier in memory: the reference that Valkey's scripts are held to, and the one that tests run on."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from threadkeep.domain.bounds import (
    LEASE_MS,
    LIVE_STREAMS_MAX,
    PAGE_OPS_BYTES_MAX,
    SETTLED_STATE_MS,
    VIEWERS_MAX,
)
from threadkeep.domain.errors import HotUnavailable
from threadkeep.domain.model import ConversationKey, LiveStream
from threadkeep.domain.streams import (
    Accepted,
    AppendVerdict,
    Duplicate,
    Facts,
    Full,
    Opened,
    OpenVerdict,
    ParentMissing,
    ParentOpen,
    Reopen,
    Resumed,
    ResumeVerdict,
    Seal,
    Sealed,
    SealVerdict,
    StaleLeaf,
    Stream,
    Unknown,
    Writer,
    judge_append,
    judge_close,
    judge_open,
    next_epoch,
)
from threadkeep.ports import Clock


class _Conversation(msgspec.Struct):
    """What the tier holds of a conversation.

    Attributes:
        streams: by id, the live ones and those that settled lately.
        forgotten_at: when a settled stream's state goes (ms).
        leases: each viewer's connection, and when its lease ends (ms).
    """

    streams: dict[str, Stream] = {}
    forgotten_at: dict[str, int] = {}
    leases: dict[str, int] = {}


class HotMemory:
    """`HotStore` in memory, on the rules of `threadkeep.domain.streams`.

    Attributes:
        unavailable: while set, every call raises `HotUnavailable`.
    """

    def __init__(self, clock: Clock, *, region: str) -> None:
        self.unavailable = False
        self._clock = clock
        self._region = region
        self._conversations: dict[ConversationKey, _Conversation] = {}

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
        now_ms, conversation = self._clock.now_ms(), self._conversation(key)
        known = conversation.streams.get(stream)
        if known is None:
            refusal = _judge_place(
                conversation,
                parent=facts.parent,
                parent_settled=parent_settled,
                leaf=leaf,
                is_leaf_judged=not fork and held is None,
            )
            if refusal is not None:
                return refusal
            judged: object = Reopen(next_epoch(known=0, held=held or 0, now_ms=now_ms), keep_log=False)
        else:
            judged = judge_open(known, writer=writer, held=held, takeover=takeover, now_ms=now_ms)
        if not isinstance(judged, Reopen):
            return judged  # type: ignore[return-value]
        is_kept = known is not None and judged.keep_log
        record = Stream(
            epoch=judged.epoch,
            writer=writer,
            facts=known.facts if known is not None and is_kept else facts,
            lease_ms=now_ms + LEASE_MS,
            log=known.log if known is not None and is_kept else [],
        )
        conversation.streams[stream] = record
        if is_kept:
            return Opened(record.epoch, len(record.log))
        return Opened(record.epoch, 0, fresh=True, viewers=self.viewers(key))

    def append(
        self, key: ConversationKey, stream: str, *, principal: str, epoch: int, offset: int, ops: bytes
    ) -> AppendVerdict:
        """See `HotStore.append`."""
        record = self._conversation(key).streams.get(stream)
        verdict = judge_append(record, principal=principal, epoch=epoch, offset=offset, ops=ops)
        if record is None or not isinstance(verdict, Accepted | Duplicate):
            return verdict
        if isinstance(verdict, Accepted):
            record.log.append(ops)
        record.lease_ms = self._clock.now_ms() + LEASE_MS
        return msgspec.structs.replace(verdict, viewers=self.viewers(key))

    def seal(
        self, key: ConversationKey, stream: str, *, principal: str, epoch: int, offset: int, seal: Seal
    ) -> SealVerdict:
        """See `HotStore.seal`."""
        record = self._conversation(key).streams.get(stream)
        verdict = judge_close(record, principal=principal, epoch=epoch, offset=offset, seal=seal)
        if record is None or not isinstance(verdict, Seal):
            return verdict  # type: ignore[return-value]
        record.seal, record.sealed_by = verdict, (epoch, offset)
        return Sealed(epoch=epoch, seal=verdict, facts=record.facts, log=tuple(record.log), settled=record.settled)

    def settle(self, key: ConversationKey, stream: str) -> tuple[str, ...]:
        """See `HotStore.settle`. A stream without a seal is forgotten as a whole."""
        conversation = self._conversation(key)
        record = conversation.streams.get(stream)
        if record is not None and record.seal is None:
            del conversation.streams[stream]
        elif record is not None:
            record.settled = True
            record.log.clear()
            conversation.forgotten_at[stream] = self._clock.now_ms() + SETTLED_STATE_MS
        return self.viewers(key)

    def resume(self, key: ConversationKey, stream: str, *, epoch: int, offset: int) -> ResumeVerdict:
        """See `HotStore.resume`."""
        record = self._conversation(key).streams.get(stream)
        if record is None or record.settled:
            return Unknown()
        end = len(record.log)
        at = offset if epoch == record.epoch and offset <= end else 0
        page = _page(record.log, at)
        return Resumed(
            epoch=record.epoch,
            at=at,
            log=page,
            offset=at + len(page),
            more=at + len(page) < end,
            sealed=record.seal is not None,
        )

    def live(self, key: ConversationKey) -> tuple[LiveStream, ...]:
        """See `HotStore.live`."""
        conversation = self._conversation(key)
        return tuple(
            LiveStream(
                stream=stream,
                epoch=record.epoch,
                offset=len(record.log),
                parent=record.facts.parent,
                role=record.facts.role,
                region=self._region,
            )
            for stream, record in sorted(conversation.streams.items())
            if not record.settled
        )

    def subscribe(self, key: ConversationKey, connection: str, *, lease_ms: int) -> Full | None:
        """See `HotStore.subscribe`."""
        leases = self._conversation(key).leases
        if connection not in leases and len(leases) >= VIEWERS_MAX:
            return Full()
        leases[connection] = self._clock.now_ms() + lease_ms
        return None

    def unsubscribe(self, key: ConversationKey, connections: Sequence[str]) -> None:
        """See `HotStore.unsubscribe`."""
        leases = self._conversation(key).leases
        for connection in connections:
            leases.pop(connection, None)

    def viewers(self, key: ConversationKey) -> tuple[str, ...]:
        """See `HotStore.viewers`."""
        return tuple(self._conversation(key).leases)

    def _conversation(self, key: ConversationKey) -> _Conversation:
        """The conversation as it stands now: what has run out is gone. Every call goes through here."""
        if self.unavailable:
            raise HotUnavailable("the hot tier in memory is told to be unavailable")
        conversation = self._conversations.setdefault(key, _Conversation())
        now_ms = self._clock.now_ms()
        for connection in [name for name, end in conversation.leases.items() if end <= now_ms]:
            del conversation.leases[connection]
        for stream in [name for name, end in conversation.forgotten_at.items() if end <= now_ms]:
            del conversation.forgotten_at[stream], conversation.streams[stream]
        return conversation


def _judge_place(
    conversation: _Conversation, *, parent: str | None, parent_settled: bool, leaf: str | None, is_leaf_judged: bool
) -> StaleLeaf | ParentOpen | ParentMissing | Full | None:
    """Whether a new stream may stand under that parent (docs/protocol.md, section 2, "Turns")."""
    live = [stream for stream, record in conversation.streams.items() if not record.settled]
    present = max([*live, *([] if leaf is None else [leaf])], default=None)
    if parent != present and is_leaf_judged:
        return StaleLeaf(present)
    if parent in live:
        return ParentOpen()
    if not parent_settled:
        return ParentMissing()
    return Full() if len(live) >= LIVE_STREAMS_MAX else None


def _page(log: list[bytes], at: int) -> tuple[bytes, ...]:
    """Elements from there that make a page: at least one, if there is one."""
    total = 0
    for end in range(at, len(log)):
        total += len(log[end])
        if end > at and total > PAGE_OPS_BYTES_MAX:
            return tuple(log[at:end])
    return tuple(log[at:])
