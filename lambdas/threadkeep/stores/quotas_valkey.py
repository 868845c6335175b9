"""Quotas in Valkey: the buckets of a tenant and its users share a slot, so that one script judges both."""

from __future__ import annotations

from typing import Final
from urllib.parse import quote

from threadkeep.domain.bounds import STREAM_MS_MAX
from threadkeep.domain.rates import Rates
from threadkeep.stores.lua import script
from threadkeep.stores.valkey_client import ValkeyClient

_PREFIX: Final = "quota:"


class QuotasValkey:
    """`threadkeep.ports.Quotas` in the hot tier; every key has a TTL."""

    def __init__(self, client: ValkeyClient, limits: Rates | None = None) -> None:
        self._client = client
        self._limits = limits or Rates()

    def take(self, tenant: str, user: str | None) -> int:
        """See `Quotas`."""
        limits = self._limits
        names = [_tenant(tenant)] + ([] if user is None else [_user(tenant, "r", user)])
        numbers: list[str | int] = []
        for rate in (limits.tenant, limits.user)[: len(names)]:
            numbers += [f"{rate.interval_ms:.3f}", rate.burst]
        return int(self._client.run(script("take"), names, numbers))

    def lease_stream(self, tenant: str, user: str, stream: str) -> bool:
        """See `Quotas`."""
        reply = self._client.run(
            script("lease_stream"), [_user(tenant, "s", user)], [stream, STREAM_MS_MAX, self._limits.streams_max]
        )
        return bool(reply)

    def release_stream(self, tenant: str, user: str, stream: str) -> None:
        """See `Quotas`."""
        self._client.command("ZREM", _user(tenant, "s", user), stream)


def _tenant(tenant: str) -> str:
    return f"{_PREFIX}{{{quote(tenant, safe='')}}}"


def _user(tenant: str, kind: str, user: str) -> str:
    return f"{_tenant(tenant)}:{kind}:{quote(user, safe='')}"
