"""The local target leaves out what the emulator does not know, and sets by other means what it ignores."""

from __future__ import annotations

import json
from typing import Any

import pytest

from stacks.capabilities import LOCAL_UNKNOWN_TYPES
from tests.infra.synthesized import Deployment, resolve
from threadkeep import schema
from threadkeep.config import Config, HotConfig, LimitsConfig

REGIONS = ("us-east-1", "eu-central-1")


@pytest.fixture(params=REGIONS)
def region(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def test_no_type_that_would_fail_its_stack(local: Deployment) -> None:
    types = {resource["Type"] for template in local.templates.values() for resource in template["Resources"].values()}
    assert not types & LOCAL_UNKNOWN_TYPES


def test_the_aws_target_has_what_is_left_out_here(aws: Deployment) -> None:
    """Else the list above would hold for nothing."""
    for kind in ("AWS::ApiGatewayV2::RouteResponse", "AWS::ElastiCache::ServerlessCache"):
        assert kind in LOCAL_UNKNOWN_TYPES
        assert aws.resources(kind)


def test_no_alarm_on_metric_math(local: Deployment) -> None:
    alarms = local.resources("AWS::CloudWatch::Alarm").values()
    assert len(alarms) > len(REGIONS) * 2 * len(schema.ROUTES)
    assert not [alarm for alarm in alarms if "Metrics" in alarm["Properties"]]


def test_no_route_selects_a_response_that_is_not_there(local: Deployment) -> None:
    routes = local.resources("AWS::ApiGatewayV2::Route").values()
    assert not [route for route in routes if "RouteResponseSelectionExpression" in route["Properties"]]


def test_no_access_logs_and_no_account_wide_role(local: Deployment) -> None:
    assert not local.resources("AWS::ApiGateway::Account")
    for stage in local.resources("AWS::ApiGatewayV2::Stage").values():
        assert "AccessLogSettings" not in stage["Properties"]


def test_the_bucket_takes_plain_http(local: Deployment) -> None:
    assert not local.resources("AWS::S3::BucketPolicy")


def test_the_queue_takes_plain_http(local: Deployment) -> None:
    assert local.resources("AWS::SQS::Queue")
    assert not local.resources("AWS::SQS::QueuePolicy")


def test_nothing_is_kept_when_it_is_destroyed(local: Deployment) -> None:
    assert not local.protected
    kept = [
        name
        for kind in ("AWS::DynamoDB::GlobalTable", "AWS::S3::Bucket", "AWS::KMS::Key")
        for name, resource in local.resources(kind).items()
        if resource["DeletionPolicy"] != "Delete"
    ]
    assert not kept
    table = local.only("AWS::DynamoDB::GlobalTable", "State")["Properties"]
    assert {replica["DeletionProtectionEnabled"] for replica in table["Replicas"]} == {False}


def test_a_custom_resource_sets_replicas_and_ttl(local: Deployment, aws: Deployment) -> None:
    settings = resolve(local.only("Custom::TableSettings", "State")["Properties"])
    (table,) = local.resources("AWS::DynamoDB::GlobalTable", "State")
    assert settings["Table"] == f"<{table}>"
    assert settings["Regions"] == [*REGIONS]
    assert settings["TtlAttribute"] == schema.TTL_ATTRIBUTE
    assert not aws.resources("Custom::TableSettings")


def test_no_cache_is_made(local: Deployment) -> None:
    assert not [name for name in local.templates if name.startswith("Hot-")]


def test_functions_know_the_emulator_and_the_valkey_that_were_given(local: Deployment, region: str) -> None:
    stack = f"Realtime-{region}"
    (api,) = local.resources("AWS::ApiGatewayV2::Api", stack)
    stream = environment(local, stack, "stream")
    assert Config.from_environment(stream) == Config(
        stage="local",
        region=region,
        regions=REGIONS,
        endpoint=f"ws://127.0.0.1:4566/_aws/execute-api/<{api}>/local",
        table="threadkeep-local",
        bucket=f"threadkeep-local-000000000000-{region}",
        buckets={name: f"threadkeep-local-000000000000-{name}" for name in REGIONS},
        connections_url=f"http://127.0.0.1:4566/_aws/execute-api/<{api}>/local",
        hot=HotConfig(host="127.0.0.1", port={"us-east-1": 6379, "eu-central-1": 6380}[region]),
        limits=LimitsConfig(),
    )
    authorizer = Config.from_environment(environment(local, stack, "authorizer"))
    assert authorizer.query_token is True
    assert authorizer.jwks_url == "http://127.0.0.1:4566/keys/jwks.json"


def test_no_role_logs_in_to_a_valkey_of_ones_own(local: Deployment) -> None:
    assert "elasticache:" not in json.dumps(local.resources("AWS::IAM::Policy"))


def test_the_url_is_the_emulators(local: Deployment, region: str) -> None:
    (api,) = local.resources("AWS::ApiGatewayV2::Api", f"Realtime-{region}")
    url = local.templates[f"Realtime-{region}"]["Outputs"]["Url"]["Value"]
    assert resolve(url) == f"ws://127.0.0.1:4566/_aws/execute-api/<{api}>/local"


def environment(deployment: Deployment, stack: str, name: str) -> dict[str, Any]:
    (found,) = [
        resolve(function["Properties"]["Environment"]["Variables"])
        for function in deployment.resources("AWS::Lambda::Function", stack).values()
        if function["Properties"]["Handler"] == f"handlers.{name}.handler"
    ]
    return dict(found)
