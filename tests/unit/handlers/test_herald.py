"""The herald takes what the announcer queues, and what an operator does by the runbook."""

from __future__ import annotations

import json
import re
from pathlib import Path

from tests.support.erasing import sqs_record
from tests.support.house import LAPTOP
from tests.support.regions import Regions, regions

__all__ = ["regions"]

RUNBOOK = Path(__file__).parents[3] / "docs" / "runbook.md"


def test_an_erasure_begun_by_the_runbooks_job_is_taken_by_eraser_and_herald(regions: Regions) -> None:
    house = regions.eu
    conversation = house.conversation()
    house.ok(LAPTOP, "conversation.delete", conversation=conversation)
    (written,) = re.findall(r'`(\{"job": "erase".*?\})`', RUNBOOK.read_text(encoding="utf-8"))
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
