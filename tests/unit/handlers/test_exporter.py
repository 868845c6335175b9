"""The exporter as SQS calls it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from handlers import exporter
from tests.support.exporting import ExporterContext, asked, record, shown
from tests.support.house import START_MS, House, serving
from threadkeep.domain import ids

SPARE_MS = 30_000


@pytest.fixture
def house() -> Iterator[House]:
    with serving(House()) as served:
        yield served


def take(body: str, remaining_ms: int = 900_000) -> Any:
    return exporter.handler({"Records": [record(body)]}, ExporterContext(remaining_ms))


def test_a_job_that_is_done_is_not_delivered_again(house: House) -> None:
    export = asked(house)
    (job,) = house.export_queue.take()
    assert take(json.dumps(job)) == {"batchItemFailures": []}
    assert shown(house, export)["state"] == "done"


def test_a_job_of_nobody_is_done_with(house: House) -> None:
    assert house.exports.read("acme", ids.mint(START_MS), now_ms=START_MS) is None
    unknown = {"internal": "threadkeep.export", "tenant": "acme", "export": ids.mint(START_MS)}
    assert take(json.dumps(unknown)) == {"batchItemFailures": []}


@pytest.mark.parametrize("body", ["", "{", "[]", '{"internal":"threadkeep.other"}', '{"internal":"threadkeep.export"}'])
def test_what_is_no_job_is_delivered_again_until_it_is_put_aside(
    house: House, body: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert house.export_queue.jobs == []
    with pytest.raises(exporter.ExportFailed):
        take(body)
    assert '"outcome":"fault"' in capsys.readouterr().out


def test_it_leaves_some_of_its_time_for_what_follows_the_last_piece(house: House) -> None:
    house.conversation()
    for remaining_ms, state in ((SPARE_MS, "failed"), (SPARE_MS + 1, "done")):
        export = asked(house)
        (job,) = house.export_queue.take()
        take(json.dumps(job), remaining_ms)
        assert shown(house, export)["state"] == state
