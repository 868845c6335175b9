"""Valkey: who may log in, and that nothing of it outlives an erasure.

No rule of cdk-nag knows ElastiCache Serverless: these stand in for it.
"""

from __future__ import annotations

from typing import Any

import pytest

from stacks import naming
from tests.infra.synthesized import Deployment, resolve
from threadkeep import schema

REGIONS = ("eu-central-1", "us-east-1")
NAMES = (*schema.ROUTES, "sweeper", "responder", "herald")


@pytest.fixture(params=REGIONS)
def region(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def cache(aws: Deployment, region: str) -> dict[str, Any]:
    properties: dict[str, Any] = resolve(aws.only("AWS::ElastiCache::ServerlessCache", f"Hot-{region}")["Properties"])
    return properties


def test_it_is_valkey_9_with_a_public_endpoint(cache: dict[str, Any]) -> None:
    assert (cache["Engine"], cache["MajorEngineVersion"], cache["ConnectionType"]) == ("valkey", "9", "public")
    assert not {"SubnetIds", "SecurityGroupIds"} & set(cache)


def test_no_snapshot_is_ever_made(cache: dict[str, Any]) -> None:
    assert cache["SnapshotRetentionLimit"] == 0
    assert not {"FinalSnapshotName", "DailySnapshotTime", "SnapshotArnsToRestore"} & set(cache)


def test_its_data_has_a_maximum(cache: dict[str, Any]) -> None:
    assert cache["CacheUsageLimits"] == {"DataStorage": {"Maximum": 10, "Unit": "GB"}}


def test_it_is_encrypted_with_its_regions_key(cache: dict[str, Any], region: str) -> None:
    assert cache["KmsKeyId"] == f"<Threadkeep-prod-Keys-{region} in {region}>"


def test_every_user_logs_in_by_iam_and_none_may_empty_it(aws: Deployment, region: str) -> None:
    users = [user["Properties"] for user in aws.resources("AWS::ElastiCache::User", f"Hot-{region}").values()]
    assert {user["UserId"] for user in users} == {f"threadkeep-prod-{name}" for name in NAMES}
    for user in users:
        assert user["UserName"] == user["UserId"]
        assert user["AuthenticationMode"] == {"Type": "iam"}
        assert user["AccessString"].split()[2:] == ["+@all", "-@admin", "-@dangerous", "-script|flush"]
        assert not {"Passwords", "NoPasswordRequired"} & set(user)


def test_the_cache_admits_these_users_alone(aws: Deployment, cache: dict[str, Any], region: str) -> None:
    ((name, group),) = aws.resources("AWS::ElastiCache::UserGroup", f"Hot-{region}").items()
    assert cache["UserGroupId"] == f"<{name}>"
    assert {reference["Ref"] for reference in group["Properties"]["UserIds"]} == set(
        aws.resources("AWS::ElastiCache::User", f"Hot-{region}")
    )


def test_names_keep_elasticaches_bound_with_the_longest_stage() -> None:
    stage = "a" * 16
    names = [naming.cache(stage, "public"), *(naming.cache_user(stage, name) for name in NAMES)]
    assert max(map(len, names)) <= 40
    assert all(name == name.lower() for name in names)
