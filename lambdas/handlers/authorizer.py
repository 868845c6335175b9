"""The authorizer of `$connect`: lets in who shows a token that holds, and says who that is."""

from __future__ import annotations

from functools import cache
from typing import Any

from aws_lambda_powertools.utilities.data_classes.api_gateway_authorizer_event import (
    APIGatewayAuthorizerResponseWebSocket,
)

from threadkeep import container
from threadkeep.gateway.authorization import authorize
from threadkeep.ports import TokenRefused, TokenVerifier
from threadkeep.telemetry import count, instrumented, logger


@cache
def _verifier() -> TokenVerifier:
    from threadkeep.stores.jwks import JwksVerifier  # noqa: PLC0415 -- see container

    config = container.config()
    return JwksVerifier(url=config.jwks_url, issuer=config.jwt_issuer, audience=config.jwt_audience)


def _handle(event: dict[str, Any], _context: Any) -> dict[str, Any]:
    # Only `$connect` is ever checked by it (an allow for other routes has no effect): scopes are the routes' own.
    try:
        vouched = authorize(event, container.config(), _verifier())
    except TokenRefused as refused:
        logger().info("Handshake refused", reason=str(refused))
        count("Handshakes", outcome="refused")
        denial = APIGatewayAuthorizerResponseWebSocket.from_route_arn(event["methodArn"], "nobody")
        denial.deny_all_routes()
        return denial.asdict()
    count("Handshakes", outcome="ok")
    allowance = APIGatewayAuthorizerResponseWebSocket.from_route_arn(event["methodArn"], vouched["sub"], vouched)
    allowance.allow_all_routes()
    return allowance.asdict()


handler = instrumented(_handle)
