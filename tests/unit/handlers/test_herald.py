"""The herald takes what the announcer queues, and what an operator does by the runbook."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from tests.support.erasing import sqs_record
from tests.support.house import LAPTOP
from tests.support.regions import Regions, regions
from threadkeep.domain.errors import WarmUnavailable

__all__ = ["regions"]

RUNBOOK = Path(__file__).parents[3] / "docs" / "runbook.md"


def test_an_erasure_begun_by_the_runbooks_job_is_taken_by_eraser_and_herald(regions: Regions) -> None:
    house = regions.eu
    conversation = house.conversation()
    house.ok(LAPTOP, "conversation.delete", conversation=conversation)
    (written,) = re.findall(r'^(\{"job": "erase".*\})$', RUNBOOK.read_text(encoding="utf-8"), re.MULTILINE)
    job = json.loads(written) | {"tenant": "acme", "conversation": conversation}
    for name in ("eraser", "herald"):
        assert house.run(name, {"Records": [sqs_record(json.dumps(job))]}) == {"batchItemFailures": []}
    lines = house.ok(LAPTOP, "erasure.get", erasure=conversation)["erasure"]["lines"]
    assert [line["passes"] for line in lines if line["region"] == house.region] == [1, 1, 1]


def test_a_job_of_no_kind_that_it_knows_is_put_aside_and_the_others_are_done(regions: Regions) -> None:
    house = regions.us
    conversation = regions.eu.conversation()
    message = regions.eu.message(conversation)
    regions.replicate()
    news = {"job": "message", "tenant": "acme", "conversation": conversation, "message": message}
    records = [sqs_record(json.dumps(news | {"job": "nothing"}), 0), sqs_record(json.dumps(news), 1)]
    assert house.run("herald", {"Records": records}) == {"batchItemFailures": [{"itemIdentifier": "message-0"}]}
    assert message in house.hot._conversations[house.key(conversation)].tail


def test_news_that_failed_are_put_back_for_a_while_that_grows_and_told_then(regions: Regions) -> None:
    house = regions.us
    conversation = regions.eu.conversation()
    regions.replicate()
    message = regions.eu.message(conversation)
    regions.replicate()
    news = json.dumps({"job": "message", "tenant": "acme", "conversation": conversation, "message": message})
    house.hot.unavailable = True
    for received in (1, 2, 3, 4, 5, 60, 10**6):
        answer = house.run("herald", {"Records": [sqs_record(news, 7, received=received)]})
        assert answer == {"batchItemFailures": [{"itemIdentifier": "message-7"}]}
    assert house.tell_queue.put_backs == [("receipt-7", delay_s) for delay_s in (2, 4, 8, 16, 30, 30, 30)]
    house.hot.unavailable = False
    assert house.run("herald", {"Records": [sqs_record(news, 7, received=8)]}) == {"batchItemFailures": []}
    assert message in house.hot._conversations[house.key(conversation)].tail
    assert len(house.tell_queue.put_backs) == 7, "what is done is not put back"


def test_news_that_could_not_even_be_put_back_come_again_all_the_same(
    regions: Regions, monkeypatch: pytest.MonkeyPatch
) -> None:
    house = regions.us

    def away(*_args: object, **_options: object) -> None:
        raise WarmUnavailable("SQS")

    monkeypatch.setattr(house.tell_queue, "put_back", away)
    records = [sqs_record("no job", number) for number in range(2)]
    failed = [{"itemIdentifier": f"message-{number}"} for number in range(2)]
    assert house.run("herald", {"Records": records}) == {"batchItemFailures": failed}
