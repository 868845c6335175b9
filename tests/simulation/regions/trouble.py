"""What goes wrong between regions: they lose sight of each other, and one of them is evacuated and returns."""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from tests.simulation.regions.world import World

CUT_MS_MAX: Final = 30_000
ALONE_MS_MAX: Final = 8_000
SWEPT_MS: Final = 60_000
"""Long enough for a lease, and for a sweeper to come by."""


class Kind(Enum):
    """What a world is about, beside the rest."""

    PLAIN = "plain"
    EVACUATION = "evacuation"
    ERASURE = "erasure"
    ARCHIVE = "archive"


class Trouble:
    """The troubles of one world.

    Attributes:
        cuts, evacuations: how many there were.
        is_over: whether nothing more is planned.
    """

    def __init__(self, world: World) -> None:
        self.world = world
        self.cuts = self.evacuations = 0
        self.is_over = False
        self._rng = world.rng

    def begin(self) -> None:
        """From here on."""
        self.world.scheduler.spawn(self._go)
        if self.world.kind is Kind.ARCHIVE:
            next(iter(self.world.regions.values())).archive()

    def end(self) -> None:
        """No more of it."""
        self.world.table.heal()
        self.world.table.stuck = self.world.table.away = 0

    def _go(self) -> None:
        world, scheduler = self.world, self.world.scheduler
        if world.kind is Kind.EVACUATION:
            scheduler.pause(self._rng.randint(1_000, 15_000))
            self._evacuate(self._rng.choice(tuple(world.regions)))
        else:
            for _ in range(self._rng.randint(0, 3)):
                scheduler.pause(self._rng.randint(0, 3_000))
                self._cut(self._rng.randint(500, CUT_MS_MAX))
        self.is_over = True

    def _cut(self, duration_ms: int) -> None:
        self.cuts += 1
        self.world.scheduler.note("the regions lose sight of each other")
        self.world.table.cut()
        self.world.scheduler.pause(duration_ms)
        self.world.table.heal()
        self.world.scheduler.note("the regions see each other again")

    def _evacuate(self, name: str) -> None:
        """As docs/runbook.md says, "Evacuating a region"."""
        world, scheduler = self.world, self.world.scheduler
        self.evacuations += 1
        how = self._rng.choice(("dead", "cut off", "sound"))
        scheduler.note(f"{name} ({how}) serves nobody any more")
        world.contention.begin_at(name)
        scheduler.pause(self._rng.randint(0, 500))
        has_more = False
        if how != "sound" and self._rng.random() < 0.5:
            world.table.cut()
            # What it acknowledges meanwhile nobody else has.
            has_more = scheduler.wait(lambda: world.is_settled_in(name), at_most_ms=ALONE_MS_MAX, every_ms=500)
        world.gateways[name].close()
        region = world.regions[name]
        region.is_frozen = how == "dead"
        if how != "sound":
            world.table.cut()
        scheduler.pause(self._rng.randint(1_000, 60_000))
        scheduler.note(f"{name} is evacuated")
        for other in world.regions.values():
            if other is not region:
                other.evacuated(name)
                if has_more:
                    world.write_again(other.name)
        scheduler.pause(self._rng.randint(1_000, 30_000) + has_more * SWEPT_MS)
        scheduler.note(f"{name} returns")
        region.is_frozen = False  # nobody asks us when
        world.table.heal()
        scheduler.wait(lambda: world.table.under_way == 0, at_most_ms=120_000, every_ms=500)
        for other in world.regions.values():
            other.evacuated()
        region.is_open = True
