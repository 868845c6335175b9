"""The cases are shown on the service in memory wherever that really shows them."""

from tests.support.house import house

__all__ = ["house"]
