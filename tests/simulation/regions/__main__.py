"""``python -m tests.simulation.regions SEED``: live through one seed again and print what happened."""

from __future__ import annotations

import sys

from tests.simulation.regions.judging import judge
from tests.simulation.regions.world import World


def main() -> int:
    """Replay the seeds named."""
    for word in sys.argv[1:]:
        world = World(int(word))
        sys.stdout.write(f"{world.kind.value} {world.weather}\n")
        try:
            world.live()
            judge(world)
        finally:
            sys.stdout.write("\n".join(world.scheduler.trace) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
