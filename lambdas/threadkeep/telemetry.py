"""Logs, metrics and traces, by Powertools. Nothing of a token, a message or a title ever goes into any of them.

Built at the first request, not at import: Powertools reads the environment when it is made.
"""

from __future__ import annotations

import traceback
from collections.abc import Callable
from functools import cache
from typing import Any

from aws_lambda_powertools import Logger, Metrics, Tracer, single_metric
from aws_lambda_powertools.metrics import MetricUnit

Handler = Callable[[dict[str, Any], Any], dict[str, Any]]


@cache
def logger() -> Logger:
    """The function's logger: JSON lines."""
    return Logger()


@cache
def metrics() -> Metrics:
    """The function's metrics: printed in the embedded metric format, so that no call is made for them."""
    return Metrics()


def count(name: str, number: int = 1, **dimensions: str) -> None:
    """Count events of a kind, under dimensions of few values (never an id).

    One with dimensions is printed at once, by itself: they would be those of everything else that the invocation
    counts, and an alarm finds a metric only by the very dimensions that it has. All have the function's, ``service``.
    """
    if not dimensions:
        metrics().add_metric(name, MetricUnit.Count, number)
        return
    with single_metric(name=name, unit=MetricUnit.Count, value=number) as alone:
        alone.add_dimension("service", metrics().service)
        for dimension, value in dimensions.items():
            alone.add_dimension(dimension, value)


def note(what: str, **ids: str) -> None:
    """Log what somebody should look at: a sentence of ours, and ids."""
    logger().warning(what, extra={"ids": ids})


def note_fault(what: str, error: BaseException) -> None:
    """Log what failed and where: kinds and lines, never an exception's text, which may quote what a user wrote."""
    chain = []
    cause: BaseException | None = error
    while cause is not None:
        frames = traceback.extract_tb(cause.__traceback__)
        chain.append(
            {
                "kind": f"{type(cause).__module__}.{type(cause).__qualname__}",
                "code": getattr(cause, "response", {}).get("Error", {}).get("Code"),  # an AWS error's own
                "at": [f"{frame.filename.rpartition('/')[2]}:{frame.lineno} {frame.name}" for frame in frames],
            }
        )
        cause = cause.__cause__
    logger().error(what, faults=chain)


def _flushing(handle: Handler) -> Handler:
    """Print what was counted, if anything was: Powertools' own decorator warns where nothing is."""

    def flushing(event: dict[str, Any], context: Any) -> dict[str, Any]:
        try:
            return handle(event, context)
        finally:
            if metrics().metric_set:
                metrics().flush_metrics()

    return flushing


def instrumented(handle: Handler) -> Handler:
    """A Lambda handler around it: log context, a trace without contents, metrics flushed at the end."""

    @cache
    def wrapped() -> Handler:
        traced = Tracer().capture_lambda_handler(handle, capture_response=False, capture_error=False)
        logged = logger().inject_lambda_context(traced, log_event=False, clear_state=True)
        return _flushing(logged)

    def handler(event: dict[str, Any], context: Any) -> dict[str, Any]:
        return wrapped()(event, context)

    return handler
