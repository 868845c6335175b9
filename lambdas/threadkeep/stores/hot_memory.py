"""The hot tier in memory: the reference that Valkey's scripts are held to, and the one that tests run on."""

from __future__ import annotations

import msgspec
from msgspec import UNSET, UnsetType

from threadkeep.domain.bounds import LIVE_STREAMS_MAX, PAGE_OPS_BYTES_MAX, SETTLED_STATE_MS, TAIL_MS
from threadkeep.domain.leaf import Claimed, ClaimVerdict, IdTaken, LeafUnknown, judge_claim
from threadkeep.domain.model import ConversationKey, LiveStream, StoredMessage
from threadkeep.domain.streams import (
    BEAT,
    Accepted,
    Alive,
    AppendVerdict,
    Closed,
    Duplicate,
    ExpireVerdict,
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
    SealedUnopened,
    SealVerdict,
    StaleLeaf,
    Stream,
    Unknown,
    Writer,
    judge_append,
    judge_close,
    judge_move,
    judge_open,
    judge_time,
    next_epoch,
)
from threadkeep.domain.tail import Erased
from threadkeep.stores.memory_conversation import Conversation
from threadkeep.stores.memory_deadlines import DeadlinesInMemory
from threadkeep.stores.memory_tail import TailInMemory
from threadkeep.stores.memory_viewers import ViewersInMemory


