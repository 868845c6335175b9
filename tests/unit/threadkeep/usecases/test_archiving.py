"""A conversation that rests goes cold, pass by pass, whatever happens in between."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any, Final

import pytest

from tests.support.archiving import DAY_MS, REGIONS, Crashed, Resting
from tests.support.conversations import message, noise, text_parts
from tests.support.house import House, house
from threadkeep.domain import ids, times
from threadkeep.domain.archive import unarchived_until_ms
from threadkeep.domain.bounds import (
    ARCHIVE_IDLE_MS,
    ARCHIVE_LEASE_MS,
    ARCHIVE_SETTLE_MS,
    FRAME_BYTES_MAX,
    ID_AHEAD_MS_MAX,
    PULSE_EVERY_MS,
    RETENTION_MARGIN_MS,
    SEGMENT_BYTES_MAX,
)
from threadkeep.domain.erasure import ErasureJob
from threadkeep.domain.errors import WarmUnavailable
from threadkeep.domain.model import StoredMessage
from threadkeep.usecases import segmenting
from threadkeep.usecases.tiers import Tiers

__all__ = ["house"]

LARGE: Final = "x" * (FRAME_BYTES_MAX + 1)
"""No frame carries it: it goes as a body of its own."""


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Segments of three messages, pages of two: a few messages are many."""
    monkeypatch.setattr(segmenting, "SEGMENT_MESSAGES_MAX", 3)
    monkeypatch.setattr(segmenting, "MESSAGES_AT_ONCE", 2)


def said(house: House, *texts: str, **fields: Any) -> Resting:
    resting = Resting(house, **fields)
    for text in texts:
        resting.say(text)
    return resting


def a_few(house: House) -> Resting:
    """Two segments' worth, one body among it."""
    return said(house, "one", "two", LARGE, "four", "five")


# --- the ordinary way -------------------------------------------------------------------------------------------


def test_a_conversation_is_cold_after_two_passes_and_the_table_is_empty_only_then(house: House) -> None:
    resting = said(house, "one", "two", LARGE)
    first = resting.pass_()
    assert first is not None
    assert (first.state, first.segments, first.archived, first.removed) == ("settling", 1, 3, 0)
    assert resting.warm == set(resting.said)
    resting.check_readable()
    second = resting.pass_()
    assert second is not None
    assert (second.state, second.segments, second.archived, second.removed) == ("cold", 0, 0, 3)
    assert resting.due_at is None
    resting.check_cold()


def test_it_rests_for_thirty_days_from_its_last_activity_not_from_its_entry(house: House) -> None:
    resting = said(house, "one")
    house.clock.ms += 20 * DAY_MS
    resting.say("two")
    active_ms = house.clock.ms - 1
    outcome = resting.pass_()
    assert outcome is not None
    assert outcome.state == "active"
    assert resting.manifests == ()
    assert resting.due_at == times.to_rfc3339(active_ms + 31 * DAY_MS)
    resting.go_cold()
    assert [outcome.state for outcome in resting.outcomes] == ["active", "settling", "cold"]
    resting.check_cold()


def test_what_is_covered_stays_in_the_table_until_the_manifest_has_settled(house: House) -> None:
    resting = said(house, "one")
    resting.pass_()
    (manifest,) = resting.manifests
    assert resting.due_at == times.to_rfc3339(manifest.archived_ms + ARCHIVE_SETTLE_MS)
    house.warm.due_at[resting.key] = times.to_rfc3339(manifest.archived_ms + ARCHIVE_SETTLE_MS - 1)
    outcome = resting.pass_()
    assert outcome is not None
    assert (outcome.state, outcome.removed) == ("settling", 0)
    assert resting.warm == set(resting.said)
    resting.go_cold()
    resting.check_cold()


def test_a_conversation_without_messages_is_cold_at_once(house: House) -> None:
    resting = said(house)
    outcome = resting.pass_()
    assert outcome is not None
    assert outcome.state == "cold"
    assert resting.due_at is None
    assert resting.objects() == {}


