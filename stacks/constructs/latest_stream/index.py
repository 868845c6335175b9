"""Says which stream a table's replica in this region has: its ARN carries a label that no template can know.

A custom resource in plain Python: it answers CloudFormation itself, at ``ResponseURL``. Properties: ``Table``, and
``Revision``, with another of which it is asked again. Attribute: ``StreamArn``, which is the physical id too, so that
another stream is another resource.
"""

from __future__ import annotations

import json
import urllib.request
from typing import Any

import boto3


def handler(event: dict[str, Any], _context: Any) -> None:
    """Look it up on create and update; on delete there is nothing to take back."""
    answer: dict[str, Any] = {key: event[key] for key in ("StackId", "RequestId", "LogicalResourceId")}
    answer |= {"Status": "SUCCESS", "PhysicalResourceId": event.get("PhysicalResourceId", "none")}
    try:
        if event["RequestType"] != "Delete":
            table = boto3.client("dynamodb").describe_table(TableName=event["ResourceProperties"]["Table"])["Table"]
            answer["PhysicalResourceId"] = table["LatestStreamArn"]
            answer["Data"] = {"StreamArn": table["LatestStreamArn"]}
    except Exception as error:  # noqa: BLE001 - whatever it is, CloudFormation waits an hour for an answer
        answer |= {"Status": "FAILED", "Reason": f"{type(error).__name__}: {error}"[:1000]}
    request = urllib.request.Request(event["ResponseURL"], data=json.dumps(answer).encode(), method="PUT")  # noqa: S310
    urllib.request.urlopen(request, timeout=10).close()  # noqa: S310 - the address is CloudFormation's own
