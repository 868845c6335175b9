"""How much each user and each tenant may do, as the use cases ask it."""

from __future__ import annotations

from typing import Protocol


class Quotas(Protocol):
    """Rates and concurrent streams. Every method raises `HotUnavailable`."""

    def take(self, tenant: str, user: str | None) -> int:
        """Take one request from the tenant's bucket and, where one is named, the user's; from both or from neither.

        Returns 0, or after how many ms it is worth asking again.
        """
        ...

    def lease_stream(self, tenant: str, user: str, stream: str) -> bool:
        """Enter a live stream of the user's, for `STREAM_MS_MAX`; again: it stays. False where there are too many."""
        ...

    def release_stream(self, tenant: str, user: str, stream: str) -> None:
        """It lives no more."""
        ...
