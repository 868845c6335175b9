"""The project's own handlers, as the gateway runs them: in parallel, each thread a sandbox of its own."""

from __future__ import annotations

import importlib
import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final

import pytest
from aws_lambda_powertools.metrics import EphemeralMetrics
from jwt import PyJWKClient

from handlers import authorizer
from local.keys import SigningKey
from tests.support.gateway.functions import Handler
from threadkeep import container, telemetry
from threadkeep.config import Config
from threadkeep.schema import ROUTES
from threadkeep.usecases.services import Services

REGION: Final = "us-east-1"
NAMES: Final = ("authorizer", *ROUTES)


def bulkheads() -> dict[str, Handler]:
    """Every function by its name."""
    return {name: _sandboxed(importlib.import_module(f"handlers.{name}")._handle) for name in NAMES}


@contextmanager
def serving(services: Services, key: SigningKey) -> Iterator[list[str]]:
    """Meanwhile the handlers work with these ports, and trust tokens signed with this key.

    Gives the faults that they note meanwhile: what, and the error's type.
    """
    noted: list[str] = []
    config = Config(
        stage="test",
        region=REGION,
        jwks_url="https://keys.invalid/jwks.json",
        jwt_issuer=key.issuer,
        jwt_audience=key.audience,
        allowed_origins=("https://app.example",),
        query_token=True,
    )
    authorizer._verifier.cache_clear()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(container, "services", lambda: services)
        patch.setattr(container, "config", lambda: config)
        patch.setattr(PyJWKClient, "fetch_data", lambda _: json.loads(key.to_jwks()))
        patch.setenv("POWERTOOLS_SERVICE_NAME", "threadkeep-test")
        patch.setenv("POWERTOOLS_METRICS_NAMESPACE", "Threadkeep")
        patch.setattr(telemetry, "metrics", _Metrics().own)
        patch.setattr(telemetry, "note_fault", _noting(telemetry.note_fault, noted))
        yield noted
    authorizer._verifier.cache_clear()


class _Metrics(threading.local):
    """A sandbox serves one invocation at a time, so Powertools' metrics are no thread's business but their own."""

    def __init__(self) -> None:
        self._metrics = EphemeralMetrics()

    def own(self) -> EphemeralMetrics:
        """This thread's."""
        return self._metrics


def _noting(note: Callable[[str, BaseException], None], noted: list[str]) -> Callable[[str, BaseException], None]:
    def noting(what: str, error: BaseException) -> None:
        noted.append(f"{what}: {type(error).__name__}")
        note(what, error)

    return noting


def _sandboxed(handle: Any) -> Handler:
    """The handler with metrics flushed at its end, as `telemetry.instrumented` has them, for each thread apart."""

    def handler(event: dict[str, Any], context: Any) -> Any:
        metrics = telemetry.metrics()
        try:
            return handle(event, context)
        finally:
            if metrics.metric_set:
                metrics.flush_metrics()

    return handler
