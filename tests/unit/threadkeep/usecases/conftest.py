"""The use cases are tested through the handlers, on the service in memory."""

from tests.support.house import house

__all__ = ["house"]
