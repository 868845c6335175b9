"""Checks that read the account: what is as declared passes, and each way of being otherwise is seen.

The answers are in the words of botocore's models (see `ToldGround`), so a name that AWS does not give is an error here.
"""

from __future__ import annotations

import copy
import datetime as dt
import io
from collections.abc import Mapping
from typing import Any, Final

import pytest

from smoke.outcome import Outcome, Verdict
from smoke.registry import all_checks
from tests.support.smoke import ACCOUNT, REGION, Answer, ToldGround, refusal, target
from threadkeep import schema
from threadkeep.stores.zstandard import compress

NOW: Final = dt.datetime(2026, 11, 29, tzinfo=dt.UTC)
VPC: Final = {"VpcId": "vpc-1", "SubnetIds": ["subnet-1", "subnet-2"], "Ipv6AllowedForDualStack": True}
INSIDE: Final = {"Environment": {"Variables": {"THREADKEEP_HOT_CACHE": "threadkeep-prod-vpc"}}, "VpcConfig": VPC}
KEY: Final = f"arn:aws:kms:{REGION}:{ACCOUNT}:key/1"
TABLE: Final = {
    "TableArn": f"arn:aws:dynamodb:{REGION}:{ACCOUNT}:table/threadkeep-prod",
    "DeletionProtectionEnabled": True,
    "Replicas": [{"RegionName": REGION}, {"RegionName": "us-east-1"}],
    "SSEDescription": {"Status": "ENABLED", "SSEType": "KMS", "KMSMasterKeyArn": KEY},
}
MAPPING: Final = {
    "MaximumRecordAgeInSeconds": 86_400,
    "MaximumRetryAttempts": -1,
    "DestinationConfig": {
        "OnFailure": {"Destination": f"arn:aws:sqs:{REGION}:{ACCOUNT}:threadkeep-prod-failed-changes"}
    },
    "FunctionResponseTypes": ["ReportBatchItemFailures"],
    "BisectBatchOnFunctionError": True,
}
RULES: Final = [
    {
        "ID": "abort-incomplete-uploads",
        "Status": "Enabled",
        "AbortIncompleteMultipartUpload": {"DaysAfterInitiation": 1},
    },
    {"ID": "unused-uploads-expire", "Status": "Enabled", "Expiration": {"Days": schema.UPLOADS_DAYS}},
    {"ID": "exports-expire", "Status": "Enabled", "Expiration": {"Days": schema.EXPORTS_DAYS}},
    {
        "ID": "large-segments-to-instant-retrieval",
        "Status": "Enabled",
        "Transitions": [{"Days": 30, "StorageClass": "GLACIER_IR"}],
    },
]
SEGMENT: Final = compress(b'{"id": "1"}\n') + compress(b'{"id": "2"}\n{"id": "3"}\n')
SEGMENT_KEY: Final = "segments/acme/c/1-f.jsonl.zst"
CACHE: Final = {
    "MajorEngineVersion": "9",
    "CacheUsageLimits": {"DataStorage": {"Maximum": 5, "Unit": "GB"}},
    "SnapshotRetentionLimit": 0,
    "Endpoint": {"Address": "cache.example", "Port": 6379},
}


def routes(**ways: str) -> dict[str, Any]:
    """Route tables with these gateways."""
    return {
        "RouteTables": [
            {"Routes": [{"DestinationCidrBlock": "10.0.0.0/16", "GatewayId": "local"}]},
            {"Routes": [{"DestinationIpv6CidrBlock": "::/0", "EgressOnlyInternetGatewayId": "eigw-1"}, ways]},
        ]
    }


ENDPOINTS: Final = {
    "VpcEndpoints": [
        {"ServiceName": f"com.amazonaws.{REGION}.{name}", "VpcEndpointType": "Gateway"} for name in ("s3", "dynamodb")
    ]
}

