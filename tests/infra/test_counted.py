"""What the code counts calls somebody, or says why not; and whoever is called finds in the runbook what to do."""

from __future__ import annotations

import ast
import re
from pathlib import Path
from typing import Any, Final

import pytest

from stacks.counted import UNWATCHED, WATCHED
from tests.infra.synthesized import Deployment, resolve

ROOT: Final = Path(__file__).parents[2]
RUNBOOK: Final = (ROOT / "docs" / "runbook.md").read_text(encoding="utf-8")
HOME: Final = "eu-central-1"


def counted() -> set[str]:
    """The names of all metrics in the code; one that is not written out where it is counted, by its table."""
    names: set[str] = set()
    for path in (ROOT / "lambdas").rglob("*.py"):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        for call in (node for node in ast.walk(tree) if isinstance(node, ast.Call)):
            function = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
            if function != "count" or not call.args:
                continue
            if path.name == "telemetry.py":
                continue  # `count` itself
            said = [node.value for node in ast.walk(call.args[0]) if isinstance(node, ast.Constant)]
            found = {name for name in said if isinstance(name, str) and re.fullmatch(r"([A-Z][a-z]+)+", name)}
            if isinstance(call.args[0], ast.Subscript) and isinstance(call.args[0].value, ast.Name):
                found = _values(tree, call.args[0].value.id)
            module = call.func.value if isinstance(call.func, ast.Attribute) else None
            is_ours = module is None or getattr(module, "id", "") == "telemetry"
            assert found or not is_ours, f"{path.name}:{call.lineno} counts what cannot be read here"
            names |= found
    return names


def _values(tree: ast.Module, table: str) -> set[str]:
    (found,) = [
        node.value
        for node in tree.body
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name) and node.target.id == table
    ]
    assert isinstance(found, ast.Dict)
    return {value.value for value in found.values if isinstance(value, ast.Constant) and isinstance(value.value, str)}


def named() -> set[str]:
    """The alarms that the runbook has a row for; `…-errors` stands for those of all functions."""
    table = RUNBOOK.partition("## Alarms")[2].partition("\n## ")[0]
    rows = [line.split("|")[1] for line in table.splitlines() if line.startswith("| `")]
    return {name for row in rows for name in re.findall(r"`([^`]+)`", row)}


def test_every_metric_has_alarms_or_a_reason_why_not() -> None:
    watched = {one.metric for one in WATCHED}
    assert counted() == watched | set(UNWATCHED)
    assert not watched & set(UNWATCHED)
    assert all(UNWATCHED.values())


def alarms(deployment: Deployment, region: str) -> dict[str, dict[str, Any]]:
    """By their logical ids, without the hash."""
    found = deployment.resources("AWS::CloudWatch::Alarm", f"Observability-{region}")
    return {re.sub(r"^Alarm|[0-9A-F]{8}$", "", name): resolve(alarm["Properties"]) for name, alarm in found.items()}


@pytest.mark.parametrize("region", ["eu-central-1", "us-east-1"])
def test_whoever_is_called_finds_a_row_in_the_runbook(aws: Deployment, region: str) -> None:
    known = {name.replace("-", "") for name in named()}
    for alarm in alarms(aws, region):
        kinds = {alarm, re.sub(r"^.*(errors|throttles)$", r"…\1", alarm)}
        assert kinds & known, f"{alarm} has no row"


def test_no_row_of_the_runbook_is_of_an_alarm_that_there_is_not(aws: Deployment) -> None:
    found = set(alarms(aws, HOME))
    stale = {name for name in named() if not name.startswith("…") and name.replace("-", "") not in found}
    assert stale == set()


@pytest.mark.parametrize("region", ["eu-central-1", "us-east-1"])
def test_each_is_of_the_very_dimensions_that_the_function_counts_under(aws: Deployment, region: str) -> None:
    found = alarms(aws, region)
    for watched in WATCHED:
        for function in watched.by:
            alarm = found.get(watched.alarm(function).replace("-", ""))
            if watched.at_home and region != HOME:
                assert alarm is None
                continue
            assert alarm is not None
            dimensions = {one["Name"]: one["Value"] for one in alarm["Dimensions"]}
            expected = {"service": function} | ({"outcome": watched.outcome} if watched.outcome else {})
            assert (alarm["Namespace"], alarm["MetricName"], dimensions) == ("Threadkeep", watched.metric, expected)
            assert (alarm["Threshold"], alarm["EvaluationPeriods"]) == (watched.at, watched.minutes)
            assert (alarm["Period"], alarm["Statistic"]) == (60, "Sum")
