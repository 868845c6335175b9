"""What cdk-nag cannot see: it passes global tables over, and knows no rule for ElastiCache Serverless.

Each rule holds for every resource of its kind in every template of a real account, so that a new one is held to it.
"""

from __future__ import annotations

from typing import Any, Final

import pytest

from tests.infra.synthesized import ACCOUNT, Deployment, Resource, resolve

DENY_PLAIN: Final = {"Bool": {"aws:SecureTransport": "false"}}


@pytest.fixture(params=["aws", "aws_vpc"])
def deployment(request: pytest.FixtureRequest) -> Deployment:
    found: Deployment = request.getfixturevalue(request.param)
    return found


def properties(deployment: Deployment, kind: str) -> list[tuple[str, dict[str, Any]]]:
    """Of every resource of a kind, with its place; there is one at least."""
    found = [(name, resolve(resource["Properties"])) for name, resource in deployment.resources(kind).items()]
    assert found, kind
    return found


def region_of(place: str) -> str:
    """The region of the stack that a resource is in."""
    return place.split("/", maxsplit=1)[0].partition("-")[2]


def is_kept(resource: Resource) -> bool:
    """Whether it outlives its stack."""
    return (resource["DeletionPolicy"], resource["UpdateReplacePolicy"]) == ("Retain", "Retain")


def denies_plain_text(policy: dict[str, Any]) -> bool:
    """Whether a resource's policy refuses whoever comes without TLS, in whatever."""
    return any(
        (one["Effect"], one["Principal"], one.get("Condition")) == ("Deny", {"AWS": "*"}, DENY_PLAIN)
        and one["Action"] in ("s3:*", "sqs:*")
        for one in policy["Statement"]
    )


# --- the table ----------------------------------------------------------------------------------------------------


def test_there_is_no_table_but_a_global_one(deployment: Deployment) -> None:
    assert "AWS::DynamoDB::Table" not in deployment.types
    for name, resource in deployment.resources("AWS::DynamoDB::GlobalTable").items():
        assert is_kept(resource), name
        assert name.split("/")[0] in deployment.protected, "its stack is not deleted by mistake"


def test_every_replica_has_recovery_protection_and_a_key_of_its_own_region(deployment: Deployment) -> None:
    for name, table in properties(deployment, "AWS::DynamoDB::GlobalTable"):
        assert table["SSESpecification"] == {"SSEEnabled": True, "SSEType": "KMS"}, name
        assert {replica["Region"] for replica in table["Replicas"]} == set(deployment.settings.regions)
        keys = []
        for replica in table["Replicas"]:
            place = (name, replica["Region"])
            recovery = replica["PointInTimeRecoverySpecification"]
            assert recovery["PointInTimeRecoveryEnabled"] is True, place
            assert recovery["RecoveryPeriodInDays"] == deployment.settings.pitr_days, place
            assert replica["DeletionProtectionEnabled"] is True, place
            key = replica["SSESpecification"]["KMSMasterKeyId"]
            assert key.startswith(f"arn:aws:kms:{replica['Region']}:{ACCOUNT}:alias/"), place
            assert "ResourcePolicy" not in replica, "nobody outside the account is let in"
            keys.append(key)
        assert len(set(keys)) == len(keys)


# --- the cache ----------------------------------------------------------------------------------------------------


def test_a_cache_is_a_serverless_one_which_takes_nothing_but_tls(deployment: Deployment) -> None:
    """TLS is always on there, and no setting turns it off (ElastiCache user guide, read 2026-11-29)."""
    assert {kind for kind in deployment.types if kind.startswith("AWS::ElastiCache::")} == {
        "AWS::ElastiCache::ServerlessCache",
        "AWS::ElastiCache::User",
        "AWS::ElastiCache::UserGroup",
    }


def test_a_cache_has_a_group_of_users_a_key_of_ours_and_no_snapshots(deployment: Deployment) -> None:
    for name, cache in properties(deployment, "AWS::ElastiCache::ServerlessCache"):
        stack = name.split("/")[0]
        assert cache["UserGroupId"].strip("<>") in deployment.resources("AWS::ElastiCache::UserGroup", stack), name
        assert cache["KmsKeyId"].startswith(f"<Threadkeep-{deployment.settings.stage}-Keys-{region_of(name)} "), name
        assert cache["SnapshotRetentionLimit"] == 0, name
        is_public = cache.get("ConnectionType") == "public"
        assert is_public is (deployment.settings.network == "public"), name
        assert is_public is not bool(cache.get("SecurityGroupIds")), name


