"""Limits: how often a user and a tenant may ask, and how many answers a user may have under way.

Valkey counts for the whole region. While it is away each sandbox counts for itself, by the same rates: never open to
everything, never closed to everyone.
"""

from __future__ import annotations

from contextlib import suppress

from threadkeep import telemetry
from threadkeep.domain.bounds import STREAMS_AGAIN_MS
from threadkeep.domain.errors import HotUnavailable, Refused
from threadkeep.domain.model import Caller, ConversationKey
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


def lease_stream(services: Services, key: ConversationKey, owner: str, stream: str) -> None:
    """Enter a live stream in the name of the conversation's owner. One that is entered already stays.

    By its conversation too: under one id a stream may live in each.

    Raises:
        Refused: ``rate_limited`` where the owner has as many as one may have.
    """
    name = _lease_name(key, stream)
    try:
        is_entered = services.quotas.lease_stream(key.tenant, owner, name)
    except HotUnavailable:
        is_entered = services.own_quotas.lease_stream(key.tenant, owner, name)
    if not is_entered:
        telemetry.count("RateLimited")
        raise Refused(
            "rate_limited",
            "The conversation's owner has as many live streams as one may have; ask again after `retry_after_ms`.",
            retry_after_ms=STREAMS_AGAIN_MS,
        )


def release_stream(services: Services, key: ConversationKey, owner: str | None, stream: str) -> None:
    """It lives no more. Where that cannot be said its lease ends by itself, after as long as a stream may take."""
    if owner is None:
        return  # it began before streams were leased
    name = _lease_name(key, stream)
    services.own_quotas.release_stream(key.tenant, owner, name)  # leased here, should Valkey have been away just then
    with suppress(HotUnavailable):
        services.quotas.release_stream(key.tenant, owner, name)


def _lease_name(key: ConversationKey, stream: str) -> str:
    return f"{key.conversation}/{stream}"
