"""The WebSocket API of one region: its routes, its authorizer, its stage."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

import aws_cdk as cdk
from aws_cdk import aws_apigatewayv2 as apigateway
from aws_cdk import aws_apigatewayv2_authorizers as authorizers
from aws_cdk import aws_apigatewayv2_integrations as integrations
from aws_cdk import aws_iam as iam
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_logs as logs
from constructs import Construct

from stacks.capabilities import Capabilities
from threadkeep import schema

_CONNECTION: Final = "connection"

THROTTLES: Final[dict[str, tuple[int, int]]] = {"$connect": (500, 250), "stream.append": (5_000, 2_500)}
"""Requests per second and burst of the routes that differ from the default.

The account has 10,000 requests/s and 500 new connections/s in a region (API Gateway quotas, read 2026-11-29). Appends
and their fan-out are most of the first; the rest of the routes share what is left, so that no kind takes it all.
"""
DEFAULT_THROTTLE: Final = (1_000, 500)

_ACCESS_LOG: Final = {
    "connection": "$context.connectionId",
    "error": "$context.error.messageString",
    "event": "$context.eventType",
    "integration_error": "$context.integrationErrorMessage",
    "integration_ms": "$context.integrationLatency",
    "request": "$context.requestId",
    "route": "$context.routeKey",
    "status": "$context.status",
    "time": "$context.requestTimeEpoch",
}
"""No address, no principal: access logs say what happened, not to whom."""


class WebSocketGateway(Construct):
    """The API. Build it, `add_routes` to the functions, then `deploy` the stage.

    The three steps are apart since the functions' environment names the API that their routes belong to.
    """

    def __init__(self, scope: Construct, construct_id: str, *, name: str, can: Capabilities) -> None:
        super().__init__(scope, construct_id)
        self._can = can
        self._routes: list[Construct] = []
        self._api = apigateway.WebSocketApi(
            self,
            "Api",
            api_name=name,
            ip_address_type=apigateway.IpAddressType.DUAL_STACK,
            route_selection_expression="$request.body.action",
        )
        self.api_id: str = self._api.api_id

    def connections_arn(self, stage_name: str) -> str:
        """What a role must be allowed to POST to, in order to push to any connection of the stage."""
        return cdk.Stack.of(self).format_arn(
            service="execute-api", resource=self.api_id, resource_name=f"{stage_name}/POST/@connections/*"
        )

    def add_routes(self, *, functions: Mapping[str, lambda_.IFunction], authorizer: lambda_.IFunction) -> None:
        """Every action of `threadkeep.schema.ROUTES` to its bulkhead, the gateway's own three to ``connection``.

        A reply is the route response of the proxy integration: every route has one but ``$connect`` and
        ``$disconnect``, which reply to nobody.
        """
        targets = {
            name: integrations.WebSocketLambdaIntegration(name, function) for name, function in functions.items()
        }
        # An empty identity source: the default is a header that browsers cannot send, and without it comes a 401.
        check = authorizers.WebSocketLambdaAuthorizer("Authorizer", authorizer, identity_source=[])
        self._add("$connect", integration=targets[_CONNECTION], authorizer=check)
        self._add("$disconnect", integration=targets[_CONNECTION])
        replies = {"return_response": True} if self._can.route_responses else {}
        self._add("$default", integration=targets[_CONNECTION], **replies)
        for bulkhead, actions in schema.ROUTES.items():
            for action in actions:
                self._add(action, integration=targets[bulkhead], **replies)

    def deploy(self, *, stage_name: str, manage_log_role: bool) -> None:
        """The stage, with its throttles. No payload is ever logged: execution logging and data trace are off."""
        stage = apigateway.WebSocketStage(
            self, "Stage", web_socket_api=self._api, stage_name=stage_name, auto_deploy=True
        )
        settings = stage.node.default_child
        settings.default_route_settings = apigateway.CfnStage.RouteSettingsProperty(
            data_trace_enabled=False,
            detailed_metrics_enabled=False,
            logging_level="OFF",
            throttling_rate_limit=DEFAULT_THROTTLE[0],
            throttling_burst_limit=DEFAULT_THROTTLE[1],
        )
        # An entry replaces the defaults, it does not merge with them; and it must find its route in place.
        settings.route_settings = {
            route: {
                "DataTraceEnabled": False,
                "DetailedMetricsEnabled": False,
                "LoggingLevel": "OFF",
                "ThrottlingRateLimit": rate,
                "ThrottlingBurstLimit": burst,
            }
            for route, (rate, burst) in THROTTLES.items()
        }
        stage.node.add_dependency(*self._routes)
        if self._can.access_logs:
            self._log_access(settings, manage_role=manage_log_role)

    def _add(self, route_key: str, **options: Any) -> None:
        self._routes.append(self._api.add_route(route_key, **options))

    def _log_access(self, settings: apigateway.CfnStage, *, manage_role: bool) -> None:
        log_group = logs.LogGroup(
            self, "AccessLog", retention=logs.RetentionDays.ONE_MONTH, removal_policy=cdk.RemovalPolicy.DESTROY
        )
        settings.access_log_settings = apigateway.CfnStage.AccessLogSettingsProperty(
            destination_arn=log_group.log_group_arn, format=json.dumps(_ACCESS_LOG)
        )
        if manage_role:
            settings.node.add_dependency(_log_role(self))


def _log_role(scope: Construct) -> Construct:
    """The account's one role for the logs of all its APIs in the region; kept when this deployment goes."""
    from aws_cdk.aws_apigateway import CfnAccount  # noqa: PLC0415 - a large module, for one resource

    role = iam.Role(
        scope,
        "LogRole",
        assumed_by=iam.ServicePrincipal("apigateway.amazonaws.com"),
        managed_policies=[
            iam.ManagedPolicy.from_aws_managed_policy_name("service-role/AmazonAPIGatewayPushToCloudWatchLogs")
        ],
    )
    role.apply_removal_policy(cdk.RemovalPolicy.RETAIN)
    cdk.Validations.of(role).acknowledge(
        cdk.Acknowledgment(
            id="AwsSolutions::AwsSolutions-IAM4[Policy::arn:<AWS::Partition>:iam::aws:policy/service-role/"
            "AmazonAPIGatewayPushToCloudWatchLogs]",
            reason="the account-wide role serves every API's logs, whose groups AWS names; the policy is AWS's own",
        )
    )
    account = CfnAccount(scope, "Account", cloud_watch_role_arn=role.role_arn)
    account.apply_removal_policy(cdk.RemovalPolicy.RETAIN)
    return account