GOOD: Final[dict[str, tuple[Verdict, dict[str, Answer]]]] = {
    "vpc-shape": (
        Verdict.READ_BACK,
        {
            "lambda.get_function_configuration": INSIDE,
            "ec2.describe_route_tables": routes(),
            "ec2.describe_vpc_endpoints": ENDPOINTS,
        },
    ),
    "replica-recovery": (
        Verdict.READ_BACK,
        {
            "dynamodb.describe_table": {"Table": TABLE},
            "dynamodb.describe_continuous_backups": {
                "ContinuousBackupsDescription": {
                    "ContinuousBackupsStatus": "ENABLED",
                    "PointInTimeRecoveryDescription": {"PointInTimeRecoveryStatus": "ENABLED"},
                }
            },
        },
    ),
    "replica-protection": (Verdict.READ_BACK, {"dynamodb.describe_table": {"Table": TABLE}}),
    "replica-keys": (
        Verdict.SHOWN,
        {"dynamodb.describe_table": {"Table": TABLE}, "kms.describe_key": {"KeyMetadata": {"Arn": KEY}}},
    ),
    "stream-retries": (Verdict.READ_BACK, {"lambda.list_event_source_mappings": {"EventSourceMappings": [MAPPING]}}),
    "stream-partial-answers": (
        Verdict.READ_BACK,
        {"lambda.list_event_source_mappings": {"EventSourceMappings": [MAPPING]}},
    ),
    "stream-bisecting": (Verdict.READ_BACK, {"lambda.list_event_source_mappings": {"EventSourceMappings": [MAPPING]}}),
    "ttl-records": (
        Verdict.SHOWN,
        {
            "dynamodb.describe_time_to_live": {
                "TimeToLiveDescription": {"TimeToLiveStatus": "ENABLED", "AttributeName": schema.TTL_ATTRIBUTE}
            },
            "cloudwatch.get_metric_statistics": {"Datapoints": [{"Sum": 3.0}]},
        },
    ),
    "bucket-lifecycle": (Verdict.READ_BACK, {"s3.get_bucket_lifecycle_configuration": {"Rules": RULES}}),
    "bucket-copies": (
        Verdict.SHOWN,
        {
            "s3.get_bucket_replication": refusal("ReplicationConfigurationNotFoundError", "GetBucketReplication"),
            "s3.list_objects_v2": {"Contents": [{"Key": SEGMENT_KEY}]},
            "s3.head_object": {"ContentLength": 1},
            "dynamodb.describe_table": {"Table": TABLE},
        },
    ),
    "lifecycle-acts": (
        Verdict.SHOWN,
        {
            "s3.list_objects_v2": lambda **asked: {
                "Contents": [
                    {"Key": SEGMENT_KEY, "StorageClass": "GLACIER_IR", "LastModified": NOW - dt.timedelta(days=99)}
                ]
                if asked["Prefix"] == schema.SEGMENTS_PREFIX
                else []
            }
        },
    ),
    "athena": (
        Verdict.SHOWN,
        {
            "s3.list_objects_v2": {"Contents": [{"Key": SEGMENT_KEY, "Size": len(SEGMENT)}]},
            "s3.get_object": lambda **_: {"Body": io.BytesIO(SEGMENT)},
            "athena.start_query_execution": {"QueryExecutionId": "q"},
            "athena.get_query_execution": {
                "QueryExecution": {
                    "Status": {"State": "SUCCEEDED"},
                    "ResultConfiguration": {"OutputLocation": "s3://results/place/q.csv"},
                }
            },
            "athena.get_query_results": {
                "ResultSet": {"Rows": [{"Data": [{"VarCharValue": "_col0"}]}, {"Data": [{"VarCharValue": "3"}]}]}
            },
            "s3.delete_object": {},
        },
    ),
    "reserved-concurrency": (
        Verdict.READ_BACK,
        {"lambda.get_function_concurrency": {"ReservedConcurrentExecutions": 10}},
    ),
    "invoke-payload-limit": (
        Verdict.SHOWN,
        {"lambda.invoke": refusal("RequestEntityTooLargeException", "Invoke", 413)},
    ),
    "valkey-limits": (
        Verdict.READ_BACK,
        {
            "lambda.get_function_configuration": INSIDE,
            "elasticache.describe_serverless_caches": {"ServerlessCaches": [CACHE]},
            "elasticache.describe_users": {
                "Users": [
                    {"UserId": "threadkeep-prod-stream", "Authentication": {"Type": "iam"}},
                    {"UserId": "default", "Authentication": {"Type": "no-password"}},
                ]
            },
        },
    ),
    "leading-keys": (
        Verdict.READ_BACK,
        {
            "lambda.get_function_configuration": {"Role": f"arn:aws:iam::{ACCOUNT}:role/exporter"},
            "dynamodb.describe_table": {"Table": TABLE},
            "iam.simulate_principal_policy": lambda **asked: {
                "EvaluationResults": [
                    {
                        "EvalActionName": "dynamodb:PutItem",
                        "EvalDecision": "allowed"
                        if schema.EXPORTS_MARK in asked["ContextEntries"][0]["ContextKeyValues"][0]
                        else "implicitDeny",
                    }
                ]
            },
        },
    ),
}
"""An account that is as declared, for each of these checks."""

