"""The table, where nothing can be changed later and a replica's settings are its own."""

from __future__ import annotations

from typing import Any

import pytest

from tests.infra.synthesized import ACCOUNT, Deployment, resolve
from threadkeep import schema

REGIONS = ("eu-central-1", "us-east-1")
TABLE = "AWS::DynamoDB::GlobalTable"


@pytest.fixture(scope="module")
def table(aws: Deployment) -> dict[str, Any]:
    properties: dict[str, Any] = resolve(aws.only(TABLE, "State")["Properties"])
    return properties


@pytest.fixture(params=REGIONS)
def replica(request: pytest.FixtureRequest, table: dict[str, Any]) -> dict[str, Any]:
    (found,) = [replica for replica in table["Replicas"] if replica["Region"] == request.param]
    return dict(found)


def test_there_is_one_table_declared_once_in_the_home_region(aws: Deployment, table: dict[str, Any]) -> None:
    assert list(aws.resources(TABLE)) == [f"State/{next(iter(aws.resources(TABLE, 'State')))}"]
    assert {replica["Region"] for replica in table["Replicas"]} == set(REGIONS)
    assert table["TableName"] == "threadkeep-prod"


def test_keys_and_indexes_are_those_of_the_schema(table: dict[str, Any]) -> None:
    assert table["KeySchema"] == [key("pk", "HASH"), key("sk", "RANGE")]
    assert {index["IndexName"]: index["KeySchema"] for index in table["GlobalSecondaryIndexes"]} == {
        "by_owner": [key("owner_key", "HASH"), key("active_at", "RANGE")],
        "by_due": [key("due_key", "HASH"), key("due_at", "RANGE")],
    }
    assert {index["Projection"]["ProjectionType"] for index in table["GlobalSecondaryIndexes"]} == {"KEYS_ONLY"}
    assert {(item["AttributeName"], item["AttributeType"]) for item in table["AttributeDefinitions"]} == {
        (name, "S") for name in ("pk", "sk", "owner_key", "active_at", "due_key", "due_at")
    }
    assert (schema.OWNER_INDEX, schema.DUE_INDEX) == ("by_owner", "by_due")


def test_the_stream_has_both_images_from_the_first_deploy(table: dict[str, Any]) -> None:
    assert table["StreamSpecification"] == {"StreamViewType": "NEW_AND_OLD_IMAGES"}


def test_ttl_and_billing(table: dict[str, Any]) -> None:
    assert table["TimeToLiveSpecification"] == {"AttributeName": schema.TTL_ATTRIBUTE, "Enabled": True}
    assert table["BillingMode"] == "PAY_PER_REQUEST"


def test_each_replica_can_be_taken_back(replica: dict[str, Any]) -> None:
    assert replica["PointInTimeRecoverySpecification"] == {
        "PointInTimeRecoveryEnabled": True,
        "RecoveryPeriodInDays": 21,
    }


def test_each_replica_is_protected_from_deletion(replica: dict[str, Any]) -> None:
    assert replica["DeletionProtectionEnabled"] is True


def test_each_replica_is_encrypted_with_its_own_regions_key(table: dict[str, Any], replica: dict[str, Any]) -> None:
    assert table["SSESpecification"] == {"SSEEnabled": True, "SSEType": "KMS"}
    assert replica["SSESpecification"] == {
        "KMSMasterKeyId": f"arn:aws:kms:{replica['Region']}:{ACCOUNT}:alias/threadkeep-prod"
    }


def test_each_replica_and_index_reports_throttled_keys(replica: dict[str, Any]) -> None:
    insights = {"Enabled": True, "Mode": "THROTTLED_KEYS"}
    assert replica["ContributorInsightsSpecification"] == insights
    assert {
        index["IndexName"]: index["ContributorInsightsSpecification"] for index in replica["GlobalSecondaryIndexes"]
    } == {"by_owner": insights, "by_due": insights}


def test_the_table_outlives_its_stack(aws: Deployment) -> None:
    table = aws.only(TABLE, "State")
    assert (table["DeletionPolicy"], table["UpdateReplacePolicy"]) == ("Retain", "Retain")


def test_its_name_is_an_output(aws: Deployment) -> None:
    assert "TableName" in aws.templates["State"]["Outputs"]


def key(name: str, kind: str) -> dict[str, str]:
    return {"AttributeName": name, "KeyType": kind}
