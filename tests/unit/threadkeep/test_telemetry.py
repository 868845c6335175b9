"""Logs and metrics: kinds and lines of faults, counts under few dimensions, never what users wrote."""

from __future__ import annotations

import io
import json
import logging
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.support.house import LambdaContext
from threadkeep import telemetry

CANARY = "canary of a user"


@pytest.fixture
def logged(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[], list[dict[str, Any]]]]:
    """The lines logged meanwhile."""
    monkeypatch.setenv("POWERTOOLS_SERVICE_NAME", "threadkeep-test")
    monkeypatch.setenv("POWERTOOLS_METRICS_NAMESPACE", "Threadkeep")
    lines = io.StringIO()
    handler = telemetry.logger().registered_handler
    assert isinstance(handler, logging.StreamHandler)
    former = handler.setStream(lines)
    yield lambda: [json.loads(line) for line in lines.getvalue().splitlines()]
    handler.setStream(former or handler.stream)


class AwsError(Exception):
    """As botocore raises it."""

    def __init__(self) -> None:
        super().__init__(CANARY)
        self.response = {"Error": {"Code": "ThrottlingException", "Message": CANARY}}


def _fail() -> None:
    raise RuntimeError(CANARY) from AwsError()


def test_a_fault_is_noted_by_kind_line_and_cause(logged: Callable[[], list[dict[str, Any]]]) -> None:
    with pytest.raises(RuntimeError) as caught:
        _fail()
    telemetry.note_fault("Fault", caught.value)
    (line,) = logged()
    assert (line["level"], line["message"]) == ("ERROR", "Fault")
    outer, inner = line["faults"]
    assert (outer["kind"], outer["code"]) == ("builtins.RuntimeError", None)
    assert (inner["kind"].rpartition(".")[2], inner["code"]) == ("AwsError", "ThrottlingException")
    assert outer["at"][-1].startswith("test_telemetry.py:")
    assert outer["at"][-1].endswith(" _fail")
    assert CANARY not in json.dumps(line)


def test_an_instrumented_handler_counts_and_lets_an_exception_through_without_logging_its_text(
    logged: Callable[[], list[dict[str, Any]]], capsys: pytest.CaptureFixture[str]
) -> None:
    def handle(event: dict[str, Any], _context: Any) -> dict[str, Any]:
        telemetry.count("Asked", outcome="ok")
        if "fail" in event:
            raise RuntimeError(CANARY)
        telemetry.logger().info("served")
        return {"statusCode": 200}

    handler = telemetry.instrumented(handle)
    assert handler({"body": CANARY}, LambdaContext()) == {"statusCode": 200}
    with pytest.raises(RuntimeError):
        handler({"fail": CANARY}, LambdaContext())
    lines = logged()
    assert lines[0]["function_request_id"] == LambdaContext.aws_request_id
    printed = capsys.readouterr()
    metrics = [json.loads(line) for line in printed.out.splitlines()]
    assert [(metric["Asked"], metric["outcome"]) for metric in metrics] == [([1.0], "ok"), ([1.0], "ok")]
    assert metrics[0]["_aws"]["CloudWatchMetrics"][0]["Namespace"] == "Threadkeep"
    assert CANARY not in json.dumps(lines) + printed.out + printed.err


def test_what_has_dimensions_lends_them_to_nothing_else(
    logged: Callable[[], list[dict[str, Any]]], capsys: pytest.CaptureFixture[str]
) -> None:
    """An alarm finds a metric by its very dimensions: here by its function's alone."""

    def handle(_event: dict[str, Any], _context: Any) -> dict[str, Any]:
        telemetry.count("Awaited")
        telemetry.count("Asked", action="ping", outcome="ok")
        telemetry.count("Awaited")
        return {}

    assert telemetry.instrumented(handle)({}, LambdaContext()) == {}
    assert logged() == []
    told = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    metrics = {next(iter(line.keys() & {"Asked", "Awaited"})): line for line in told}
    dimensions = {name: line["_aws"]["CloudWatchMetrics"][0]["Dimensions"] for name, line in metrics.items()}
    assert {name: [set(one) for one in found] for name, found in dimensions.items()} == {
        "Asked": [{"service", "action", "outcome"}],
        "Awaited": [{"service"}],
    }
    assert sum(metrics["Awaited"]["Awaited"]) == 2
    assert {line["service"] for line in told} == {metrics["Asked"]["service"]}


def test_an_invocation_that_counts_nothing_prints_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    assert telemetry.instrumented(lambda _event, _context: {})({}, LambdaContext()) == {}
    assert capsys.readouterr().out == ""
