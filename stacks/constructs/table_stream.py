"""The global table's stream in a stack's own region, and its one consumer there."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import aws_cdk as cdk
from aws_cdk import aws_iam as iam
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_lambda_event_sources as event_sources
from aws_cdk import aws_logs as logs
from constructs import Construct

from stacks.constructs.failure_queue import failure_queue
from threadkeep import schema

_NEW: Final = lambda_.FilterCriteria.filter({"eventName": lambda_.FilterRule.is_equal("INSERT")})
_TOLD: Final = [schema.SORT_HEAD, {"prefix": schema.SORT_MESSAGE}, {"prefix": schema.SORT_LIVE}]
_CHANGED: Final = lambda_.FilterCriteria.filter(
    {
        "eventName": lambda_.FilterRule.is_equal("MODIFY"),
        "dynamodb": {"Keys": {schema.SORT_KEY: {"S": _TOLD}}},
    }
)

BATCH_MAX: Final = 100
"""Records of one batch: so many keys are asked for at once (DynamoDB takes 100 in a BatchGetItem)."""


class TableStream(Construct):
    """Gives new items to a function, as they come; which stream that is, is looked up when the stack is deployed.

    A batch that fails comes again, halved, until the stream itself forgets it after a day, since what it asks for must
    not be lost; in the end its place is kept in a queue.

    Args:
        table: the table's name, the same in every region.
        table_arn: its ARN in this region.
        revision: of the code; with another the stream is looked up anew: the table may have been taken back since.
        consumer: the function; its role is given the stream.
        has_others: whether there are other regions: what they change in heads, messages (of two that settle one stream
            the later stands) and registers of live streams is then given too.
        queue_name: of the queue to which the places of records go that were never taken, for people to see.
        tls: whether to insist on it there.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        table: str,
        table_arn: str,
        revision: str,
        consumer: lambda_.Function,
        has_others: bool,
        queue_name: str,
        tls: bool,
    ) -> None:
        super().__init__(scope, construct_id)
        resolver = self._resolver(table_arn)
        latest = cdk.CustomResource(
            self,
            "Latest",
            resource_type="Custom::LatestTableStream",
            service_token=resolver.function_arn,
            properties={"Table": table, "Revision": revision},
        )
        stream = latest.get_att_string("StreamArn")
        consumer.add_to_role_policy(
            iam.PolicyStatement(
                actions=["dynamodb:DescribeStream", "dynamodb:GetRecords", "dynamodb:GetShardIterator"],
                resources=[stream],
            )
        )
        # Lambda wants it for a mapping, and it knows no resource (Service authorization reference, "Amazon DynamoDB",
        # as quoted in aws/aws-cdk#34575, read 2026-11-29).
        consumer.add_to_role_policy(iam.PolicyStatement(actions=["dynamodb:ListStreams"], resources=["*"]))
        lambda_.EventSourceMapping(
            self,
            "Mapping",
            target=consumer,
            event_source_arn=stream,
            starting_position=lambda_.StartingPosition.TRIM_HORIZON,
            batch_size=BATCH_MAX,
            filters=[_NEW, *([_CHANGED] if has_others else [])],
            report_batch_item_failures=True,
            bisect_batch_on_error=True,
            max_record_age=cdk.Duration.hours(24),
            on_failure=event_sources.SqsDlq(
                failure_queue(
                    self,
                    "Failed",
                    name=queue_name,
                    kept_days=14,
                    tls=tls,
                    holds="records end that could not be handed on",
                )
            ),
        )

    def _resolver(self, table_arn: str) -> lambda_.Function:
        log_group = logs.LogGroup(
            self, "Log", retention=logs.RetentionDays.ONE_MONTH, removal_policy=cdk.RemovalPolicy.DESTROY
        )
        role = iam.Role(self, "Role", assumed_by=iam.ServicePrincipal("lambda.amazonaws.com"))
        log_group.grant_write(role)
        role.add_to_policy(iam.PolicyStatement(actions=["dynamodb:DescribeTable"], resources=[table_arn]))
        return lambda_.Function(
            self,
            "Function",
            runtime=lambda_.Runtime.PYTHON_3_14,
            architecture=lambda_.Architecture.ARM_64,
            handler="index.handler",
            code=lambda_.Code.from_asset(str(Path(__file__).parent / "latest_stream"), exclude=["__pycache__"]),
            role=role,
            log_group=log_group,
            timeout=cdk.Duration.minutes(1),
        )
