"""Limits: how often a user and a tenant may ask, and how many answers a user may have under way.

Valkey counts for the whole region. While it is away each sandbox counts for itself, by the same rates: never open to
everything, never closed to everyone.
"""

from __future__ import annotations

from threadkeep import telemetry
from threadkeep.domain.errors import HotUnavailable, Refused
from threadkeep.domain.model import Caller
from threadkeep.usecases.services import Services


def meter(services: Services, caller: Caller) -> None:
    """Take one request from the caller's buckets. Who produces for a tenant is bounded by the tenant's alone.

    Raises:
        Refused: ``rate_limited``, with ``retry_after_ms``.
    """
    user = None if caller.produces else caller.user
    try:
        wait_ms = services.quotas.take(caller.tenant, user)
    except HotUnavailable:
        wait_ms = services.own_quotas.take(caller.tenant, user)
    if wait_ms:
        telemetry.count("RateLimited")
        raise Refused(
            "rate_limited", "Too many requests just now; ask again after `retry_after_ms`.", retry_after_ms=wait_ms
        )
