"""Runs the checks of the lines, each within its time, and gives every line exactly one verdict."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Final

import msgspec
from botocore.exceptions import ClientError

from smoke.ground import Ground
from smoke.lines import Line
from smoke.outcome import Figure, Outcome, Verdict, failed, not_applicable
from smoke.registry import Check

RUN_SECONDS_MAX: Final = 13 * 60
"""With a minute for deleting what was made, the pack is done within 15."""
AT_ONCE: Final = 8
_DETAIL_CHARS_MAX: Final = 300


class Result(msgspec.Struct, frozen=True, kw_only=True):
    """A line and its verdict.

    Attributes:
        found: what its check found, where the verdict is another: on the local cloud nothing is shown.
    """

    line: str
    area: str
    says: str
    verdict: Verdict
    detail: str
    found: Verdict | None = None
    figures: dict[str, Figure] = {}
    seconds: float = 0.0


Told = Callable[[Result], None]


async def run(
    ground: Ground,
    lines: Sequence[Line],
    checks: Mapping[str, Check],
    *,
    hours: bool,
    told: Told,
    seconds_max: float | None = RUN_SECONDS_MAX,
    at_once: int = AT_ONCE,
) -> list[Result]:
    """Give each line its verdict, in the order of the lines; `told` hears of each as it comes.

    Args:
        ground: of the deployment.
        lines: to be judged.
        checks: by line.
        hours: whether those that take hours are run; else they say that they do.
        told: hears of progress.
        seconds_max: for all checks together; what has not ended by then has failed.
        at_once: so many of those checks run together that may.
    """
    ends = None if seconds_max is None else time.monotonic() + seconds_max
    results: dict[str, Result] = {}

    def take(result: Result) -> None:
        results[result.line] = result
        told(result)

    due: dict[str, list[tuple[Line, Check]]] = {"alone": [], "together": [], "last": []}
    for line in lines:
        if line.verdict is not None:
            fixed = Outcome(line.verdict, line.reason)
            take(_result(line, fixed, fixed))
        elif line.hours and not hours:
            later = Outcome(Verdict.NEEDS_HOURS, f"{line.reason} (`make smoke-long`)")
            take(_result(line, later, later))
        else:
            due[checks[line.id].turn].append((line, checks[line.id]))

    async def one(line: Line, check: Check) -> None:
        begun = time.monotonic()
        found, is_fault = await _outcome(ground, check, ends)
        seconds = round(time.monotonic() - begun, 1)
        judged = _on_local(line, found) if ground.target.is_local and not is_fault else found
        take(_result(line, found, judged, seconds=seconds))

    for line, check in due["alone"]:
        await one(line, check)
    await _at_once([one(line, check) for line, check in due["together"]], most=at_once)
    for line, check in due["last"]:
        await one(line, check)
    return [results[line.id] for line in lines]


async def _at_once(running: Sequence[Awaitable[None]], *, most: int) -> None:
    places = asyncio.Semaphore(most)

    async def placed(one: Awaitable[None]) -> None:
        async with places:
            await one

    await asyncio.gather(*map(placed, running))


async def _outcome(ground: Ground, check: Check, ends: float | None) -> tuple[Outcome, bool]:
    """What the check found, and whether it did not get as far as to look: no answer in time, or a fault."""
    left = check.seconds_max if ends is None else min(check.seconds_max, ends - time.monotonic())
    if left <= 0:
        return failed("the time of the whole run was up before it began"), True
    is_fault = False
    try:
        async with asyncio.timeout(left) as whole:
            found = await check.run(ground)
    except TimeoutError:
        found, is_fault = failed(f"not done within {left:.0f} s" if whole.expired() else "no answer in time"), True
    except ClientError as error:
        # AWS is told by its code: its texts are long and name identities. That it refuses is a finding.
        found = failed(f"AWS refused {error.operation_name}: {error.response.get('Error', {}).get('Code')}")
    except Exception as error:  # noqa: BLE001 -- a check that fails in a way of its own is a line not shown
        found, is_fault = failed(f"{type(error).__name__}: {error}"), True
    detail = ground.without_secrets(found.detail)[:_DETAIL_CHARS_MAX]
    return Outcome(found.verdict, detail, found.figures), is_fault


def _result(line: Line, found: Outcome, judged: Outcome, *, seconds: float = 0.0) -> Result:
    return Result(
        line=line.id,
        area=line.area,
        says=line.says,
        verdict=judged.verdict,
        detail=judged.detail,
        found=None if judged is found else found.verdict,
        figures=found.figures,
        seconds=seconds,
    )


def _on_local(line: Line, found: Outcome) -> Outcome:
    """What a check's finding is worth on the local cloud: nothing is shown there, and not everything can hold."""
    if found.verdict is Verdict.SHOWN:
        return not_applicable(f"held on the local cloud, which shows nothing of AWS: {found.detail}")
    if found.verdict is Verdict.FAILED and line.local:
        return not_applicable(f"on the local cloud {line.local}: {found.detail}")
    return found
