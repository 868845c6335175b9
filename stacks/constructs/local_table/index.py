"""Sets what the emulator ignores in a table's template: its replicas and its TTL attribute.

A custom resource of the local target alone, in plain Python: it answers CloudFormation itself, at ``ResponseURL``.
Properties: ``Table``, ``Regions`` (every region of the deployment) and ``TtlAttribute``.
"""

from __future__ import annotations

import json
import os
import time
import urllib.request
from typing import Any

import boto3
from botocore.exceptions import ClientError

_ACTIVE_WAIT_S = 60


def handler(event: dict[str, Any], _context: Any) -> None:
    """Bring the table to its settings on create and update; a delete leaves it to its own resource."""
    properties = event["ResourceProperties"]
    answer: dict[str, Any] = {"Status": "SUCCESS"}
    try:
        if event["RequestType"] != "Delete":
            _apply(properties["Table"], properties["Regions"], properties["TtlAttribute"])
    except Exception as error:  # noqa: BLE001 - whatever it is, CloudFormation waits an hour for an answer
        answer = {"Status": "FAILED", "Reason": f"{type(error).__name__}: {error}"[:1000]}
    answer |= {key: event[key] for key in ("StackId", "RequestId", "LogicalResourceId")}
    answer["PhysicalResourceId"] = event.get("PhysicalResourceId", f"{properties['Table']}-settings")
    request = urllib.request.Request(event["ResponseURL"], data=json.dumps(answer).encode(), method="PUT")  # noqa: S310
    urllib.request.urlopen(request, timeout=10).close()  # noqa: S310 - the address is CloudFormation's own


def _apply(table: str, regions: list[str], ttl_attribute: str) -> None:
    home = os.environ["AWS_REGION"]
    dynamodb = boto3.client("dynamodb", region_name=home)
    for region in regions:
        held = {replica["RegionName"] for replica in _active(dynamodb, table).get("Replicas", [])}
        if region not in held | {home}:
            dynamodb.update_table(TableName=table, ReplicaUpdates=[{"Create": {"RegionName": region}}])
    for region in regions:
        _expire(boto3.client("dynamodb", region_name=region), table, ttl_attribute)


def _expire(dynamodb: Any, table: str, attribute: str) -> None:
    _active(dynamodb, table)
    if dynamodb.describe_time_to_live(TableName=table)["TimeToLiveDescription"].get("AttributeName") != attribute:
        specification = {"Enabled": True, "AttributeName": attribute}
        dynamodb.update_time_to_live(TableName=table, TimeToLiveSpecification=specification)


def _active(dynamodb: Any, table: str) -> dict[str, Any]:
    until = time.monotonic() + _ACTIVE_WAIT_S
    while True:
        try:
            description: dict[str, Any] = dynamodb.describe_table(TableName=table)["Table"]
        except ClientError as error:
            if error.response["Error"]["Code"] != "ResourceNotFoundException" or time.monotonic() > until:
                raise
        else:
            if description["TableStatus"] == "ACTIVE":
                return description
            if time.monotonic() > until:
                raise TimeoutError(f"table {table} is still {description['TableStatus']} after {_ACTIVE_WAIT_S} s")
        time.sleep(0.2)
