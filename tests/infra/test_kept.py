"""Keys and buckets: what is kept is encrypted, private, and outlives its stack."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.infra.synthesized import ACCOUNT, Deployment, resolve
from threadkeep import schema
from threadkeep.domain import ids
from threadkeep.domain.model import ConversationKey
from threadkeep.stores import object_keys
from threadkeep.stores.segments import Line

REGIONS = ("eu-central-1", "us-east-1")


@pytest.fixture(params=REGIONS)
def region(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def key(aws: Deployment, region: str) -> dict[str, Any]:
    return aws.only("AWS::KMS::Key", f"Keys-{region}")


@pytest.fixture
def bucket(aws: Deployment, region: str) -> dict[str, Any]:
    return aws.only("AWS::S3::Bucket", f"Cold-{region}")


def test_each_region_has_a_key_of_its_own_under_one_alias(aws: Deployment, key: dict[str, Any], region: str) -> None:
    alias = resolve(aws.only("AWS::KMS::Alias", f"Keys-{region}")["Properties"])
    assert alias["AliasName"] == "alias/threadkeep-prod"
    assert key["Properties"]["EnableKeyRotation"] is True
    assert "MultiRegion" not in key["Properties"]


def test_the_key_outlives_its_stack(key: dict[str, Any]) -> None:
    assert (key["DeletionPolicy"], key["UpdateReplacePolicy"]) == ("Retain", "Retain")


def test_the_key_serves_our_stores_in_its_region_and_nobody_else(key: dict[str, Any], region: str) -> None:
    administration, use = resolve(key["Properties"]["KeyPolicy"])["Statement"]
    assert administration["Principal"] == {"AWS": f"arn:aws:iam::{ACCOUNT}:root"}
    assert use["Principal"] == {"AWS": "*"}
    assert use["Condition"] == {
        "StringEquals": {
            "kms:CallerAccount": ACCOUNT,
            "kms:ViaService": [f"{service}.{region}.amazonaws.com" for service in ("dynamodb", "elasticache", "s3")],
        }
    }
    assert not {"kms:*", "kms:ScheduleKeyDeletion", "kms:PutKeyPolicy"} & set(use["Action"])


def test_the_bucket_is_encrypted_with_its_regions_key(bucket: dict[str, Any], region: str) -> None:
    (rule,) = resolve(bucket["Properties"]["BucketEncryption"])["ServerSideEncryptionConfiguration"]
    assert rule["BucketKeyEnabled"] is True
    assert rule["ServerSideEncryptionByDefault"] == {
        "SSEAlgorithm": "aws:kms",
        "KMSMasterKeyID": f"<Threadkeep-prod-Keys-{region} in {region}>",
    }


def test_the_bucket_is_private_and_insists_on_tls(aws: Deployment, bucket: dict[str, Any], region: str) -> None:
    assert set(bucket["Properties"]["PublicAccessBlockConfiguration"].values()) == {True}
    policy = aws.only("AWS::S3::BucketPolicy", f"Cold-{region}")["Properties"]["PolicyDocument"]
    (statement,) = policy["Statement"]
    assert (statement["Effect"], statement["Action"], statement["Condition"]) == (
        "Deny",
        "s3:*",
        {"Bool": {"aws:SecureTransport": "false"}},
    )


def test_the_bucket_keeps_no_versions_and_copies_nothing(bucket: dict[str, Any]) -> None:
    """An erasure deletes each object where it lies; a version or a copy would survive it."""
    assert not {"VersioningConfiguration", "ReplicationConfiguration"} & set(bucket["Properties"])


def test_large_segments_move_to_instant_retrieval_and_none_but_uploads_and_exports_expire(
    bucket: dict[str, Any],
) -> None:
    abort, *expire, move = bucket["Properties"]["LifecycleConfiguration"]["Rules"]
    assert {(rule["Prefix"], rule["ExpirationInDays"], rule["Status"]) for rule in expire} == {
        ("uploads/", 2, "Enabled"),
        ("exports/", 1, "Enabled"),
    }
    assert abort["AbortIncompleteMultipartUpload"] == {"DaysAfterInitiation": 1}
    assert (move["Prefix"], move["ObjectSizeGreaterThan"]) == ("segments/", 128 * 1024 - 1)
    assert move["Transitions"] == [{"StorageClass": "GLACIER_IR", "TransitionInDays": 30}]
    assert all("Expiration" not in name for rule in (abort, move) for name in rule)


def test_no_tenants_objects_begin_as_another_kind_does() -> None:
    """Whatever a tenant is called: its bodies would expire, or be any caller's to write."""
    key_of: dict[str, Callable[[ConversationKey], str]] = {
        schema.BODIES_PREFIX: lambda key: object_keys.body(key, ids.mint(0), b""),
        schema.BLOBS_PREFIX: lambda key: object_keys.blob(key, "0" * 64),
        schema.SEGMENTS_PREFIX: lambda key: object_keys.segment(key, ids.mint(0), "0" * 64),
        schema.UPLOADS_PREFIX: lambda key: object_keys.upload(key, "0" * 64),
        schema.EXPORTS_PREFIX: lambda key: object_keys.export(key.tenant, ids.mint(0)),
    }
    for tenant in ("!uploads", "!", "", "uploads", "a/uploads", "../uploads", "%2E%2E/uploads"):
        for prefix, key in key_of.items():
            object_key = key(ConversationKey(tenant, ids.mint(0)))
            assert [other for other in key_of if object_key.startswith(other)] == [prefix]
            assert ".." not in object_key


