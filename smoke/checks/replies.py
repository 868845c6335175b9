"""Replies and the handshake, as the gateway makes them."""

from __future__ import annotations

from contextlib import AsyncExitStack
from typing import Final

from websockets.exceptions import InvalidStatus

from smoke.ground import Ground
from smoke.outcome import Outcome, failed, held, shown
from smoke.raw import exchange, frame, heard
from smoke.registry import check

_PROTOCOL: Final = "threadkeep.v1"
_NO_REPLY: Final = {"$connect", "$disconnect"}
_TOKEN_BYTES: Final = 4096
_SILENT_S: Final = 1.0


@check("route-response", turn="alone")
async def replies_go_to_the_caller_alone(ground: Ground) -> Outcome:
    """A ping among three connections; and every route has its response."""
    async with AsyncExitStack() as stack:
        asking, same_user, other_user = [
            await stack.enter_async_context(ground.socket(token)) for token in (None, None, ground.target.other_token)
        ]
        reply = await exchange(asking, frame("ping", ref="smoke"))
        faults = [] if (reply.get("type"), reply.get("ref")) == ("ping.ok", "smoke") else [f"the reply was {reply}"]
        for name, socket in (("the same user", same_user), ("another user", other_user)):
            try:
                await heard(socket, _SILENT_S)
            except TimeoutError:
                continue
            faults.append(f"another connection of {name} was sent something")
    routes = await ground.listed("apigatewayv2", "get_routes", "Items", ApiId=await ground.api_id())
    keys = {route["RouteKey"] for route in routes} - _NO_REPLY
    with_response = {
        route["RouteKey"] for route in routes if route.get("RouteResponseSelectionExpression") == "$default"
    }
    if bare := sorted(keys - with_response):
        faults.append(f"replied, but {len(bare)} of {len(keys)} routes have no route response")
    return held(f"the caller got its reply, two other connections nothing; {len(keys)} routes", faults, shows=True)


@check("subprotocol-echo", turn="alone")
async def the_subprotocol_is_echoed(ground: Ground) -> Outcome:
    """As a browser offers it, the token beside it."""
    offered = (_PROTOCOL, f"bearer.{ground.target.token}")
    async with ground.socket(subprotocols=offered, in_header=False) as socket:
        if socket.subprotocol == _PROTOCOL:
            return shown("`threadkeep.v1` alone came back")
        return failed("nothing came back" if socket.subprotocol is None else "something else came back")


@check("token-4k", turn="alone")
async def a_header_as_long_as_the_longest_token_gets_through(ground: Ground) -> Outcome:
    """The token is what it is, so another entry of the list makes the header as long as one of 4 KiB would."""
    padding = "pad." + "a" * max(1, _TOKEN_BYTES - len(ground.target.token))
    offered = (_PROTOCOL, f"bearer.{ground.target.token}", padding)
    try:
        async with ground.socket(subprotocols=offered, in_header=False) as socket:
            reply = await exchange(socket, frame("ping", ref="smoke"))
    except InvalidStatus as refusal:
        return failed(f"the handshake was refused with {refusal.response.status_code}")
    length = len(", ".join(offered))
    if reply.get("type") != "ping.ok":
        return failed(f"connected with a header of {length} bytes, but the reply was {reply}")
    return shown(f"connected with a Sec-WebSocket-Protocol header of {length} bytes", header_bytes=length)
