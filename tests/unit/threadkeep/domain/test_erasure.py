"""Terms, tombstones and receipts: what stands in them, and when an erasure is done."""

from __future__ import annotations

import msgspec
import pytest

from tests.support.conversations import NOW_MS, conversation, tombstone
from threadkeep.domain import times
from threadkeep.domain.bounds import PULSE_EVERY_MS
from threadkeep.domain.erasure import Erasure, ErasureJob, ReceiptLine, State, Terms, Tombstone

DAY_MS = 86_400_000
HOME, OTHER = "eu-central-1", "us-east-1"


def lines_of(buried: Tombstone, state: State) -> list[ReceiptLine]:
    return [
        ReceiptLine(region=region, store=store, found=1, removed=1, passes=1, state=state, updated_at="then")
        for region, store in buried.stores
    ]


def test_every_region_clears_its_own_and_the_first_the_table() -> None:
    assert tombstone(regions=(HOME, OTHER)).stores == (
        (HOME, "hot"),
        (HOME, "objects"),
        (HOME, "table"),
        (OTHER, "hot"),
        (OTHER, "objects"),
    )


def test_an_erasure_is_done_when_every_line_is_and_not_before() -> None:
    buried = tombstone(regions=(HOME, OTHER))
    done = lines_of(buried, "done")
    assert Erasure.of("c", buried, done).state == "done"
    for number in range(len(done)):
        one_runs = [*done]
        one_runs[number] = msgspec.structs.replace(done[number], state="running")
        assert Erasure.of("c", buried, one_runs).state == "running"
        assert Erasure.of("c", buried, done[:number] + done[number + 1 :]).state == "running", "one has not begun"
    assert Erasure.of("c", buried, []).state == "running"


def test_a_line_of_a_region_that_was_not_there_then_is_none_of_the_receipts() -> None:
    buried = tombstone(regions=(HOME,))
    late = msgspec.structs.replace(lines_of(buried, "done")[0], region="sa-east-1")
    assert [line.region for line in Erasure.of("c", buried, [late]).lines] == [HOME] * 3


def test_what_stays_is_told_with_its_end() -> None:
    buried = tombstone(pitr_days=7, second_pass_ms=NOW_MS + 1_800_000)
    assert {stays.what: stays.until for stays in Erasure.of("c", buried, []).stays} == {
        "backups": times.to_rfc3339(NOW_MS + 1_800_000 + 7 * DAY_MS),
        "exports": times.to_rfc3339(NOW_MS + 2 * DAY_MS),
    }


@pytest.mark.parametrize(
    ("wanted", "given", "kept"),
    [
        (None, {}, None),
        (5, {}, 5),
        (5, {"*": 9}, 5),
        (None, {"acme": 3, "*": 9}, 3),
        (None, {"acme": 30, "*": 9}, 30),
        (None, {"other": 3}, None),
    ],
)
def test_a_tenants_own_retention_stands_before_everybodys_and_the_smaller_counts(
    wanted: int | None, given: dict[str, int], kept: int | None
) -> None:
    assert Terms(regions=(HOME,), retention_days=given).retention_of("acme", wanted) == kept


def test_a_tenant_by_the_name_of_everybody_is_no_more_than_one_of_them() -> None:
    assert Terms(regions=(HOME,), retention_days={"*": 9}).retention_of("*", None) == 9


def test_a_retention_counts_from_the_last_activity_and_its_minute() -> None:
    kept = conversation(retention_days=2)
    assert kept.expires_ms == NOW_MS + 2 * DAY_MS + PULSE_EVERY_MS
    assert not kept.is_expired(NOW_MS + 2 * DAY_MS + PULSE_EVERY_MS - 1)
    assert kept.is_expired(NOW_MS + 2 * DAY_MS + PULSE_EVERY_MS)
    assert kept.lives_ms(NOW_MS) == 2 * DAY_MS + PULSE_EVERY_MS
    assert kept.lives_ms(NOW_MS + 9 * DAY_MS) == 1


def test_without_a_retention_nothing_ends() -> None:
    kept = conversation()
    assert (kept.expires_ms, kept.lives_ms(NOW_MS), kept.is_expired(10**15)) == (None, None, False)


@pytest.mark.parametrize(
    "job",
    [
        b'{"tenant":"acme","conversation":"x"}',
        b'{"tenant":"","conversation":"0193e4a0-0000-7000-8000-000000000001"}',
        b'{"conversation":"0193e4a0-0000-7000-8000-000000000001"}',
        b'{"tenant":"acme","conversation":"0193e4a0-0000-7000-8000-000000000001","stage":"last"}',
    ],
)
def test_a_job_of_another_form_is_none(job: bytes) -> None:
    with pytest.raises(msgspec.ValidationError):
        msgspec.json.decode(job, type=ErasureJob)
