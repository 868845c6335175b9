"""What comes to a region's functions by itself: the table's stream, in order, and queues, in any; at least once."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

import msgspec

from tests.simulation.regions.images import record
from tests.simulation.regions.table import Change
from threadkeep.stores.queue_sqs import check_delay

if TYPE_CHECKING:
    from tests.simulation.regions.deployment import Deployment

Handler = Callable[..., Any]

AGAIN_MS_MAX: Final = 3_000
BATCH_MAX: Final = 5


class TableStream:
    """A replica's stream, and the mapping that gives it to the announcer: in order, from the first that fails on anew.

    Attributes:
        read: how many records were handed on.
    """

    def __init__(self, region: Deployment, handler: Handler) -> None:
        self.read = 0
        self._region = region
        self._handler = handler
        self._records: deque[dict[str, Any]] = deque()
        self._number = 0
        self._is_due = False

    def put(self, change: Change, old: Any) -> None:
        """A change that the replica has taken up."""
        self._number += 1
        self._records.append(record(change, old, self._number))
        self._plan(self._region.scheduler.random.randint(1, 200))

    def _plan(self, delay_ms: int) -> None:
        if not self._is_due:
            self._is_due = True
            self._region.scheduler.spawn(self._run, after_ms=delay_ms)

    def _run(self) -> None:
        scheduler, failed = self._region.scheduler, self._region.is_frozen
        if not failed:
            batch = [self._records[place] for place in range(min(len(self._records), BATCH_MAX))]
            done = self._done(batch, self._region.run(self._handler, {"Records": batch}))
            failed = done < len(batch)
            self.read += done
            # Now and then they come once more although they are done.
            for _ in range(0 if scheduler.chance(0.05) else done):
                self._records.popleft()
        self._is_due = False
        if self._records:
            self._plan(scheduler.random.randint(100, AGAIN_MS_MAX) if failed else 1)

    def _done(self, batch: list[dict[str, Any]], answer: Any) -> int:
        """How many need not come again."""
        if answer is None:
            return 0
        numbers = [one["dynamodb"]["SequenceNumber"] for one in batch]
        failures = [numbers.index(failure["itemIdentifier"]) for failure in answer["batchItemFailures"]]
        return min(failures, default=len(batch))


class Queue:
    """`threadkeep.ports.JobQueue` with the function that works it off. What fails comes again, what succeeds may."""

    def __init__(self, region: Deployment, handler: Handler) -> None:
        self._region = region
        self._handler = handler

    def send(self, job: msgspec.Struct, *, delay_s: int = 0) -> None:
        """See `JobQueue`."""
        self._region.meet("warm", "before")
        check_delay(delay_s)
        body = msgspec.json.encode(job).decode()
        for _ in range(2 if self._region.scheduler.chance(0.05) else 1):
            self._give(body, delay_s * 1_000 + self._region.scheduler.random.randint(1, 200))
        self._region.meet("warm", "after")

    def put_back(self, receipt: str, *, delay_s: int) -> None:  # noqa: ARG002 -- the port's
        """See `JobQueue`. Jobs come again after a while of this queue's own, whenever they are to."""
        self._region.meet("warm", "before")

    def _give(self, body: str, delay_ms: int) -> None:
        self._region.scheduler.spawn(lambda: self._work(body), after_ms=delay_ms)

    def _work(self, body: str) -> None:
        again_ms = self._region.scheduler.random.randint(100, AGAIN_MS_MAX)
        if self._region.is_frozen:
            self._give(body, again_ms)
            return
        given = {"messageId": "1", "receiptHandle": "1", "body": body, "attributes": {"ApproximateReceiveCount": "1"}}
        answer = self._region.run(self._handler, {"Records": [given]})
        if answer is None or answer["batchItemFailures"]:
            self._give(body, again_ms)
