"""The responder is tested on the service in memory, in virtual time."""

from __future__ import annotations

import pytest

from tests.support.house import House, house
from tests.unit.threadkeep.responder.scene import Scene

__all__ = ["house"]


@pytest.fixture
def scene(house: House) -> Scene:
    return Scene(house)
