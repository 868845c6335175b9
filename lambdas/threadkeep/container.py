"""The composition root: clients are built here, lazily, once per sandbox, from the environment."""

from __future__ import annotations

import os
import time
from functools import cache

from threadkeep.config import Config
from threadkeep.usecases.services import Services


class SystemClock:
    """The system's time."""

    def now_ms(self) -> int:
        """Milliseconds since the epoch."""
        return time.time_ns() // 1_000_000


@cache
def config() -> Config:
    """The function's configuration.

    Raises:
        ConfigError: the environment lacks a setting.
    """
    return Config.from_environment(os.environ)


@cache
def services() -> Services:
    """What the use cases work with."""
    raise NotImplementedError
