"""What a function logs and counts, as a test reads it."""

from __future__ import annotations

import io
import logging
from collections.abc import Callable, Iterator

import pytest

from threadkeep import telemetry


@pytest.fixture
def logged(capsys: pytest.CaptureFixture[str]) -> Iterator[Callable[[], str]]:
    """All that was logged and printed meanwhile."""
    lines = io.StringIO()
    handler = telemetry.logger().registered_handler
    assert isinstance(handler, logging.StreamHandler)
    former = handler.setStream(lines)
    yield lambda: lines.getvalue() + "".join(capsys.readouterr())
    handler.setStream(former or handler.stream)
