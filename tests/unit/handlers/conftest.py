"""The handlers are tested on the service in memory."""

from tests.support.house import house

__all__ = ["house"]
