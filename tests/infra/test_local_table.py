"""The local target's custom resource: what it sets, and that CloudFormation always hears of it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any

import boto3
import pytest
from moto import mock_aws

from stacks.constructs.local_table import index
from tests.support.serving import serving

TABLE = "threadkeep-local"


class CloudFormation:
    """Listens where the answers go."""

    def __init__(self) -> None:
        self.answers: list[dict[str, Any]] = []
        answers = self.answers

        class Listener(BaseHTTPRequestHandler):
            def do_PUT(self) -> None:
                answers.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
                self.send_response(200)
                self.end_headers()

            def log_message(self, *_: Any) -> None:
                pass

        self.server = HTTPServer(("127.0.0.1", 0), Listener)
        self.url = f"http://127.0.0.1:{self.server.server_port}/answer"

    def event(self, request: str, *, table: str = TABLE, regions: tuple[str, ...] = ("us-east-1",)) -> dict[str, Any]:
        return {
            "RequestType": request,
            "ResponseURL": self.url,
            "StackId": "stack",
            "RequestId": "request",
            "LogicalResourceId": "Settings",
            "ResourceProperties": {"Table": table, "Regions": list(regions), "TtlAttribute": "expires_at"},
        }


@pytest.fixture
def cloudformation() -> Iterator[CloudFormation]:
    listener = CloudFormation()
    with serving(listener.server):
        yield listener


@pytest.fixture(autouse=True)
def account(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.delenv("AWS_ENDPOINT_URL", raising=False)
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "test")
    monkeypatch.setenv("AWS_REGION", "us-east-1")
    with mock_aws():
        yield


@pytest.fixture
def dynamodb() -> Any:
    client = boto3.client("dynamodb", region_name="us-east-1")
    client.create_table(
        TableName=TABLE,
        KeySchema=[{"AttributeName": "pk", "KeyType": "HASH"}],
        AttributeDefinitions=[{"AttributeName": "pk", "AttributeType": "S"}],
        BillingMode="PAY_PER_REQUEST",
    )
    return client


@pytest.mark.parametrize("request_type", ["Create", "Update"])
def test_it_sets_the_ttl_attribute(cloudformation: CloudFormation, dynamodb: Any, request_type: str) -> None:
    index.handler(cloudformation.event(request_type), None)
    assert cloudformation.answers == [
        {
            "Status": "SUCCESS",
            "StackId": "stack",
            "RequestId": "request",
            "LogicalResourceId": "Settings",
            "PhysicalResourceId": "threadkeep-local-settings",
        }
    ]
    assert dynamodb.describe_time_to_live(TableName=TABLE)["TimeToLiveDescription"] == {
        "TimeToLiveStatus": "ENABLED",
        "AttributeName": "expires_at",
    }


def test_it_may_be_run_again(cloudformation: CloudFormation, dynamodb: Any) -> None:
    del dynamodb
    for _ in range(2):
        index.handler(cloudformation.event("Update"), None)
    assert [answer["Status"] for answer in cloudformation.answers] == ["SUCCESS", "SUCCESS"]


def test_a_delete_asks_nothing_of_the_table(cloudformation: CloudFormation) -> None:
    index.handler(cloudformation.event("Delete", table="gone-already"), None)
    assert cloudformation.answers[0]["Status"] == "SUCCESS"


def test_a_failure_is_told_with_its_reason(cloudformation: CloudFormation, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(index, "_ACTIVE_WAIT_S", 0)
    index.handler(cloudformation.event("Create", table="never-made"), None)
    assert cloudformation.answers[0]["Status"] == "FAILED"
    assert "ResourceNotFoundException" in cloudformation.answers[0]["Reason"]


def test_it_makes_only_the_replicas_that_are_lacking(monkeypatch: pytest.MonkeyPatch) -> None:
    """On a fake: moto takes `ReplicaUpdates` without making any replica."""
    tables = FakeTables(replicas=["eu-west-1"])
    monkeypatch.setattr(boto3, "client", tables.client)
    index._apply(TABLE, ["us-east-1", "eu-west-1", "eu-central-1"], "expires_at")
    assert tables.made == ["eu-central-1"]
    assert tables.expiring == ["us-east-1", "eu-west-1", "eu-central-1"]


class FakeTables:
    """A global table of three regions, as far as the custom resource looks at it."""

    def __init__(self, *, replicas: list[str]) -> None:
        self._replicas = replicas
        self.made: list[str] = []
        self.expiring: list[str] = []

    def client(self, service: str, *, region_name: str) -> FakeTable:
        assert service == "dynamodb"
        return FakeTable(self, region_name)

    def describe(self) -> dict[str, Any]:
        replicas = [{"RegionName": region} for region in (*self._replicas, *self.made)]
        return {"Table": {"TableStatus": "ACTIVE", "Replicas": replicas}}


class FakeTable:
    def __init__(self, tables: FakeTables, region: str) -> None:
        self._tables = tables
        self._region = region

    def describe_table(self, **_: Any) -> dict[str, Any]:
        return self._tables.describe()

    def update_table(self, *, TableName: str, ReplicaUpdates: list[dict[str, Any]]) -> None:  # noqa: N803 - boto3's
        assert TableName == TABLE
        (update,) = ReplicaUpdates
        self._tables.made.append(update["Create"]["RegionName"])

    def describe_time_to_live(self, **_: Any) -> dict[str, Any]:
        return {"TimeToLiveDescription": {"TimeToLiveStatus": "DISABLED"}}

    def update_time_to_live(self, *, TableName: str, TimeToLiveSpecification: dict[str, Any]) -> None:  # noqa: N803 - boto3's
        assert (TableName, TimeToLiveSpecification) == (TABLE, {"Enabled": True, "AttributeName": "expires_at"})
        self._tables.expiring.append(self._region)
