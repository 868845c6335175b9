"""What may be left in Valkey after tests have used a deployment: what ends by itself, and what the sweeper will end."""

from __future__ import annotations

from typing import Any

from valkey import Valkey

from local.state import Address
from tests.support.tenancy import names_a_tenant
from threadkeep.stores.hot_keys import DEADLINES, HotKeys, deadline_entry, deadlines_of, stream_of_state


def keys_of_nobody(address: Address) -> list[str]:
    """Keys that name no tenant, of all that a deployment's functions have left; the deadline index apart."""
    with Valkey(host=address.host, port=address.port) as untyped:
        server: Any = untyped
        names = [name.decode() for name in server.scan_iter(count=10_000)]
    return sorted(name for name in names if not names_a_tenant(name))


def keys_left_for_ever(address: Address) -> list[str]:
    """Keys without an end that nothing will ever give one.

    Only the deadline index may stay, and what belongs to a stream that is filed there.
    """
    with Valkey(host=address.host, port=address.port) as untyped:
        server: Any = untyped
        endless = {name.decode() for name in server.scan_iter(count=10_000) if server.pttl(name) == -1}
        kept = set(DEADLINES)
        for name in [name for name in endless if "}:s:" in name]:
            key, stream = stream_of_state(name)
            if server.zscore(deadlines_of(key), deadline_entry(key, stream)) is not None:
                kept |= {name, HotKeys(key).log(stream), HotKeys(key).live}
        return sorted(endless - kept)
