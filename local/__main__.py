"""``python -m local up|down|demo|status``: what `make up`, `make down` and `make demo` call."""

from __future__ import annotations

import sys

from local.interrupts import Interrupted, interruptible


def main() -> int:
    """Load and run the commands; both may be interrupted.

    Returns:
        The exit code, as of `local.commands.main`.
    """
    try:
        with interruptible():
            from local.commands import main as run  # noqa: PLC0415 -- takes a second: Ctrl-C is to be heard meanwhile

            return run()
    except Interrupted as signal:
        print(f"local cloud: interrupted ({signal}) before anything was started", file=sys.stderr)
        return signal.exit_code


if __name__ == "__main__":
    sys.exit(main())
