"""Exports in a house: the exporter is given what the queue holds, as SQS gives it."""

from __future__ import annotations

import json
from typing import Any, Final

import pytest

from handlers import exporter
from tests.support.house import PHONE, Device, Frame, House, LambdaContext
from threadkeep.usecases.exporting import Outcome, make

TIME_MS: Final = 15 * 60_000


class ExporterContext(LambdaContext):
    """The time that is left of an invocation."""

    def __init__(self, remaining_ms: int) -> None:
        self._remaining_ms = remaining_ms

    def get_remaining_time_in_millis(self) -> int:
        """Milliseconds."""
        return self._remaining_ms


def record(body: str) -> dict[str, Any]:
    """A message as SQS hands it over."""
    return {
        "messageId": "00000000-0000-4000-8000-000000000001",
        "receiptHandle": "handle",
        "body": body,
        "attributes": {"ApproximateReceiveCount": "1"},
        "messageAttributes": {},
        "eventSource": "aws:sqs",
        "eventSourceARN": "arn:aws:sqs:eu-central-1:000000000000:threadkeep-test-exports",
        "awsRegion": "eu-central-1",
    }


def deliver(job: Any, *, remaining_ms: int = TIME_MS) -> str:
    """Give the exporter one job; what became of it."""
    outcomes: list[str] = []

    def noting(*args: Any, **options: Any) -> Outcome:
        outcome = make(*args, **options)
        outcomes.append(outcome)
        return outcome

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(exporter, "make", noting)
        answer = exporter.handler({"Records": [record(json.dumps(job))]}, ExporterContext(remaining_ms))
    assert answer == {"batchItemFailures": []}
    return outcomes[-1]


def run_exports(house: House, *, remaining_ms: int = TIME_MS) -> list[str]:
    """Give the exporter all that the queue holds; what became of each."""
    return [deliver(job, remaining_ms=remaining_ms) for job in house.export_queue.take()]


def asked(house: House, by: Device = PHONE, *, form: str = "jsonl", **fields: Any) -> str:
    """Ask for an export; its id."""
    export: str = house.ok(by, "export.create", format=form, **fields)["export"]["id"]
    return export


def shown(house: House, export: str, by: Device = PHONE) -> Frame:
    """How far it is."""
    found: Frame = house.ok(by, "export.get", export=export)["export"]
    return found


def content_of(house: House, export: str, tenant: str = "acme") -> bytes:
    """Its file."""
    return house.export_files.files[tenant, export]


def exported(house: House, by: Device = PHONE, *, form: str = "jsonl", **fields: Any) -> bytes:
    """Ask for an export and have it made; its file."""
    export = asked(house, by, form=form, **fields)
    assert run_exports(house) == ["done"]
    return content_of(house, export, by.tenant)


def lines_of(content: bytes) -> list[Frame]:
    """The lines of a file of JSON Lines."""
    return [json.loads(line) for line in content.splitlines()]
