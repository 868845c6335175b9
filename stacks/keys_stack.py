"""One key per region, for what is kept there: table replica, bucket, cache."""

from __future__ import annotations

from typing import Any

import aws_cdk as cdk
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from constructs import Construct

from stacks import capabilities, naming
from stacks.settings import Settings


class KeysStack(cdk.Stack):
    """Deployed before everything else, since a global table names the keys of all its regions.

    The key's own policy lets the account's principals use it through the services that keep our data, in this region,
    and in no other way: so no role needs a right on the key, and none can decrypt by itself.
    """

    def __init__(self, scope: Construct, construct_id: str, *, settings: Settings, **stack: Any) -> None:
        super().__init__(scope, construct_id, **stack)
        durable = capabilities.of(settings.target).durable
        self.key = kms.Key(
            self,
            "Key",
            description=f"Threadkeep {settings.stage}: conversations in {self.region}",
            enable_key_rotation=True,
            removal_policy=cdk.RemovalPolicy.RETAIN if durable else cdk.RemovalPolicy.DESTROY,
        )
        self.key.add_to_resource_policy(
            iam.PolicyStatement(
                sid="ThroughOurStoresOnly",
                principals=[iam.AnyPrincipal()],
                actions=[
                    "kms:CreateGrant",
                    "kms:Decrypt",
                    "kms:DescribeKey",
                    "kms:Encrypt",
                    "kms:GenerateDataKey*",
                    "kms:ReEncrypt*",
                ],
                resources=["*"],
                conditions={
                    "StringEquals": {
                        "kms:CallerAccount": self.account,
                        "kms:ViaService": [
                            f"{service}.{self.region}.{self.url_suffix}"
                            for service in ("dynamodb", "elasticache", "s3")
                        ],
                    }
                },
            )
        )
        self.key.add_alias(naming.key_alias(settings.stage))
