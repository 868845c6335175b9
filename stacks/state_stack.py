"""The one global table, declared in the home region for all of them."""

from __future__ import annotations

from typing import Any

import aws_cdk as cdk
from aws_cdk import aws_dynamodb as dynamodb
from aws_cdk import aws_kms as kms
from constructs import Construct

from stacks import capabilities, naming
from stacks.constructs.local_table_settings import LocalTableSettings
from stacks.settings import Settings
from threadkeep import schema


class StateStack(cdk.Stack):
    """Table, indexes and stream. What can never be changed later is fixed here, from the first deploy.

    The stream's view cannot change once there are two replicas; a global table's recovery, protection and key are
    not synchronized between its replicas, so each is given them: CDK copies them from the home replica's.
    """

    def __init__(self, scope: Construct, construct_id: str, *, settings: Settings, **stack: Any) -> None:
        super().__init__(scope, construct_id, **stack)
        can = capabilities.of(settings.target)
        table = dynamodb.TableV2(
            self,
            "Table",
            table_name=naming.table(settings.stage),
            partition_key=_string(schema.PARTITION_KEY),
            sort_key=_string(schema.SORT_KEY),
            billing=dynamodb.Billing.on_demand(),
            dynamo_stream=dynamodb.StreamViewType.NEW_AND_OLD_IMAGES,
            time_to_live_attribute=schema.TTL_ATTRIBUTE,
            encryption=dynamodb.TableEncryptionV2.customer_managed_key(
                kms.Alias.from_alias_name(self, "Key", naming.key_alias(settings.stage)),
                {region: naming.key_arn(self, settings.stage, region) for region in settings.regions[1:]},
            ),
            contributor_insights_specification=dynamodb.ContributorInsightsSpecification(
                enabled=True, mode=dynamodb.ContributorInsightsMode.THROTTLED_KEYS
            ),
            deletion_protection=can.durable,
            point_in_time_recovery_specification=dynamodb.PointInTimeRecoverySpecification(
                point_in_time_recovery_enabled=True, recovery_period_in_days=settings.pitr_days
            ),
            removal_policy=cdk.RemovalPolicy.RETAIN if can.durable else cdk.RemovalPolicy.DESTROY,
            replicas=[dynamodb.ReplicaTableProps(region=region) for region in settings.regions[1:]],
        )
        _add_sparse_index(table, name=schema.OWNER_INDEX, key=schema.OWNER_KEY, sort=schema.OWNER_SORT)
        _add_sparse_index(table, name=schema.DUE_INDEX, key=schema.DUE_KEY, sort=schema.DUE_SORT)
        if not can.table_settings:
            LocalTableSettings(self, "LocalSettings", table=table, regions=settings.regions)
        cdk.CfnOutput(self, "TableName", value=table.table_name)


def _string(name: str) -> dynamodb.Attribute:
    return dynamodb.Attribute(name=name, type=dynamodb.AttributeType.STRING)


def _add_sparse_index(table: dynamodb.TableV2, *, name: str, key: str, sort: str) -> None:
    table.add_global_secondary_index(
        index_name=name,
        partition_key=_string(key),
        sort_key=_string(sort),
        projection_type=dynamodb.ProjectionType.KEYS_ONLY,
    )
