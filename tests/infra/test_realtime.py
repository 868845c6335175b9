"""The WebSocket API: every action answered, nothing of a payload logged."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.infra.synthesized import Deployment, resolve
from threadkeep import schema

REGIONS = ("eu-central-1", "us-east-1")
ACTIONS = {action: bulkhead for bulkhead, actions in schema.ROUTES.items() for action in actions}
GATEWAYS_OWN = ("$connect", "$disconnect", "$default")


@pytest.fixture(params=REGIONS)
def stack(request: pytest.FixtureRequest) -> str:
    return f"Realtime-{request.param}"


@pytest.fixture
def routes(aws: Deployment, stack: str) -> dict[str, dict[str, Any]]:
    """Routes by their key, each with its logical id."""
    return {
        route["Properties"]["RouteKey"]: route["Properties"] | {"Id": logical_id}
        for logical_id, route in aws.resources("AWS::ApiGatewayV2::Route", stack).items()
    }


@pytest.fixture
def stage(aws: Deployment, stack: str) -> dict[str, Any]:
    return aws.only("AWS::ApiGatewayV2::Stage", stack)


def test_the_api_selects_by_action_and_is_dual_stack(aws: Deployment, stack: str) -> None:
    api = aws.only("AWS::ApiGatewayV2::Api", stack)["Properties"]
    assert api["ProtocolType"] == "WEBSOCKET"
    assert api["RouteSelectionExpression"] == "$request.body.action"
    assert api["IpAddressType"] == "dualstack"


def test_every_action_of_the_schema_has_a_route_and_nothing_else_has(routes: dict[str, Any]) -> None:
    assert set(routes) == {*ACTIONS, *GATEWAYS_OWN}


def test_every_route_reaches_its_bulkhead(aws: Deployment, stack: str, routes: dict[str, dict[str, Any]]) -> None:
    integrations = aws.resources("AWS::ApiGatewayV2::Integration", stack)
    functions = aws.resources("AWS::Lambda::Function", stack)
    for key, route in routes.items():
        integration = resolve(route["Target"]).removeprefix("integrations/<").removesuffix(">")
        uri = resolve(integrations[integration]["Properties"]["IntegrationUri"])
        assert integrations[integration]["Properties"]["IntegrationType"] == "AWS_PROXY"
        (name,) = [name for name in functions if f"/functions/<{name}.Arn>/invocations" in uri]
        assert functions[name]["Properties"]["Handler"] == f"handlers.{ACTIONS.get(key, 'connection')}.handler"


def test_the_gateway_may_invoke_every_route(aws: Deployment, stack: str, routes: dict[str, Any]) -> None:
    allowed = {
        resolve(permission["Properties"]["SourceArn"]).split("/", 1)[1].removeprefix("*")
        for permission in aws.resources("AWS::Lambda::Permission", stack).values()
        if permission["Properties"]["Principal"] == "apigateway.amazonaws.com"
        and "/authorizers/" not in resolve(permission["Properties"]["SourceArn"])
    }
    assert allowed == set(routes)


def test_every_route_replies_but_those_that_have_nobody_to_reply_to(
    aws: Deployment, stack: str, routes: dict[str, dict[str, Any]]
) -> None:
    answered = {
        response["Properties"]["RouteId"]["Ref"]: response["Properties"]["RouteResponseKey"]
        for response in aws.resources("AWS::ApiGatewayV2::RouteResponse", stack).values()
    }
    replying = {key for key, route in routes.items() if answered.get(route["Id"]) == "$default"}
    assert replying == set(routes) - {"$connect", "$disconnect"}
    selecting = {key for key, route in routes.items() if route.get("RouteResponseSelectionExpression") == "$default"}
    assert selecting == replying


def test_connect_alone_is_authorized_and_no_header_is_required(
    aws: Deployment, stack: str, routes: dict[str, dict[str, Any]]
) -> None:
    ((authorizer_id, authorizer),) = aws.resources("AWS::ApiGatewayV2::Authorizer", stack).items()
    assert authorizer["Properties"]["AuthorizerType"] == "REQUEST"
    assert authorizer["Properties"]["IdentitySource"] == []
    assert routes["$connect"]["AuthorizationType"] == "CUSTOM"
    assert routes["$connect"]["AuthorizerId"] == {"Ref": authorizer_id}
    assert {route["AuthorizationType"] for key, route in routes.items() if key != "$connect"} == {"NONE"}


def test_no_payload_is_ever_logged(stage: dict[str, Any]) -> None:
    every = [stage["Properties"]["DefaultRouteSettings"], *stage["Properties"]["RouteSettings"].values()]
    for settings in every:
        assert settings["DataTraceEnabled"] is False
        assert settings["LoggingLevel"] == "OFF"


def test_throttles_name_routes_that_exist_before_the_stage(stage: dict[str, Any], routes: dict[str, Any]) -> None:
    throttled = stage["Properties"]["RouteSettings"]
    assert set(throttled) == {"$connect", "stream.append"}
    assert {route["Id"] for route in routes.values()} <= set(stage["DependsOn"])
    for settings in (stage["Properties"]["DefaultRouteSettings"], *throttled.values()):
        assert 0 < settings["ThrottlingBurstLimit"] <= settings["ThrottlingRateLimit"] < 10_000


def test_access_logs_name_neither_people_nor_places(aws: Deployment, stack: str, stage: dict[str, Any]) -> None:
    settings = stage["Properties"]["AccessLogSettings"]
    group = aws.resources("AWS::Logs::LogGroup", stack)[settings["DestinationArn"]["Fn::GetAtt"][0]]
    assert group["Properties"]["RetentionInDays"] == 30
    assert set(json.loads(settings["Format"]).values()) == {
        "$context.connectionId",
        "$context.error.messageString",
        "$context.eventType",
        "$context.integrationErrorMessage",
        "$context.integrationLatency",
        "$context.requestId",
        "$context.requestTimeEpoch",
        "$context.routeKey",
        "$context.status",
    }


def test_the_accounts_log_role_is_in_place_before_the_stage_and_stays_after_it(
    aws: Deployment, stack: str, stage: dict[str, Any]
) -> None:
    ((account_id, account),) = aws.resources("AWS::ApiGateway::Account", stack).items()
    role = aws.resources("AWS::IAM::Role", stack)[account["Properties"]["CloudWatchRoleArn"]["Fn::GetAtt"][0]]
    assert account_id in stage["DependsOn"]
    assert (account["DeletionPolicy"], role["DeletionPolicy"]) == ("Retain", "Retain")


def test_the_outputs_say_where_clients_connect(aws: Deployment, stack: str) -> None:
    outputs = aws.templates[stack]["Outputs"]
    (api,) = aws.resources("AWS::ApiGatewayV2::Api", stack)
    region = stack.removeprefix("Realtime-")
    assert resolve(outputs["ApiId"]["Value"]) == f"<{api}>"
    assert resolve(outputs["Url"]["Value"]) == f"wss://<{api}>.execute-api.{region}.amazonaws.com/prod"
