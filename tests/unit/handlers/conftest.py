"""The handlers are tested on the service in memory."""

from __future__ import annotations

import io
import logging
import sys
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
    # Where the logger was made just now its stream is the capture's of this very test, and closed after it: so that is
    # neither flushed nor put back.
    handler.stream = lines
    yield lambda: lines.getvalue() + "".join(capfd.readouterr())
    handler.stream = sys.__stdout__
