"""The handlers are tested on the service in memory."""

from __future__ import annotations

import io
import logging
from collections.abc import Callable, Iterator

import pytest

from tests.support.house import house
from threadkeep import telemetry

__all__ = ["house"]

Said = Callable[[], str]


@pytest.fixture
def logged(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Iterator[Said]:
    """All that is logged, counted and printed meanwhile."""
    monkeypatch.setenv("POWERTOOLS_SERVICE_NAME", "threadkeep-test")
    lines = io.StringIO()
    handler = telemetry.logger().registered_handler
    assert isinstance(handler, logging.StreamHandler)
    former = handler.setStream(lines)
    yield lambda: lines.getvalue() + "".join(capfd.readouterr())
    handler.setStream(former or handler.stream)
