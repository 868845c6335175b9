"""`python -m smoke`: what `make smoke` and `make smoke-long` call."""

from __future__ import annotations

import argparse
import asyncio
import os
import sys
import time
from collections.abc import Sequence
from typing import Final

from smoke import credentials
from smoke.ground import Ground
from smoke.lines import Line, read_lines
from smoke.registry import all_checks
from smoke.report import Report
from smoke.runner import AT_ONCE, RUN_SECONDS_MAX, Result, run
from smoke.target import Target, TargetError

PATIENCE_S: Final = 300.0
_WRONG_USE: Final = 2


def main(words: Sequence[str] | None = None) -> int:
    """Run the pack on the deployment that the environment names.

    Returns:
        0; 1 where a line failed or something is left behind; 2 where nothing could be run.
    """
    options = _parser().parse_args(words)
    lines = [line for line in read_lines() if line.id in options.only or not options.only]
    if len(lines) < len(set(options.only)):
        unknown = sorted(set(options.only) - {line.id for line in lines})
        print(f"smoke: no line is called {', '.join(unknown)}", file=sys.stderr)
        return _WRONG_USE
    if options.long:
        lines = [line for line in lines if line.hours]
    try:
        target = Target.from_environment(os.environ)
    except TargetError as error:
        print(f"smoke: {error}", file=sys.stderr)
        return _WRONG_USE
    if (complaint := credentials.complaint()) is not None:
        print(f"smoke: {complaint}", file=sys.stderr)
        return _WRONG_USE
    report = asyncio.run(_report(target, lines, options))
    if options.json:
        print(report.to_json())
    else:
        report.print()
    return report.exit_code


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m smoke", description="Look at a deployment; see docs/smoke.md.")
    parser.add_argument("--json", action="store_true", help="the verdicts as JSON")
    parser.add_argument("--long", action="store_true", help="the lines that take hours, and no others")
    parser.add_argument("--only", action="append", default=[], metavar="LINE", help="this line; may be repeated")
    parser.add_argument(
        "--patience", type=float, default=PATIENCE_S, metavar="S", help="how long to wait for metrics, logs and traces"
    )
    parser.add_argument("--at-once", type=int, metavar="N", help=f"how many checks run together ({AT_ONCE})")
    return parser


async def _report(target: Target, lines: Sequence[Line], options: argparse.Namespace) -> Report:
    ground = Ground(target, patience_s=options.patience)
    begun = time.monotonic()
    told = 0

    def tell(result: Result) -> None:
        nonlocal told
        told += 1
        text = f"[{told}/{len(lines)}] {result.line}: {result.verdict.value} ({result.seconds:.0f} s)"
        print(text, file=sys.stderr, flush=True)

    left: list[str] = []
    try:
        results = await run(
            ground,
            lines,
            all_checks(),
            hours=options.long,
            told=tell,
            seconds_max=None if options.long else RUN_SECONDS_MAX,
            at_once=options.at_once or (len(lines) if options.long else AT_ONCE),
        )
    finally:
        left = await ground.erase()
        if left:
            print(f"smoke: could not delete {', '.join(left)}", file=sys.stderr)
    return Report(
        url=target.url.partition("?")[0],
        stage=target.stage,
        region=target.region,
        seconds=round(time.monotonic() - begun, 1),
        results=results,
        left_behind=left,
    )


if __name__ == "__main__":
    sys.exit(main())
