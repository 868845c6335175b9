"""The table and the bucket in moto, as `threadkeep.schema` says."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import boto3
import pytest
from moto import mock_aws

from threadkeep import schema
from threadkeep.stores import aws_config
from threadkeep.stores.buckets_s3 import Bucket

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient
    from mypy_boto3_s3 import S3Client

REGION = "us-east-1"
TABLE = "threadkeep-test"
BUCKET = "threadkeep-test"


def buckets_of(client: S3Client) -> dict[str, Bucket]:
    """The one region that has a bucket here."""
    return {REGION: Bucket(client, BUCKET)}


@contextmanager
def moto_clients() -> Iterator[tuple[DynamoDBClient, S3Client]]:
    """Clients of an empty table and an empty bucket, without any service of its own to reach."""
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("AWS_ENDPOINT_URL", raising=False)  # with it moto sees nothing
        patch.setenv("AWS_ACCESS_KEY_ID", "testing")
        patch.setenv("AWS_SECRET_ACCESS_KEY", "testing")
        with mock_aws():
            table = boto3.client("dynamodb", region_name=REGION, config=aws_config.STORE)
            bucket = boto3.client("s3", region_name=REGION, config=aws_config.BUCKET)
            create_table(table)
            bucket.create_bucket(Bucket=BUCKET)
            yield table, bucket


def empty_table(client: DynamoDBClient) -> None:
    """A new table in place of the one that there is: much quicker than new clients."""
    client.delete_table(TableName=TABLE)
    create_table(client)


def create_table(client: DynamoDBClient) -> None:
    """The table with both of its sparse indexes."""
    indexes = {
        schema.OWNER_INDEX: (schema.OWNER_KEY, schema.OWNER_SORT),
        schema.DUE_INDEX: (schema.DUE_KEY, schema.DUE_SORT),
    }
    names = [schema.PARTITION_KEY, schema.SORT_KEY, *(name for pair in indexes.values() for name in pair)]
    client.create_table(
        TableName=TABLE,
        BillingMode="PAY_PER_REQUEST",
        AttributeDefinitions=[{"AttributeName": name, "AttributeType": "S"} for name in names],
        KeySchema=[
            {"AttributeName": schema.PARTITION_KEY, "KeyType": "HASH"},
            {"AttributeName": schema.SORT_KEY, "KeyType": "RANGE"},
        ],
        GlobalSecondaryIndexes=[
            {
                "IndexName": index,
                "KeySchema": [
                    {"AttributeName": hash_key, "KeyType": "HASH"},
                    {"AttributeName": sort_key, "KeyType": "RANGE"},
                ],
                "Projection": {"ProjectionType": "KEYS_ONLY"},
            }
            for index, (hash_key, sort_key) in indexes.items()
        ],
    )
