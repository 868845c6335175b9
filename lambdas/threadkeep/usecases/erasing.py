"""Erasing: a region's stores are cleared of a conversation, pass by pass, and each writes its line of the receipt.

The first pass takes what is there, the second what was under way at the time: whoever had been let in before the
tombstone stood has come to an end by then. What lands later still is announced (`announcing`) and taken as well.
Every step may be repeated and may break off: the job then comes again, and finds less to do.
"""

from __future__ import annotations

from collections.abc import Callable

from threadkeep.domain import frames
from threadkeep.domain.bounds import QUEUE_DELAY_S_MAX
from threadkeep.domain.erasure import ErasureJob, Store, Tombstone
from threadkeep.domain.model import ConversationKey
from threadkeep.ports import JobQueue
from threadkeep.usecases.limits import release_stream
from threadkeep.usecases.services import Services


def erase(services: Services, job: ErasureJob) -> None:
    """Clear the region's bucket, and in the home region the table: the eraser's part.

    Raises:
        WarmUnavailable: a store or the queue could not be reached; what was removed by then is counted.
    """

    def clear(pass_: _Pass) -> None:
        if services.region == pass_.tombstone.regions[0]:
            while count := services.erasures.clear(pass_.key):
                pass_.note("table", count)
            pass_.end("table")
        pass_.note("objects", services.objects.remove(pass_.key))
        pass_.end("objects")

    _run(services, job, services.erase_queue, clear)


def herald(services: Services, job: ErasureJob) -> None:
    """Clear the region's hot tier and tell whoever watches: the herald's part.

    Raises:
        HotUnavailable: the hot tier could not be reached.
        WarmUnavailable: the table or the queue could not.
    """

    def clear(pass_: _Pass) -> None:
        bury(services, pass_.key, owner=pass_.tombstone.owner)
        pass_.end("hot")

    _run(services, job, services.tell_queue, clear)


def bury(services: Services, key: ConversationKey, *, owner: str) -> None:
    """Drop all that the region's hot tier has of a deleted conversation, count it, and tell who watched.

    Its owner's live streams are released, since none of these settles any more.

    Raises:
        HotUnavailable: it could not be reached.
        WarmUnavailable: what it had could not be written down.
    """
    live = services.hot.live(key)
    count, viewers = services.hot.bury(key)
    for stream in live:
        release_stream(services, key, owner, stream.stream)
    if viewers:
        services.push.send(viewers, frames.conversation_deleted(key.conversation))
    if count:
        _note(services, key, "hot", count)


class _Pass:
    """One pass over a region's stores. It is the last one if it begins when the second is due."""

    def __init__(self, services: Services, key: ConversationKey, tombstone: Tombstone) -> None:
        self.key = key
        self.tombstone = tombstone
        self.is_last = services.clock.now_ms() >= tombstone.second_pass_ms
        self._services = services

    def note(self, store: Store, count: int) -> None:
        """So many were found and removed."""
        if count:
            _note(self._services, self.key, store, count)

    def end(self, store: Store) -> None:
        """The store has been gone through."""
        _note(self._services, self.key, store, 0, is_pass=True, is_done=self.is_last)


def _run(services: Services, job: ErasureJob, queue: JobQueue, clear: Callable[[_Pass], None]) -> None:
    key = ConversationKey(job.tenant, job.conversation)
    tombstone, _ = services.erasures.read(key)
    if tombstone is None:
        return  # nothing is erased that nobody deleted
    wait_ms = tombstone.second_pass_ms - services.clock.now_ms()
    if job.stage == "second" and wait_ms > 0:
        _queue_second(queue, job, wait_ms)  # a queue holds a job back for less than that
        return
    pass_ = _Pass(services, key, tombstone)
    clear(pass_)
    if job.stage == "first" and not pass_.is_last:
        _queue_second(queue, job, wait_ms)


def _queue_second(queue: JobQueue, job: ErasureJob, wait_ms: int) -> None:
    second = ErasureJob(tenant=job.tenant, conversation=job.conversation, stage="second")
    queue.send(second, delay_s=min(QUEUE_DELAY_S_MAX, -(-wait_ms // 1_000)))


def _note(
    services: Services, key: ConversationKey, store: Store, count: int, *, is_pass: bool = False, is_done: bool = False
) -> None:
    services.erasures.note(
        key,
        services.region,
        store,
        count=count,
        is_pass=is_pass,
        is_done=is_done,
        now_ms=services.clock.now_ms(),
    )
