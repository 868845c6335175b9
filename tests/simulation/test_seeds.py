"""Two thousand histories, each from a seed, each judged. A failing one prints itself and replays by its number."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pytest

from tests.simulation.world import World

SEEDS: Final = 2_000
CHUNK: Final = 500
KEPT: Final = [
    int(line.split()[0])
    for line in (Path(__file__).parent / "kept_seeds.txt").read_text().splitlines()
    if line and not line.startswith("#")
]


def live(seed: int) -> World:
    """Live through one seed; a failure names it, and how to see it again."""
    world = World(seed)
    try:
        world.live()
    except AssertionError as error:
        last = "\n".join(world.scheduler.trace[-40:])
        pytest.fail(f"seed {seed}: {error}\nreplay: python -m tests.simulation {seed}\n{world.weather}\n{last}")
    return world


def test_every_kept_seed_holds() -> None:
    for seed in KEPT:
        live(seed)


@pytest.mark.parametrize("start", range(0, SEEDS, CHUNK))
def test_every_history_keeps_every_promise(start: int) -> None:
    """Counted too, since worlds in which nothing goes wrong prove nothing: in all 10,000 cuts and 1,000 kills."""
    cuts = kills = losses = complete = 0
    for seed in range(start, start + CHUNK):
        world = live(seed)
        cuts += world.network.cuts
        kills += world.kills
        losses += world.service.losses
        complete += sum(run.outcome == "complete" for answer in world.answers.values() for run in answer.runs)
    assert cuts >= 10_000 * CHUNK / SEEDS
    assert kills >= 1_000 * CHUNK / SEEDS
    assert losses >= 1_000 * CHUNK / SEEDS
    assert complete >= 1_000 * CHUNK / SEEDS
