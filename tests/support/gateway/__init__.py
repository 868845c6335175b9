"""A stand-in for API Gateway's WebSocket APIs: real sockets, its limits, its manners, and seeded faults.

No local tool enforces the gateway's limits or loses, doubles and reorders frames as AWS may, so nothing could be shown
of what the service and its clients do then.

    async with FaultGateway(handlers, faults=Faults(seed=7, lose_reply=0.05, cut_after=(40,))) as gateway:
        ...  # clients connect to gateway.url; functions post to gateway.connections_url

`limits` and `faults` say what it enforces and what it breaks, `server` runs it, `session` is one connection, `socket`
its frames, `connections` the HTTP side, `functions` Lambda's.
"""

from tests.support.gateway.clock import VirtualClock
from tests.support.gateway.faults import Faults
from tests.support.gateway.limits import Limits, Manners
from tests.support.gateway.server import FaultGateway

__all__ = ["FaultGateway", "Faults", "Limits", "Manners", "VirtualClock"]
