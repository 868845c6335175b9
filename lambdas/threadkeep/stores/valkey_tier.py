"""What every side of the hot tier in Valkey works with."""

from __future__ import annotations

from threadkeep.domain.streams import Limits
from threadkeep.stores.valkey_client import ValkeyClient


class ValkeyTier:
    """Conversations in Valkey, by its clock."""

    def __init__(self, client: ValkeyClient, *, region: str, limits: Limits | None = None) -> None:
        self._client = client
        self._region = region
        self._limits = limits or Limits()
