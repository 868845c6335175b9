"""``python -m tests.simulation SEED``: live through one seed again and print what happened."""

from __future__ import annotations

import sys

from tests.simulation.world import World


def main() -> int:
    """Replay the seeds named."""
    for word in sys.argv[1:]:
        world = World(int(word))
        sys.stdout.write(f"{world.weather}\n")
        try:
            world.live()
        finally:
            sys.stdout.write("\n".join(world.scheduler.trace) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
