"""A queue in memory: the reference, and a fake for tests."""

from __future__ import annotations

from typing import Any

import msgspec

from threadkeep.domain.bounds import QUEUE_DELAY_S_MAX


class QueueMemory:
    """`threadkeep.ports.JobQueue` on a list.

    Attributes:
        jobs: what was sent and not yet taken, each with its delay in seconds.
    """

    def __init__(self) -> None:
        self.jobs: list[tuple[bytes, int]] = []

    def send(self, job: msgspec.Struct, *, delay_s: int = 0) -> None:
        """See `JobQueue`."""
        if not 0 <= delay_s <= QUEUE_DELAY_S_MAX:
            raise ValueError(f"a job may be delayed by 0 to {QUEUE_DELAY_S_MAX} seconds, not {delay_s}")
        self.jobs.append((msgspec.json.encode(job), delay_s))

    def take(self) -> list[Any]:
        """All jobs, as plain values; the queue is empty then."""
        jobs, self.jobs = self.jobs, []
        return [msgspec.json.decode(body) for body, _ in jobs]