def test_a_woken_conversation_goes_cold_again_beside_what_is_cold_already(house: House) -> None:
    resting = said(house, "one", "two")
    resting.go_cold()
    resting.say("three")
    resting.check_readable()
    assert resting.due_at == times.to_rfc3339(house.clock.ms - 1 + 31 * DAY_MS)
    resting.go_cold()
    resting.check_cold()
    assert [manifest.count for manifest in resting.manifests] == [2, 1]


def unnoted(resting: Resting, at_ms: int) -> str:
    """A message of which the pulse says nothing, as where another region's write took that along."""
    stored = StoredMessage(message(resting.key, text_parts("late"), id=ids.mint(at_ms)))
    assert resting.house.warm.put_message(resting.key.tenant, stored) is None
    resting.said[stored.message.id] = stored
    return stored.message.id


@pytest.mark.parametrize("ahead_ms", [0, ID_AHEAD_MS_MAX])
def test_what_readers_look_for_in_no_segment_is_in_none_whatever_the_pulse_says(house: House, ahead_ms: int) -> None:
    resting = said(house, "one", "two")
    resting.rest()
    late = unnoted(resting, house.clock.ms + ahead_ms)
    until_ms = unarchived_until_ms(late, idle_ms=ARCHIVE_IDLE_MS)
    tiers = Tiers.of(house.services)
    while late in resting.warm:
        outcome = resting.pass_()
        assert outcome is not None
        assert (outcome.state == "cold") == (resting.warm == set())
        resting.check_readable()
        assert tiers.has_message(resting.key, late)
        is_archived = any(manifest.last >= late for manifest in resting.manifests)
        assert is_archived == (house.clock.ms >= until_ms) != tiers.is_fresh(late)
        if resting.warm == {late} and not is_archived:
            assert resting.due_at == times.to_rfc3339(until_ms), "it is looked at again when it may be archived"
    resting.check_cold()


def test_all_of_a_conversation_is_in_no_segment_as_long_as_its_own_id_is_young(house: House) -> None:
    resting = said(house)
    old = unnoted(resting, house.clock.ms - 9 * DAY_MS)  # brought in from elsewhere
    house.warm.active_at[resting.key] = times.to_rfc3339(house.clock.ms - 40 * DAY_MS)
    house.warm.due_at[resting.key] = times.to_rfc3339(house.clock.ms)
    outcome = resting.pass_()
    assert outcome is not None
    assert (outcome.state, outcome.archived) == ("settling", 0)
    assert resting.due_at == times.to_rfc3339(unarchived_until_ms(resting.conversation, idle_ms=ARCHIVE_IDLE_MS))
    assert Tiers.of(house.services).has_message(resting.key, old)
    resting.go_cold()
    resting.check_cold()


def test_late_and_back_dated_messages_are_archived_in_their_place(house: House) -> None:
    resting = said(house, "one", "two", "three")
    between_ms = house.clock.ms - 2
    resting.go_cold()
    resting.say("back-dated", at_ms=between_ms - DAY_MS * 400)
    resting.say("late", at_ms=between_ms)
    resting.check_readable()
    resting.go_cold()
    resting.check_cold()
    segments = sorted((manifest.first, manifest.last) for manifest in resting.manifests)
    assert segments[0][1] > segments[1][0]  # they overlap


def test_what_arrives_between_two_passes_is_not_removed_with_the_rest(house: House) -> None:
    resting = said(house, "one", "two")
    resting.pass_()
    late = resting.say("late", at_ms=house.clock.ms - 60 * DAY_MS)
    resting.pass_()
    resting.check_readable()
    assert late in resting.warm
    resting.go_cold()
    resting.check_cold()


# --- sizes ------------------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("small")
def test_a_conversation_larger_than_a_segment_makes_several(house: House) -> None:
    resting = said(house, *(f"number {number}" for number in range(10)))
    resting.go_cold()
    resting.check_cold()
    assert sorted(manifest.count for manifest in resting.manifests) == [1, 3, 3, 3]