def test_every_user_of_a_cache_is_one_roles_logs_in_by_iam_and_may_administer_nothing(deployment: Deployment) -> None:
    for name, user in properties(deployment, "AWS::ElastiCache::User"):
        assert user["AuthenticationMode"] == {"Type": "iam"}, name
        assert not {"Passwords", "NoPasswordRequired"} & set(user), name
        assert user["UserName"] == user["UserId"] != "default", name
        words = user["AccessString"].split()
        assert words[0] == "on", name
        assert {"-@admin", "-@dangerous"} <= set(words), name
        region, bulkhead = region_of(name), user["UserId"].removeprefix(f"threadkeep-{deployment.settings.stage}-")
        hot = deployment.config(region, bulkhead).hot
        assert hot is not None
        assert (hot.auth, hot.user) == ("iam", user["UserId"]), name


def test_no_function_reaches_a_cache_without_tls_and_login(deployment: Deployment) -> None:
    for region in deployment.settings.regions:
        for resource in deployment.resources("AWS::Lambda::Function", f"Realtime-{region}").values():
            variables = resource["Properties"].get("Environment", {}).get("Variables", {})
            if "THREADKEEP_HOT_HOST" in variables:
                assert variables["THREADKEEP_HOT_AUTH"] == "iam"


# --- buckets --------------------------------------------------------------------------------------------------------


def test_every_bucket_is_private_encrypted_unversioned_kept_and_reached_by_tls(deployment: Deployment) -> None:
    for name, bucket in properties(deployment, "AWS::S3::Bucket"):
        stack, logical_id = name.split("/")
        assert bucket["PublicAccessBlockConfiguration"] == {
            "BlockPublicAcls": True,
            "BlockPublicPolicy": True,
            "IgnorePublicAcls": True,
            "RestrictPublicBuckets": True,
        }, name
        (rule,) = bucket["BucketEncryption"]["ServerSideEncryptionConfiguration"]
        encryption = rule["ServerSideEncryptionByDefault"]
        assert encryption["SSEAlgorithm"] == "aws:kms", name
        assert region_of(name) in encryption["KMSMasterKeyID"], name
        assert not {
            "VersioningConfiguration",
            "ReplicationConfiguration",
            "WebsiteConfiguration",
            "AccessControl",
            "ObjectLockConfiguration",
        } & set(bucket), "what is erased is gone, and nobody else sees it"
        assert is_kept(deployment.templates[stack]["Resources"][logical_id]), name
        policies = deployment.resources("AWS::S3::BucketPolicy", stack).values()
        (policy,) = [one["Properties"] for one in policies if one["Properties"]["Bucket"] == {"Ref": logical_id}]
        document = resolve(policy["PolicyDocument"])
        assert denies_plain_text(document), name
        assert not [one for one in document["Statement"] if one["Effect"] == "Allow"], name


# --- queues -----------------------------------------------------------------------------------------------------------


def test_every_queue_is_encrypted_reached_by_tls_and_loses_nothing_that_fails(deployment: Deployment) -> None:
    set_aside = dead_letters(deployment)
    for name, queue in properties(deployment, "AWS::SQS::Queue"):
        stack, logical_id = name.split("/")
        assert queue["SqsManagedSseEnabled"] is True, name
        assert queue["MessageRetentionPeriod"] >= 7 * 86_400, name
        policies = [
            resolve(one["Properties"]["PolicyDocument"])
            for one in deployment.resources("AWS::SQS::QueuePolicy", stack).values()
            if {"Ref": logical_id} in one["Properties"]["Queues"]
        ]
        assert any(denies_plain_text(policy) for policy in policies), name
        assert not [one for policy in policies for one in policy["Statement"] if one["Effect"] == "Allow"], name
        assert ("RedrivePolicy" in queue) is not ((stack, logical_id) in set_aside), name


def dead_letters(deployment: Deployment) -> set[tuple[str, str]]:
    """Queues in which jobs, changes and answers end that failed: nothing is behind these but people."""
    found = set()
    for name, queue in properties(deployment, "AWS::SQS::Queue"):
        if "RedrivePolicy" in queue:
            found.add((name.split("/")[0], arn_of(queue["RedrivePolicy"]["deadLetterTargetArn"])))
    for kind in ("AWS::Lambda::EventSourceMapping", "AWS::Lambda::EventInvokeConfig"):
        for name, told in properties(deployment, kind):
            if "DestinationConfig" in told:
                destination = told["DestinationConfig"]["OnFailure"]["Destination"]
                found.add((name.split("/")[0], arn_of(destination)))
    return found


def arn_of(reference: str) -> str:
    """The logical id behind a resolved reference to an ARN."""
    return reference.strip("<>").removesuffix(".Arn")
