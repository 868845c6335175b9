"""How patient a connection is."""

from __future__ import annotations

from dataclasses import dataclass, field

from threadkeep_client.backoff import Backoff


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectionSettings:
    """How patient a connection is.

    Attributes:
        open_s: for one attempt to connect.
        reply_s: for one reply; then the request is repeated.
        deadline_s: for a request with all its repeats, unless the caller gives another.
        requests_max: in flight at once; more wait.
        refusals_max: refused handshakes in a row, each with a newly asked token, after which the connection ends.
        reconnect: pauses between attempts to connect.
        repeat: pauses between repeats of a request.
    """

    open_s: float = 10.0
    reply_s: float = 10.0
    deadline_s: float = 60.0
    requests_max: int = 64
    refusals_max: int = 5
    reconnect: Backoff = field(default_factory=lambda: Backoff(base_s=0.2, ceiling_s=20.0))
    repeat: Backoff = field(default_factory=lambda: Backoff(base_s=0.2, ceiling_s=5.0, floor_s=0.05))
