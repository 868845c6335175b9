"""What the handlers of queues and streams share: each record by itself, and only those come again that failed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import msgspec

from threadkeep import container, telemetry
from threadkeep.domain.bounds import JOB_AGAIN_S_MAX
from threadkeep.domain.errors import WarmUnavailable
from threadkeep.ports import JobQueue
from threadkeep.usecases.services import Services

Job = TypeVar("Job")


def work_off(
    event: dict[str, Any],
    jobs: msgspec.json.Decoder[Job],
    use_case: Callable[[Services, Job], object],
    *,
    soon: Callable[[Services], JobQueue] | None = None,
) -> dict[str, Any]:
    """Do the jobs of a batch from SQS; those that failed are named, and SQS gives them again.

    A job that cannot be read fails as well: after its attempts it ends in the dead-letter queue, where it is seen.

    Args:
        event: the batch.
        jobs: reads a job.
        use_case: does it.
        soon: the queue that they came from, where somebody waits for them. One that failed is put back for 2 s, then
            twice as long each time, `JOB_AGAIN_S_MAX` at the most; otherwise the queue's own time has to pass.
    """
    failed = []
    for record in event["Records"]:
        try:
            use_case(container.services(), jobs.decode(record["body"]))
        except Exception as error:  # noqa: BLE001 -- one job that fails keeps no other waiting
            telemetry.note_fault("A job failed; it comes again", error)
            failed.append(record["messageId"])
            if soon is not None:
                _put_back(soon(container.services()), record)
    telemetry.count("JobsDone", len(event["Records"]) - len(failed))
    telemetry.count("JobsFailed", len(failed))
    return {"batchItemFailures": [{"itemIdentifier": identifier} for identifier in failed]}


def _put_back(queue: JobQueue, record: dict[str, Any]) -> None:
    times = int(record["attributes"]["ApproximateReceiveCount"])
    try:
        # The exponent is bounded too: a count without end would make a number without end.
        queue.put_back(record["receiptHandle"], delay_s=min(2 ** min(times, 16), JOB_AGAIN_S_MAX))
    except WarmUnavailable as error:
        telemetry.note_fault("A job that failed was not put back; it comes again later", error)
