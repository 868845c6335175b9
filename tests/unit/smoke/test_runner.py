"""One verdict a line, whatever its check does."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from smoke.ground import Ground
from smoke.lines import Line
from smoke.outcome import Outcome, Verdict, failed, needs_hours, read_back, shown
from smoke.registry import Check, Turn
from smoke.report import Report
from smoke.runner import Result, run
from tests.support.smoke import ToldGround, refusal, target

LOCAL = target("ws://127.0.0.1:1/_aws/execute-api/abc/local", endpoint="http://127.0.0.1:1")


def line(name: str = "line", **fields: Any) -> Line:
    return Line(id=name, area="area", says="It holds", **fields)


def checked(outcome: Outcome | BaseException, name: str = "line", *, turn: Turn = "together") -> Check:
    async def look(_: Ground) -> Outcome:
        if isinstance(outcome, BaseException):
            raise outcome
        return outcome

    return Check(line=name, run=look, seconds_max=60, turn=turn)


async def verdict(check: Check, ground: Ground, judged: Line | None = None) -> Result:
    (result,) = await run(ground, [judged or line()], {"line": check}, hours=False, told=lambda _: None)
    return result


@pytest.mark.parametrize("outcome", [shown("a"), read_back("b"), needs_hours("c"), failed("d")])
async def test_on_a_real_deployment_a_line_has_the_verdict_of_its_check(outcome: Outcome) -> None:
    result = await verdict(checked(outcome), ToldGround(), line(local="it cannot hold"))
    assert (result.verdict, result.detail, result.found) == (outcome.verdict, outcome.detail, None)


async def test_on_the_local_cloud_nothing_is_shown() -> None:
    result = await verdict(checked(shown("in 3 ms", took_ms=3)), ToldGround(of=LOCAL))
    assert (result.verdict, result.found) == (Verdict.NOT_APPLICABLE, Verdict.SHOWN)
    assert "in 3 ms" in result.detail
    assert result.figures == {"took_ms": 3}


async def test_what_the_local_cloud_is_known_not_to_hold_has_not_failed_there() -> None:
    result = await verdict(checked(failed("33 KiB passed")), ToldGround(of=LOCAL), line(local="there is no limit"))
    assert (result.verdict, result.found) == (Verdict.NOT_APPLICABLE, Verdict.FAILED)
    assert "there is no limit" in result.detail
    assert "33 KiB passed" in result.detail


async def test_what_else_fails_there_has_failed() -> None:
    assert (await verdict(checked(failed("no")), ToldGround(of=LOCAL))).verdict is Verdict.FAILED


@pytest.mark.parametrize("fault", [ValueError("odd"), TimeoutError(), ConnectionError("cut")])
async def test_a_fault_on_the_way_is_never_excused_by_the_local_cloud(fault: Exception) -> None:
    result = await verdict(checked(fault), ToldGround(of=LOCAL), line(local="there is no limit"))
    assert result.verdict is Verdict.FAILED


async def test_a_check_that_does_not_end_has_failed() -> None:
    async def never(_: Ground) -> Outcome:
        await asyncio.Event().wait()
        raise AssertionError

    result = await verdict(Check(line="line", run=never, seconds_max=0.01, turn="alone"), ToldGround())
    assert result.verdict is Verdict.FAILED
    assert "within" in result.detail


async def test_what_the_whole_run_has_no_time_for_has_failed_without_being_run() -> None:
    (result,) = await run(
        ToldGround(), [line()], {"line": checked(AssertionError("run"))}, hours=False, told=print, seconds_max=-1
    )
    assert result.verdict is Verdict.FAILED
    assert "time of the whole run" in result.detail


async def test_aws_is_quoted_by_its_code_alone() -> None:
    result = await verdict(checked(refusal("AccessDenied", "DescribeTable")), ToldGround())
    assert result.detail == "AWS refused DescribeTable: AccessDenied"


async def test_no_token_and_no_key_is_told_whatever_an_error_quotes() -> None:
    ground = ToldGround()
    secrets = (*ground.target.secrets, "s3cr3t-of-the-account")
    for secret in secrets:
        result = await verdict(checked(RuntimeError(f"at ?token={secret}&x")), ground)
        assert result.verdict is Verdict.FAILED
        assert secret not in str(result)
        assert "at ?token=…&x" in result.detail


async def test_lines_that_take_hours_say_so_unless_hours_are_given() -> None:
    long = line(hours=True, reason="it takes two hours")
    for hours, expected in ((False, Verdict.NEEDS_HOURS), (True, Verdict.SHOWN)):
        (result,) = await run(ToldGround(), [long], {"line": checked(shown("a"))}, hours=hours, told=lambda _: None)
        assert result.verdict is expected


async def test_those_that_would_falsify_each_other_run_alone_and_those_that_disturb_last() -> None:
    order: list[str] = []
    inside: set[str] = set()

    def watched(name: str, turn: Turn) -> Check:
        async def look(_: Ground) -> Outcome:
            assert turn == "together" or not inside
            inside.add(name)
            await asyncio.sleep(0)
            inside.discard(name)
            order.append(name)
            return shown(name)

        return Check(line=name, run=look, seconds_max=60, turn=turn)

    turns: dict[str, Turn] = {"d": "last", "b": "together", "a": "alone", "c": "together"}
    lines = [line(name) for name in turns]
    checks = {name: watched(name, turn) for name, turn in turns.items()}
    results = await run(ToldGround(), lines, checks, hours=False, told=lambda _: None)
    assert (order[0], order[-1]) == ("a", "d")
    assert [result.line for result in results] == ["d", "b", "a", "c"], "in the order of the list"
    assert {result.verdict for result in results} == {Verdict.SHOWN}


@pytest.mark.parametrize(
    ("verdicts", "left", "code"),
    [
        ([Verdict.SHOWN, Verdict.NOT_APPLICABLE, Verdict.NEEDS_HOURS], [], 0),
        ([Verdict.SHOWN, Verdict.FAILED], [], 1),
        ([Verdict.SHOWN], ["a conversation"], 1),
    ],
)
def test_the_exit_code_tells_of_failures_and_of_what_is_left_behind(
    verdicts: list[Verdict], left: list[str], code: int
) -> None:
    results = [Result(line="x", area="y", says="z", verdict=found, detail="") for found in verdicts]
    report = Report(url="", stage="", region="", seconds=0, results=results, left_behind=left)
    assert report.exit_code == code
