"""Faults planted into the service: a simulator that does not see them within so many seeds is blind."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import msgspec
import pytest
from msgspec import UNSET

from tests.simulation.world import World
from threadkeep.domain import streams
from threadkeep.domain.errors import WarmUnavailable
from threadkeep.domain.leaf import Claimed
from threadkeep.domain.model import Message
from threadkeep.stores import hot_memory
from threadkeep.usecases import messages, settling

SEEDS: Final = 400


def same_epoch_for_two_runs(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(hot_memory, "next_epoch", lambda **_: 1)
    patch.setattr(streams, "next_epoch", lambda **_: 1)


def duplicates_by_position_alone(patch: pytest.MonkeyPatch) -> None:
    judge = streams.judge_append

    def blind(stream: Any, **asked: Any) -> Any:
        verdict = judge(stream, **asked)
        return streams.Duplicate(asked["offset"] + 1) if isinstance(verdict, streams.Diverged) else verdict

    patch.setattr(hot_memory, "judge_append", blind)
    # two runs under one epoch: only then can something else stand at an offset
    same_epoch_for_two_runs(patch)


def a_seal_closes_nothing(patch: pytest.MonkeyPatch) -> None:
    judge = streams.judge_append

    def blind(stream: Any, **asked: Any) -> Any:
        is_sealed = stream is not None and stream.seal is not None and not stream.settled
        return judge(msgspec.structs.replace(stream, seal=None) if is_sealed else stream, **asked)

    patch.setattr(hot_memory, "judge_append", blind)


def a_send_is_acknowledged_before_the_write(patch: pytest.MonkeyPatch) -> None:
    put = messages._put

    def careless(services: Any, key: Any, message: Message) -> Any:
        try:
            return put(services, key, message)
        except WarmUnavailable:
            return None

    patch.setattr(messages, "_put", careless)


def a_stream_settles_before_its_message_is_stored(patch: pytest.MonkeyPatch) -> None:
    store = settling.store

    def careless(services: Any, key: Any, stored: Any, **of: Any) -> Any:
        services.hot.settle(key, stored)
        return store(services, key, stored, **of)

    patch.setattr(settling, "store", careless)


def the_leaf_is_nobodys(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(hot_memory, "judge_claim", lambda *_, **__: Claimed())


def a_settled_answer_is_not_the_leaf(patch: pytest.MonkeyPatch) -> None:
    settle = hot_memory.HotMemory.settle

    def careless(self: Any, key: Any, stored: Any) -> Any:
        with pytest.MonkeyPatch.context() as meanwhile:
            meanwhile.setattr(hot_memory.HotMemory, "fill", lambda self, key, _: self.viewers(key))
            return settle(self, key, stored)

    patch.setattr(hot_memory.HotMemory, "settle", careless)


def what_the_cache_lost_is_never_told_again(patch: pytest.MonkeyPatch) -> None:
    load = hot_memory.HotMemory.load

    def careless(self: Any, *place: Any, **told: Any) -> Any:
        return load(self, *place, **told | {"newest": UNSET})

    patch.setattr(hot_memory.HotMemory, "load", careless)


FOUND_BY: Final[dict[Callable[[pytest.MonkeyPatch], None], int]] = {
    a_seal_closes_nothing: 264,
    a_settled_answer_is_not_the_leaf: 185,
}
"""Where the first seed that sees it was far: it is looked for from there on, and not at all in what sees nothing."""


@pytest.mark.parametrize(
    "plant",
    [
        same_epoch_for_two_runs,
        duplicates_by_position_alone,
        a_seal_closes_nothing,
        a_send_is_acknowledged_before_the_write,
        a_stream_settles_before_its_message_is_stored,
        the_leaf_is_nobodys,
        a_settled_answer_is_not_the_leaf,
        what_the_cache_lost_is_never_told_again,
    ],
)
def test_a_planted_fault_is_seen(plant: Callable[[pytest.MonkeyPatch], None], monkeypatch: pytest.MonkeyPatch) -> None:
    plant(monkeypatch)
    first = FOUND_BY.get(plant, 0)
    for seed in range(first, first + SEEDS):
        try:
            World(seed).live()
        except AssertionError:
            return
    pytest.fail(f"{SEEDS} seeds, and nobody saw it")