def test_segments_end_by_bytes_too_however_few_messages_that_are(house: House) -> None:
    resting = said(house, *(noise(SEGMENT_BYTES_MAX // 3, seed) for seed in range(4)))
    resting.go_cold()
    resting.check_cold()
    assert sorted(manifest.count for manifest in resting.manifests) == [2, 2]


@pytest.mark.usefixtures("small")
def test_one_pass_writes_so_many_segments_and_the_next_goes_on(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(segmenting, "ARCHIVE_PASS_SEGMENTS_MAX", 2)
    resting = said(house, *(f"number {number}" for number in range(20)))
    outcome = resting.pass_()
    assert outcome is not None
    assert outcome.segments == 2
    assert resting.due_at == times.to_rfc3339(house.clock.ms)
    resting.go_cold()
    resting.check_cold()


def test_one_pass_removes_so_many_messages_and_the_next_goes_on(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(segmenting, "MESSAGES_AT_ONCE", 2)
    monkeypatch.setattr(segmenting, "ARCHIVE_PASS_REMOVED_MAX", 3)
    resting = said(house, *(f"number {number}" for number in range(9)))
    resting.pass_()
    outcome = resting.pass_()
    assert outcome is not None
    assert (outcome.state, outcome.removed) == ("settling", 4)
    assert resting.due_at == times.to_rfc3339(house.clock.ms)
    resting.check_readable()
    resting.go_cold()
    resting.check_cold()


def test_a_thousand_messages_take_a_hundredth_of_a_put_each_at_most(house: House) -> None:
    resting = said(house, *(f"number {number}" for number in range(1_000)))
    resting.go_cold()
    resting.check_cold()
    puts = sum(bucket.puts for bucket in resting.cold.buckets.values())
    assert puts == len(REGIONS)
    assert puts <= 0.01 * len(resting.said)


# --- crashes, two at once, awakenings ---------------------------------------------------------------------------


def at_call(number: int, happens: Callable[[str], None]) -> Callable[[str], None]:
    """Let something happen at that call, counted from 1, of all that are made."""
    left = [number]

    def before(call: str) -> None:
        left[0] -= 1
        if left[0] == 0:
            happens(call)

    return before


def crash(_call: str) -> None:
    raise Crashed


def fail(call: str) -> None:
    raise WarmUnavailable(call)


def calls_to_cold(house: House) -> int:
    """How many calls it takes when nothing happens."""
    calls: list[str] = []
    resting = a_few(house)
    resting.go_cold(resting.watched(calls.append))
    resting.check_cold()
    assert len(calls) > 40
    return len(calls)


@pytest.mark.parametrize("happens", [crash, fail])
@pytest.mark.parametrize("place", ["before", "after"])
@pytest.mark.usefixtures("small")
def test_whatever_step_breaks_off_each_message_is_read_once_and_in_the_end_all_is_cold(
    house: House, happens: Callable[[str], None], place: str
) -> None:
    """A30: a crash between any two writes."""
    for number in range(1, calls_to_cold(house) + 1):
        resting = a_few(house)
        broken = resting.watched(**{place: at_call(number, happens)})
        with suppress(Crashed, WarmUnavailable):  # one region's bucket may fail unnoticed, where another is asked
            resting.go_cold(broken)
            assert happens is fail
        resting.check_readable()
        house.archive_queue.take()
        resting.go_cold()
        resting.check_cold()


def test_a_batch_of_deletions_that_breaks_off_is_finished(house: House) -> None:
    resting = a_few(house)
    resting.pass_()
    gone = sorted(resting.said)[1:3]
    house.manifests.remove_messages(resting.key, gone)
    resting.check_readable()
    resting.go_cold()
    resting.check_cold()


@pytest.mark.usefixtures("small")
def test_an_archiver_that_comes_in_between_at_any_step_does_no_harm(house: House) -> None:
    for number in range(1, calls_to_cold(house) + 1):
        resting = a_few(house)

        def another(_call: str, resting: Resting = resting) -> None:
            resting.pass_()
            resting.check_readable()

        resting.go_cold(resting.watched(at_call(number, another)))
        resting.check_cold()


@pytest.mark.usefixtures("small")
def test_a_conversation_that_wakes_at_any_step_loses_nothing_and_goes_cold_in_the_end(house: House) -> None:
    for number in range(1, calls_to_cold(house) + 1):
        resting = a_few(house)

        def wakes(_call: str, resting: Resting = resting) -> None:
            resting.say("good morning")
            resting.say("and a late one", at_ms=house.clock.ms - 100 * DAY_MS)
            resting.check_readable()

        resting.go_cold(resting.watched(at_call(number, wakes)))
        resting.check_readable()
        assert resting.warm == set()
        assert len(resting.said) == 7


# --- damage -----------------------------------------------------------------------------------------------------


def spoil(resting: Resting, *regions: str, at: int = 20) -> None:
    """A byte of every segment changes there."""
    for region in regions:
        for name, content in resting.objects(region).items():
            if name.startswith("segments/"):
                resting.objects(region)[name] = content[:at] + bytes([content[at] ^ 1]) + content[at + 1 :]


def lose(resting: Resting, *regions: str) -> None:
    """Every object goes missing there, bodies too."""
    for region in regions:
        resting.objects(region).clear()


@pytest.mark.parametrize("damage", [spoil, lose])
@pytest.mark.parametrize("regions", [REGIONS[:1], REGIONS[1:], REGIONS])
def test_a_segment_that_is_damaged_before_it_has_settled_is_written_again_and_nothing_is_deleted_before(
    house: House, damage: Callable[..., None], regions: tuple[str, ...]
) -> None:
    resting = a_few(house)
    resting.pass_()
    intact = {region: dict(resting.objects(region)) for region in REGIONS}
    damage(resting, *regions)
    removed: list[bool] = []

    def look(call: str) -> None:
        if call == "remove_messages":
            removed.append({region: resting.objects(region) for region in REGIONS} == intact)

    resting.go_cold(resting.watched(look))
    assert removed == [True]
    resting.check_cold()
    assert len(resting.manifests) == 1


def test_what_is_damaged_too_early_is_restored_and_still_not_removed(house: House) -> None:
    resting = a_few(house)
    resting.pass_()
    (manifest,) = resting.manifests
    lose(resting, *REGIONS)
    house.warm.due_at[resting.key] = times.to_rfc3339(manifest.archived_ms + ARCHIVE_SETTLE_MS - 1)
    outcome = resting.pass_()
    assert outcome is not None
    assert (outcome.state, outcome.segments, outcome.removed) == ("settling", 0, 0)
    assert resting.warm == set(resting.said)
    assert manifest.object_key in resting.objects()
    resting.go_cold()
    resting.check_cold()


def test_a_segment_that_is_damaged_while_it_is_being_removed_is_put_together_from_both(house: House) -> None:
    """One member is lost everywhere, and the table still has its messages; those of the other have left it."""
    resting = said(house, *(f"number {number}" for number in range(150)))
    resting.pass_()
    (manifest,) = resting.manifests
    house.manifests.remove_messages(resting.key, [one for one in resting.said if one > manifest.members[0].last])
    spoil(resting, *REGIONS)
    resting.check_readable()
    resting.go_cold()
    resting.check_cold()
    assert resting.manifests == (manifest,)


def test_of_a_segment_that_cannot_be_restored_all_is_archived_anew_that_the_table_has(house: House) -> None:
    """Its only member is lost everywhere, and so is one of its messages: the manifest can never be true again."""
    resting = a_few(house)
    resting.pass_()
    first, second, *_ = sorted(resting.said)
    house.manifests.remove_messages(resting.key, [second])
    lose(resting, *REGIONS)
    outcome = resting.pass_()
    assert outcome is not None
    assert (outcome.segments, outcome.archived, outcome.removed) == (1, 3, 0)
    resting.pass_()
    # No other segment may go by the first id, so that message stays where it is; a day later it is looked at again.
    assert resting.warm == {first}
    assert resting.due_at == times.to_rfc3339(house.clock.ms + ARCHIVE_LEASE_MS)
    del resting.said[second]
    resting.check_readable()
    # Together with an older one it fits into a segment.
    resting.say("older", at_ms=house.clock.ms - 100 * DAY_MS)
    resting.go_cold()
    assert resting.warm == set()
    resting.check_readable()


def test_while_a_region_does_not_answer_nothing_is_deleted(house: House) -> None:
    resting = a_few(house)
    resting.pass_()
    resting.cold.buckets[REGIONS[1]].unavailable = True
    with pytest.raises(WarmUnavailable):
        resting.pass_()
    assert resting.warm == set(resting.said)
    resting.cold.buckets[REGIONS[1]].unavailable = False
    resting.go_cold()
    resting.check_cold()


# --- ends -------------------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("small")
def test_a_tombstone_at_any_step_leaves_no_manifest_behind_it(house: House) -> None:
    """Before the deletion is under way it may have put some; whatever it puts afterwards would be found."""
    for number in range(1, calls_to_cold(house) + 1):
        resting = a_few(house)
        manifests: list[int] = []
        late: list[str] = []

        def deleted(_call: str, resting: Resting = resting, manifests: list[int] = manifests) -> None:
            resting.delete()
            manifests.append(len(resting.manifests))

        def look(call: str, manifests: list[int] = manifests, late: list[str] = late) -> None:
            if manifests:
                late.append(call)

        watched = resting.watched(at_call(number, deleted), look)
        for _ in range(4):
            if resting.due_at is not None:
                resting.pass_(watched)
        # Looked for and put are two steps: a deletion exactly between them is the announcer's to take back.
        between = late[:1] == ["put"]
        assert len(resting.manifests) == manifests[0] + between
        jobs = house.erase_queue.take()
        if "put_once" in late:
            assert [job["conversation"] for job in jobs] == [resting.conversation] * len(jobs)
            assert jobs


def test_a_deletion_while_a_segment_is_written_has_what_was_written_erased(house: House) -> None:
    resting = a_few(house)

    def deleted(call: str) -> None:
        if call == "put_once" and not house.warm.gone:
            resting.delete()

    outcome = resting.pass_(resting.watched(deleted))
    assert outcome is not None
    assert outcome.state == "deleted"
    assert resting.manifests == ()
    job = ErasureJob(tenant=resting.key.tenant, conversation=resting.conversation, stage="late")
    assert [job_["stage"] for job_ in house.erase_queue.take()] == [job.stage]


def test_what_is_deleted_and_still_due_is_erased_again_and_not_archived(house: House) -> None:
    resting = a_few(house)
    resting.delete()
    outcome = resting.pass_()
    assert outcome is not None
    assert outcome.state == "deleted"
    assert resting.objects() == {}
    assert [job["stage"] for job in house.erase_queue.take()] == ["first"]


def test_what_has_expired_gets_a_tombstone_that_says_so(house: House) -> None:
    resting = said(house, "one", retention_days=7)
    house.clock.ms += 3 * DAY_MS
    resting.say("two")
    active_ms = house.clock.ms - 1
    outcome = resting.pass_()
    assert outcome is not None
    assert outcome.state == "active"
    assert resting.due_at == times.to_rfc3339(active_ms + 7 * DAY_MS + PULSE_EVERY_MS + RETENTION_MARGIN_MS)
    outcome = resting.pass_()
    assert outcome is not None
    assert outcome.state == "expired"
    tombstone = house.warm.gone[resting.key]
    assert (tombstone.reason, tombstone.owner, tombstone.regions) == ("retention", "ann", REGIONS)
    assert resting.objects() == {}


def test_with_a_longer_retention_it_goes_cold_first_and_falls_due_again_at_its_end(house: House) -> None:
    resting = said(house, "one", "two", retention_days=90)
    active_ms = times.from_rfc3339(house.warm.active_at[resting.key])
    resting.pass_()
    outcome = resting.pass_()
    assert outcome is not None
    assert outcome.state == "cold"
    resting.check_cold()
    assert resting.due_at == times.to_rfc3339(active_ms + 90 * DAY_MS + PULSE_EVERY_MS + RETENTION_MARGIN_MS)
    outcome = resting.pass_()
    assert outcome is not None
    assert outcome.state == "expired"


def test_a_conversation_that_was_never_quite_created_does_not_fall_due_again(house: House) -> None:
    resting = said(house)
    del house.warm._heads[resting.key]
    outcome = resting.pass_()
    assert outcome is not None
    assert outcome.state == "absent"
    assert resting.due_at is None


def test_the_settings_say_how_long_it_rests_and_settles(house: House) -> None:
    resting = said(house, "one")
    house.replace(archive_idle_ms=2 * ARCHIVE_IDLE_MS, archive_settle_ms=5_000)
    outcome = resting.pass_()
    assert outcome is not None
    assert outcome.state == "active"
    resting.pass_()
    (manifest,) = resting.manifests
    assert resting.due_at == times.to_rfc3339(manifest.archived_ms + 5_000)
