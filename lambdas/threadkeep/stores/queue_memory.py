"""A queue in memory: the reference, and a fake for tests."""

from __future__ import annotations

from typing import Any

import msgspec

from threadkeep.stores.queue_sqs import check_delay


class QueueMemory:
    """`threadkeep.ports.JobQueue` on a list.

    Attributes:
        jobs: what was sent and not yet taken, each with its delay in seconds.
        put_backs: receipts of what was taken and put back, each with its delay.
    """

    def __init__(self) -> None:
        self.jobs: list[tuple[bytes, int]] = []
        self.put_backs: list[tuple[str, int]] = []

    def send(self, job: msgspec.Struct, *, delay_s: int = 0) -> None:
        """See `JobQueue`."""
        check_delay(delay_s)
        self.jobs.append((msgspec.json.encode(job), delay_s))

    def put_back(self, receipt: str, *, delay_s: int) -> None:
        """See `JobQueue`."""
        self.put_backs.append((receipt, delay_s))

    def take(self) -> list[Any]:
        """All jobs, as plain values; the queue is empty then."""
        jobs, self.jobs = self.jobs, []
        return [msgspec.json.decode(body) for body, _ in jobs]