class HotMemory(ViewersInMemory, DeadlinesInMemory, TailInMemory):
    """`HotStore` in memory, on the rules of `threadkeep.domain.streams` and `threadkeep.domain.leaf`."""

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
        now_ms, conversation = self._clock.now_ms(), self._conversation(key)
        if conversation.is_buried:
            return Erased()
        if stream in conversation.stopped:
            return Closed(conversation.stopped[stream][0])
        known = conversation.streams.get(stream)
        if known is None:
            register = conversation.keep_register(now_ms)
            register.confirm(leaf, now_ms=now_ms, void_ms=self._limits.claim_void_ms)
            refusal = _judge_place(
                conversation,
                parent=facts.parent,
                parent_settled=parent_settled,
                is_leaf_judged=not fork and held is None,
            )
            if refusal is not None:
                return refusal
            judged: object = Reopen(next_epoch(known=0, held=held or 0, now_ms=now_ms), keep_log=False)
        else:
            judged = judge_open(known, writer=writer, held=held, takeover=takeover, now_ms=now_ms)
            if isinstance(judged, Reopen):
                judged = judge_move(known, facts) or judged
        if not isinstance(judged, Reopen):
            return judged  # type: ignore[return-value]
        record = self._reopened(known, judged, writer=writer, facts=facts)
        conversation.streams[stream] = record
        if judged.keep_log:
            return Opened(record.epoch, len(record.log))
        return Opened(record.epoch, 0, fresh=True, viewers=self.viewers(key))

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
        now_ms, record = self._clock.now_ms(), self._conversation(key).streams.get(stream)
        if record is not None and ends_ms is not UNSET:
            record.ends_ms = ends_ms
        verdict = judge_append(
            record,
            principal=principal,
            epoch=epoch,
            offset=offset,
            ops=ops,
            now_ms=now_ms,
            bytes_max=self._limits.stream_bytes_max,
        )
        if record is None or not isinstance(verdict, Accepted | Duplicate):
            return verdict
        record.lease_ms = now_ms + self._limits.lease_ms
        if isinstance(verdict, Accepted):
            record.log.append(ops)
            record.log_bytes += len(ops)
            if ops != BEAT:
                record.silent_ms = now_ms + self._limits.silent_ms
        return msgspec.structs.replace(verdict, viewers=self.viewers(key))

    def seal(
        self, key: ConversationKey, stream: str, *, principal: str, epoch: int, offset: int, seal: Seal
    ) -> SealVerdict:
        """See `HotStore.seal`."""
        record = self._conversation(key).streams.get(stream)
        verdict = judge_close(record, principal=principal, epoch=epoch, offset=offset, seal=seal)
        if record is None or not isinstance(verdict, Seal):
            return verdict  # type: ignore[return-value]
        if record.seal is None:
            record.sealed_by = (epoch, offset)
            self._end(record, verdict)
        return _sealed(record, verdict)

    def stop(self, key: ConversationKey, stream: str, seal: Seal) -> Sealed | SealedUnopened:
        """See `HotStore.stop`."""
        conversation = self._conversation(key)
        record = conversation.streams.get(stream)
        if record is None:
            stands, _ = conversation.stopped.get(stream, (seal, 0))
            conversation.stopped[stream] = (stands, self._clock.now_ms() + SETTLED_STATE_MS)
            return SealedUnopened()
        if record.seal is None:
            self._end(record, seal)
        return _sealed(record, record.seal or seal)

    def expire(self, key: ConversationKey, stream: str) -> ExpireVerdict:
        """See `HotStore.expire`."""
        now_ms, record = self._clock.now_ms(), self._conversation(key).streams.get(stream)
        if record is None or record.settled:
            return Unknown()
        if record.due_ms() > now_ms:
            return Alive(record.due_ms())
        end = record.seal or judge_time(record, now_ms=now_ms)
        assert end is not None, "what is due has its end"  # noqa: S101 -- by `Stream.due_ms`
        if record.seal is None:
            self._end(record, end)
        return _sealed(record, end)

    def settle(self, key: ConversationKey, stored: StoredMessage) -> tuple[str, ...]:
        """See `HotStore.settle`. A stream without a seal is forgotten as a whole."""
        conversation, stream = self._conversation(key), stored.message.id
        record = conversation.streams.get(stream)
        if record is not None and record.seal is None:
            del conversation.streams[stream]
        elif record is not None:
            record.settled = True
            record.log.clear()
            conversation.forgotten_ms[stream] = self._clock.now_ms() + SETTLED_STATE_MS
        return self.fill(key, stored)

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
        now_ms, void_ms, conversation = self._clock.now_ms(), self._limits.claim_void_ms, self._conversation(key)
        if conversation.is_buried:
            return Erased()
        if message in conversation.live:
            return IdTaken()
        register = conversation.register
        if confirmed is not UNSET:
            register = conversation.keep_register(now_ms)
            register.confirm(confirmed, now_ms=now_ms, void_ms=void_ms)
        if not register.holds(message):
            if not register.is_sure(now_ms=now_ms, void_ms=void_ms):
                return LeafUnknown()
            verdict = judge_claim(register, conversation.live, parent=parent, fork=fork)
            if not isinstance(verdict, Claimed):
                return verdict
        conversation.keep_register(now_ms).claim(message, now_ms=now_ms)
        return Claimed()

    def fill(self, key: ConversationKey, stored: StoredMessage) -> tuple[str, ...]:
        """See `HotStore.fill`."""
        now_ms, conversation = self._clock.now_ms(), self._conversation(key)
        if not conversation.is_buried:
            self._note_first(conversation, stored)
            conversation.keep_register(now_ms).fill(stored.message.id, now_ms=now_ms)
            self._keep(conversation, [stored], TAIL_MS)
        return self.viewers(key)

    def release(self, key: ConversationKey, message: str) -> None:
        """See `HotStore.release`."""
        self._conversation(key).register.release(message)

    def resume(
        self, key: ConversationKey, stream: str, *, epoch: int, offset: int, connection: str | None = None
    ) -> ResumeVerdict:
        """See `HotStore.resume`."""
        conversation = self._conversation(key)
        record = conversation.streams.get(stream)
        verdict: ResumeVerdict = Unknown()
        if record is not None and not record.settled:
            end = len(record.log)
            at = offset if epoch == record.epoch and offset <= end else 0
            page = _page(record.log, at)
            verdict = Resumed(
                epoch=record.epoch,
                at=at,
                log=page,
                offset=at + len(page),
                more=at + len(page) < end,
                sealed=record.seal is not None,
                is_due=record.due_ms() <= self._clock.now_ms(),
            )
        if connection in conversation.lagging and not (isinstance(verdict, Resumed) and verdict.more):
            conversation.leases[connection] = conversation.lagging.pop(connection)
        return verdict

    def live(self, key: ConversationKey) -> tuple[LiveStream, ...]:
        """See `HotStore.live`."""
        now_ms, conversation = self._clock.now_ms(), self._conversation(key)
        return tuple(
            LiveStream(
                stream=stream,
                epoch=record.epoch,
                offset=len(record.log),
                parent=record.facts.parent,
                role=record.facts.role,
                region=self._region,
                is_due=record.due_ms() <= now_ms,
            )
            for stream, record in sorted(conversation.streams.items())
            if not record.settled
        )

    def _reopened(self, known: Stream | None, judged: Reopen, *, writer: Writer, facts: Facts) -> Stream:
        """The record that an accepted open makes. A new epoch may be silent anew, but does not get more time in all."""
        now_ms, limits = self._clock.now_ms(), self._limits
        record = Stream(
            epoch=judged.epoch,
            writer=writer,
            facts=facts,
            lease_ms=now_ms + limits.lease_ms,
            silent_ms=now_ms + limits.silent_ms,
            long_ms=now_ms + limits.stream_ms_max,
            log=[],
            ends_ms=facts.ends_ms,
        )
        if known is not None:
            record.long_ms = known.long_ms
            if judged.epoch == known.epoch:
                record.silent_ms = known.silent_ms
            if judged.keep_log:
                record.facts, record.log, record.log_bytes = known.facts, known.log, known.log_bytes
                record.ends_ms = known.ends_ms
        return record

    def _end(self, record: Stream, seal: Seal) -> None:
        record.seal = seal
        record.old_ms = self._clock.now_ms() + self._limits.seal_old_ms


def _sealed(record: Stream, seal: Seal) -> Sealed:
    return Sealed(epoch=record.epoch, seal=seal, facts=record.facts, log=tuple(record.log), settled=record.settled)


def _judge_place(
    conversation: Conversation, *, parent: str | None, parent_settled: bool, is_leaf_judged: bool
) -> StaleLeaf | ParentOpen | ParentMissing | Full | None:
    """Whether a new stream may stand under that parent (docs/protocol.md, section 2, "Turns")."""
    live = conversation.live
    verdict = judge_claim(conversation.register, live, parent=parent, fork=not is_leaf_judged)
    if isinstance(verdict, StaleLeaf | ParentOpen):
        return verdict
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
