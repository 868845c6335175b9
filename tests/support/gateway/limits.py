"""What API Gateway allows a WebSocket API, and how it behaves where that can be told or must be guessed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

KIB = 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Quotas of API Gateway's WebSocket APIs.

    Source: "Quotas for configuring and running a WebSocket API", Amazon API Gateway Developer Guide, and the API model
    of `apigatewaymanagementapi` 2018-11-29, both read 2026-11-29; the account's rate from "Amazon API Gateway quotas".

    Attributes:
        frame_bytes_max: a larger frame closes the connection with 1009. What goes out is cut into such frames.
        message_bytes_max: a larger message closes with 1009; a larger post is refused with 413.
        idle_s: a connection without messages for so long is closed with 1001.
        lifetime_s: a connection of this age is closed with 1001.
        integration_s: a function that takes longer is answered for by the gateway.
        requests_per_s: rate of messages, handshakes and posts together, over all connections.
        requests_burst: how many may come at once.
        authorizer_bytes_max: of the authorizer's answer; a larger one fails the handshake.
        url_chars_max: of the handshake's URL.
        buffer_bytes_max: what a client that does not read may have outstanding here. AWS names no figure.
    """

    frame_bytes_max: int = 32 * KIB
    message_bytes_max: int = 128 * KIB
    idle_s: float = 600.0
    lifetime_s: float = 7_200.0
    integration_s: float = 29.0
    requests_per_s: float = 10_000.0
    requests_burst: int = 5_000
    authorizer_bytes_max: int = 8 * KIB
    url_chars_max: int = 4_096
    buffer_bytes_max: int = 128 * KIB


@dataclass(frozen=True, slots=True, kw_only=True)
class Manners:
    """What AWS does not say plainly, so that a test can ask for either.

    Attributes:
        full_buffer: what a post to a client whose buffer is full meets. `refuse`: 429, as the API model of
            `PostToConnection` says; `wait`: the post waits until the client has read, however long; `drop`: the
            connection is cut. A reply, which nobody can be refused, always drops.
        throttled: what a message over the rate meets: the gateway's error `frame`, or a `close` with 1008.
        pings_keep_alive: whether a ping puts the idle cut off. By default only messages do, either way.
        names_reserved_routes: whether a message whose action is `$connect` or `$disconnect` runs that route (still as
            a MESSAGE), or `$default`. The documentation is silent; the local emulator runs the route.
        checks_signatures: whether a post without SigV4 is refused with 403.
    """

    full_buffer: Literal["refuse", "wait", "drop"] = "refuse"
    throttled: Literal["frame", "close"] = "frame"
    pings_keep_alive: bool = False
    names_reserved_routes: bool = True
    checks_signatures: bool = True