OTHERWISE: Final[list[tuple[str, dict[str, Answer]]]] = [
    ("vpc-shape", {"ec2.describe_route_tables": routes(DestinationCidrBlock="0.0.0.0/0", NatGatewayId="nat-1")}),
    ("vpc-shape", {"ec2.describe_vpc_endpoints": {"VpcEndpoints": []}}),
    (
        "vpc-shape",
        {"lambda.get_function_configuration": INSIDE | {"VpcConfig": VPC | {"Ipv6AllowedForDualStack": False}}},
    ),
    ("vpc-shape", {"ec2.describe_route_tables": {"RouteTables": []}}),
    (
        "replica-recovery",
        {
            "dynamodb.describe_continuous_backups": {
                "ContinuousBackupsDescription": {"ContinuousBackupsStatus": "ENABLED"}
            }
        },
    ),
    (
        "replica-protection",
        {
            "dynamodb.describe_table": lambda region, **_: {
                "Table": TABLE | {"DeletionProtectionEnabled": region == REGION}
            }
        },
    ),
    ("replica-keys", {"kms.describe_key": {"KeyMetadata": {"Arn": KEY + "2"}}}),
    ("stream-retries", {"lambda.list_event_source_mappings": {"EventSourceMappings": [{"MaximumRetryAttempts": 2}]}}),
    (
        "stream-retries",
        {"lambda.list_event_source_mappings": {"EventSourceMappings": [MAPPING | {"DestinationConfig": {}}]}},
    ),
    ("stream-partial-answers", {"lambda.list_event_source_mappings": {"EventSourceMappings": [{"UUID": "1"}]}}),
    ("stream-bisecting", {"lambda.list_event_source_mappings": {"EventSourceMappings": [{"UUID": "1"}]}}),
    ("ttl-records", {"dynamodb.describe_time_to_live": {"TimeToLiveDescription": {"TimeToLiveStatus": "DISABLED"}}}),
    ("bucket-lifecycle", {"s3.get_bucket_lifecycle_configuration": {"Rules": RULES[:3]}}),
    ("bucket-lifecycle", {"s3.get_bucket_lifecycle_configuration": {"Rules": RULES[1:]}}),
    ("bucket-lifecycle", {"s3.get_bucket_lifecycle_configuration": refusal("NoSuchLifecycleConfiguration", "Get")}),
    ("bucket-copies", {"s3.head_object": refusal("404", "HeadObject")}),
    ("bucket-copies", {"s3.get_bucket_replication": {"ReplicationConfiguration": {"Role": "r", "Rules": []}}}),
    (
        "lifecycle-acts",
        {"s3.list_objects_v2": {"Contents": [{"Key": "exports/x", "LastModified": NOW - dt.timedelta(days=99)}]}},
    ),
    ("athena", {"s3.get_object": lambda **_: {"Body": io.BytesIO(compress(b"{}\n"))}}),
    ("athena", {"athena.get_query_execution": {"QueryExecution": {"Status": {"State": "FAILED"}}}}),
    (
        "reserved-concurrency",
        {
            "lambda.get_function_concurrency": lambda region, FunctionName: (  # noqa: ARG005, N803 -- AWS's own names
                {} if FunctionName.endswith("history") else {"ReservedConcurrentExecutions": 10}
            )
        },
    ),
    ("invoke-payload-limit", {"lambda.invoke": {"StatusCode": 200}}),
    (
        "valkey-limits",
        {"elasticache.describe_serverless_caches": {"ServerlessCaches": [{**CACHE, "SnapshotRetentionLimit": 1}]}},
    ),
    (
        "valkey-limits",
        {"elasticache.describe_serverless_caches": {"ServerlessCaches": [{**CACHE, "CacheUsageLimits": {}}]}},
    ),
    (
        "valkey-limits",
        {
            "elasticache.describe_users": {
                "Users": [{"UserId": "threadkeep-prod-send", "Authentication": {"Type": "password"}}]
            }
        },
    ),
    (
        "leading-keys",
        {
            "iam.simulate_principal_policy": {
                "EvaluationResults": [{"EvalActionName": "dynamodb:PutItem", "EvalDecision": "allowed"}]
            }
        },
    ),
]
"""One thing in it changed."""


