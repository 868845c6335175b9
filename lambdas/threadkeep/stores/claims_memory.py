"""Claims of conversations' ids in memory: the reference, and a fake for tests."""

from __future__ import annotations

from threadkeep.domain.contests import Claim
from threadkeep.domain.model import ConversationKey
from threadkeep.stores.warm_memory import WarmMemory


class ClaimsMemory:
    """`threadkeep.ports.IdClaims` beside a warm tier in memory, as the claims lie in the same table."""

    def __init__(self, warm: WarmMemory, region: str) -> None:
        self._warm = warm
        self._region = region

    def put(self, key: ConversationKey, claim: Claim) -> Claim | None:
        """See `IdClaims`."""
        self._warm.check_available()
        claims = self._warm.claims.setdefault(key, {})
        standing = claims.get(self._region)
        claims.setdefault(self._region, claim)
        return standing
