"""What the handlers of queues and streams share: each record by itself, and only those come again that failed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import msgspec

from threadkeep import container, telemetry
from threadkeep.usecases.services import Services

Job = TypeVar("Job")


def work_off(
    event: dict[str, Any], jobs: msgspec.json.Decoder[Job], use_case: Callable[[Services, Job], object]
) -> dict[str, Any]:
    """Do the jobs of a batch from SQS; those that failed are named, and SQS gives them again.

    A job that cannot be read fails as well: after its attempts it ends in the dead-letter queue, where it is seen.
    """
    failed = []
    for record in event["Records"]:
        try:
            use_case(container.services(), jobs.decode(record["body"]))
        except Exception as error:  # noqa: BLE001 -- one job that fails keeps no other waiting
            telemetry.note_fault("A job failed; it comes again", error)
            failed.append(record["messageId"])
    telemetry.count("JobsDone", len(event["Records"]) - len(failed))
    telemetry.count("JobsFailed", len(failed))
    return {"batchItemFailures": [{"itemIdentifier": identifier} for identifier in failed]}
