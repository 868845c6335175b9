"""The planner's and the archiver's handlers: what starts them, and that one that fails keeps no other waiting."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from handlers import archiver, planner
from tests.support.archiving import Resting
from tests.support.house import House, LambdaContext, house
from threadkeep.domain.bounds import ARCHIVE_DAYS_BACK_MAX
from threadkeep.ports import DueEntry

__all__ = ["house"]

DAY_MS = 24 * 60 * 60 * 1_000


def batch(*bodies: str) -> dict[str, Any]:
    """An event as SQS's event source mapping makes it."""
    return {
        "Records": [
            {
                "messageId": f"message-{number}",
                "receiptHandle": "cmVjZWlwdA==",
                "body": body,
                "attributes": {"ApproximateReceiveCount": "1"},
                "messageAttributes": {},
                "md5OfBody": "",
                "eventSource": "aws:sqs",
                "eventSourceARN": "arn:aws:sqs:eu-central-1:000000000000:threadkeep-test-archive",
                "awsRegion": "eu-central-1",
            }
            for number, body in enumerate(bodies)
        ]
    }


def run(handler: Callable[..., Any], event: dict[str, Any]) -> dict[str, Any]:
    answer: dict[str, Any] = handler(event, LambdaContext())
    return answer


def planned(house: House) -> list[str]:
    return [json.dumps(job) for job in house.archive_queue.take()]


def metrics(printed: str) -> dict[str, float]:
    """The sums of all metrics that were printed."""
    sums: dict[str, float] = {}
    for line in printed.splitlines():
        told = json.loads(line) if line.startswith('{"_aws"') else {}
        for name, value in told.items():
            if isinstance(value, list):
                sums[name] = sums.get(name, 0) + sum(value)
    return sums


def test_an_hour_brings_in_what_is_due_and_a_day_what_was_missed(house: House) -> None:
    resting = Resting(house)
    resting.say()
    resting.rest()
    house.clock.ms += (ARCHIVE_DAYS_BACK_MAX - 1) * DAY_MS
    assert run(planner.handler, {}) == {"queued": 0, "moved": 0}
    assert run(planner.handler, {"task": "deep"}) == {"queued": 1, "moved": 0}
    (job,) = planned(house)
    assert msgspec.json.decode(job, type=DueEntry).key == resting.key


def test_jobs_are_done_and_what_was_done_is_counted(house: House, capsys: pytest.CaptureFixture[str]) -> None:
    resting = Resting(house)
    for _ in range(3):
        resting.say()
    while resting.due_at is not None:
        resting.rest()
        run(planner.handler, {})
        assert run(archiver.handler, batch(*planned(house))) == {"batchItemFailures": []}
    resting.check_cold()
    counted = metrics(capsys.readouterr().out)
    assert {name: counted[name] for name in ("SegmentsWritten", "MessagesArchived", "MessagesRemoved")} == {
        "SegmentsWritten": 1,
        "MessagesArchived": 3,
        "MessagesRemoved": 3,
    }
    assert (counted["ConversationsPlanned"], counted["ConversationsCold"]) == (2, 1)


def test_a_job_that_fails_comes_again_alone(
    house: House, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    first, poisonous, last = (Resting(house) for _ in range(3))
    for resting in (first, poisonous, last):
        resting.say("a secret")
    house.replace(cold=first.cold)
    last.rest()
    run(planner.handler, {})
    read = house.manifests.read

    def fails(key: Any) -> Any:
        if key == poisonous.key:
            raise ValueError("of a secret")
        return read(key)

    monkeypatch.setattr(house.manifests, "read", fails)
    jobs = sorted(planned(house), key=lambda job: [one.conversation in job for one in (last, poisonous, first)])
    answer = run(archiver.handler, batch(*jobs, "{}", '{"key": 7}'))
    assert answer == {
        "batchItemFailures": [{"itemIdentifier": f"message-{number}"} for number in (1, 3, 4)],
    }
    monkeypatch.undo()
    assert [len(resting.manifests) for resting in (first, poisonous, last)] == [1, 0, 1]
    printed = capsys.readouterr().out
    assert "secret" not in printed