def test_athena_reads_segments_by_tenant_where_they_lie(aws: Deployment, region: str) -> None:
    database = resolve(aws.only("AWS::Glue::Database", f"Cold-{region}")["Properties"])
    table = resolve(aws.only("AWS::Glue::Table", f"Cold-{region}")["Properties"])
    assert database["DatabaseInput"]["Name"] == table["DatabaseName"] == "threadkeep_prod"
    told = table["TableInput"]
    assert told["PartitionKeys"] == [{"Name": "tenant", "Type": "string"}]
    segments = f"s3://threadkeep-prod-{ACCOUNT}-{region}/segments/"
    assert told["Parameters"]["storage.location.template"] == segments + "${tenant}/"
    assert told["Parameters"]["projection.enabled"] == "true"
    assert told["Parameters"]["projection.tenant.type"] == "injected"
    stored = told["StorageDescriptor"]
    assert stored["Location"] == segments
    assert stored["SerdeInfo"] == {
        "SerializationLibrary": "org.openx.data.jsonserde.JsonSerDe",
        "Parameters": {"case.insensitive": "false"},
    }
    assert object_keys.segment(ConversationKey("a/b", "c"), "1", "2").startswith("segments/a%2Fb/")


def test_athenas_columns_are_the_fields_of_a_segments_line(aws: Deployment, region: str) -> None:
    table = aws.only("AWS::Glue::Table", f"Cold-{region}")["Properties"]
    columns = {column["Name"] for column in table["TableInput"]["StorageDescriptor"]["Columns"]}
    # Breaks only whoever writes a line back needs; the time of its id is not in it.
    assert columns == set(Line.__struct_fields__) - {"breaks", "created_at"}


def test_pages_of_the_allowed_origins_may_put_with_a_digest_and_no_more(bucket: dict[str, Any]) -> None:
    rules = bucket["Properties"]["CorsConfiguration"]["CorsRules"]
    assert {method for rule in rules for method in rule["AllowedMethods"]} == {"PUT", "GET", "HEAD"}
    assert {tuple(rule["AllowedOrigins"]) for rule in rules} == {
        ("https://chat.example.com", "https://app.example.com")
    }
    puts, _ = rules
    assert puts["AllowedMethods"] == ["PUT"]
    assert puts["AllowedHeaders"] == ["content-type", "x-amz-checksum-sha256"]


def test_pages_of_the_allowed_origins_may_get_in_ranges_and_read_the_files_name_and_size(
    bucket: dict[str, Any],
) -> None:
    _, gets = bucket["Properties"]["CorsConfiguration"]["CorsRules"]
    assert gets["AllowedMethods"] == ["GET", "HEAD"]
    assert gets["AllowedHeaders"] == ["range"]
    assert gets["ExposedHeaders"] == ["Content-Disposition", "Content-Length", "Content-Range", "ETag"]


def test_where_no_page_may_connect_none_may_put_or_get(local: Deployment) -> None:
    assert not local.settings.allowed_origins
    for region in local.settings.regions:
        assert "CorsConfiguration" not in local.only("AWS::S3::Bucket", f"Cold-{region}")["Properties"]


def test_the_bucket_outlives_its_stack(bucket: dict[str, Any]) -> None:
    assert (bucket["DeletionPolicy"], bucket["UpdateReplacePolicy"]) == ("Retain", "Retain")


def test_the_buckets_name_is_an_output(aws: Deployment, bucket: dict[str, Any], region: str) -> None:
    assert resolve(bucket["Properties"]["BucketName"]) == f"threadkeep-prod-{ACCOUNT}-{region}"
    assert "BucketName" in aws.templates[f"Cold-{region}"]["Outputs"]
