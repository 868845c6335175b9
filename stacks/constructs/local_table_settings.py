"""A custom resource that sets what the emulator ignores in a table's template."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import aws_cdk as cdk
from aws_cdk import aws_dynamodb as dynamodb
from aws_cdk import aws_iam as iam
from aws_cdk import aws_lambda as lambda_
from constructs import Construct

from threadkeep import schema


class LocalTableSettings(Construct):
    """Replicas and TTL of a table on the local target, by a function of its own (see `local_table/index.py`)."""

    def __init__(self, scope: Construct, construct_id: str, *, table: dynamodb.TableV2, regions: Sequence[str]) -> None:
        super().__init__(scope, construct_id)
        function = lambda_.Function(
            self,
            "Function",
            runtime=lambda_.Runtime.PYTHON_3_14,
            handler="index.handler",
            code=lambda_.Code.from_asset(str(Path(__file__).parent / "local_table"), exclude=["__pycache__"]),
            timeout=cdk.Duration.minutes(5),
        )
        function.add_to_role_policy(
            iam.PolicyStatement(
                actions=[
                    "dynamodb:CreateTableReplica",
                    "dynamodb:DescribeTable",
                    "dynamodb:DescribeTimeToLive",
                    "dynamodb:UpdateTable",
                    "dynamodb:UpdateTimeToLive",
                ],
                resources=["*"],
            )
        )
        cdk.CustomResource(
            self,
            "Settings",
            resource_type="Custom::TableSettings",
            service_token=function.function_arn,
            properties={
                "Table": table.table_name,
                "Regions": list(regions),
                "TtlAttribute": schema.TTL_ATTRIBUTE,
            },
        )