async def found(line: str, *changes: Mapping[str, Any], regions: tuple[str, ...] = (REGION, "us-east-1")) -> Outcome:
    _, account = copy.copy(GOOD[line])
    told = dict(account)
    for change in changes:
        told |= change
    return await all_checks()[line].run(ToldGround(told, of=target(regions=regions)))


@pytest.mark.parametrize("line", sorted(GOOD))
async def test_an_account_as_declared_passes(line: str) -> None:
    outcome = await found(line)
    assert outcome.verdict is GOOD[line][0], outcome.detail


@pytest.mark.parametrize(("line", "change"), OTHERWISE, ids=[f"{line}-{n}" for n, (line, _) in enumerate(OTHERWISE)])
async def test_an_account_that_is_otherwise_fails(line: str, change: dict[str, Answer]) -> None:
    outcome = await found(line, change)
    assert outcome.verdict is Verdict.FAILED, outcome.detail


@pytest.mark.parametrize(
    ("line", "change", "verdict"),
    [
        ("vpc-shape", {"lambda.get_function_configuration": {"Runtime": "python3.14"}}, Verdict.NOT_APPLICABLE),
        (
            "valkey-limits",
            {"lambda.get_function_configuration": {"Environment": {"Variables": {}}}},
            Verdict.NOT_APPLICABLE,
        ),
        ("reserved-concurrency", {"lambda.get_function_concurrency": {}}, Verdict.NOT_APPLICABLE),
        ("ttl-records", {"cloudwatch.get_metric_statistics": {"Datapoints": []}}, Verdict.NEEDS_HOURS),
        ("bucket-copies", {"s3.list_objects_v2": {}}, Verdict.NEEDS_HOURS),
        ("lifecycle-acts", {"s3.list_objects_v2": {}}, Verdict.NEEDS_HOURS),
        ("athena", {"s3.list_objects_v2": {}}, Verdict.NEEDS_HOURS),
    ],
)
async def test_what_there_is_nothing_to_show_on_says_so(line: str, change: dict[str, Answer], verdict: Verdict) -> None:
    assert (await found(line, change)).verdict is verdict


async def test_what_athena_wrote_down_is_deleted() -> None:
    ground = ToldGround(GOOD["athena"][1])
    assert (await all_checks()["athena"].run(ground)).verdict is Verdict.SHOWN
    deleted = [asked["Key"] for call, asked in ground.asked if call == "s3.delete_object"]
    assert deleted == ["place/q.csv", "place/q.csv.metadata"]


async def test_with_one_region_nothing_is_said_of_replicas() -> None:
    alone = {"dynamodb.describe_table": {"Table": TABLE | {"Replicas": []}}}
    assert (await found("replica-keys", alone, regions=(REGION,))).verdict is Verdict.NOT_APPLICABLE
    assert (await found("bucket-copies", alone, regions=(REGION,))).verdict is Verdict.NOT_APPLICABLE


async def test_what_comes_in_pages_is_read_to_the_end_past_empty_ones() -> None:
    pages: dict[str | None, dict[str, Any]] = {
        None: {"events": [], "nextToken": "1"},
        "1": {"events": [{"message": "late"}]},
    }
    ground = ToldGround({"logs.filter_log_events": lambda **asked: pages[asked.get("nextToken")]})
    assert await ground.log_lines("group", 0, "late") == ["late"]
