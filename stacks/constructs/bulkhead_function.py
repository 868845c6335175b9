"""One bulkhead: a function, its role with the rights of its row in `stacks.bulkheads`, its log group."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final

import aws_cdk as cdk
import msgspec
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_iam as iam
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_logs as logs
from constructs import Construct

from stacks import bulkheads, naming
from stacks.constructs.wildcards import acknowledge_wildcard
from stacks.network_stack import Network
from threadkeep.config import Config

_INTERFACES: Final = (
    "ec2:AssignPrivateIpAddresses",
    "ec2:CreateNetworkInterface",
    "ec2:DeleteNetworkInterface",
    "ec2:DescribeNetworkInterfaces",
    "ec2:DescribeSubnets",
    "ec2:UnassignPrivateIpAddresses",
)
"""What Lambda does by a function's role to have the function stand in a VPC (`AWSLambdaVPCAccessExecutionRole`, version
3, read 2026-11-29; it has rights on every log besides)."""


class Right(msgspec.Struct, frozen=True, kw_only=True):
    """Actions on resources by ARN; where these end in a wildcard, the reason why they must; on what condition."""

    actions: Sequence[str]
    resources: Sequence[str]
    wildcard_reason: str = ""
    conditions: dict[str, dict[str, list[str]]] = {}


class BulkheadFunction(Construct):
    """The function is `self.function`; nothing else may take the role. Given a network, it stands in there."""

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        bulkhead: bulkheads.Bulkhead,
        code: lambda_.Code,
        config: Config,
        rights: Iterable[Right],
        network: Network | None,
        account_executions: int | None,
    ) -> None:
        super().__init__(scope, construct_id)
        log_group = logs.LogGroup(
            self, "Log", retention=logs.RetentionDays.ONE_MONTH, removal_policy=cdk.RemovalPolicy.DESTROY
        )
        role = iam.Role(self, "Role", assumed_by=iam.ServicePrincipal("lambda.amazonaws.com"))
        log_group.grant_write(role)
        for right in rights:
            role.add_to_policy(
                iam.PolicyStatement(
                    actions=[*right.actions], resources=[*right.resources], conditions=right.conditions or None
                )
            )
            for resource in right.resources if right.wildcard_reason else ():
                acknowledge_wildcard(role, resource=resource, reason=right.wildcard_reason)
        options: dict[str, Any] = {}
        if account_executions is not None and bulkhead.concurrency_percent:
            options["reserved_concurrent_executions"] = bulkheads.reserved_concurrency(bulkhead, account_executions)
        name = naming.function(config.stage, bulkhead.name)
        if network is not None:
            _let_stand_in_vpc(role, naming.function_arn(cdk.Stack.of(self), name))
            options |= {
                "vpc": network.vpc,
                "vpc_subnets": ec2.SubnetSelection(subnets=network.vpc.private_subnets),
                "security_groups": [network.functions],
                "ipv6_allowed_for_dual_stack": True,
            }
        self.function = lambda_.Function(
            self,
            "Function",
            function_name=name,
            runtime=lambda_.Runtime.PYTHON_3_14,
            architecture=lambda_.Architecture.ARM_64,
            code=code,
            handler=f"handlers.{bulkhead.name}.handler",
            role=role,
            log_group=log_group,
            memory_size=bulkhead.memory_mib,
            timeout=cdk.Duration.seconds(bulkhead.timeout_s),
            tracing=lambda_.Tracing.ACTIVE,
            environment={
                **config.to_environment(),
                "POWERTOOLS_SERVICE_NAME": bulkhead.name,
                "POWERTOOLS_METRICS_NAMESPACE": "Threadkeep",
                "POWERTOOLS_LOG_LEVEL": "INFO",
            },
            **options,
        )
        acknowledge_wildcard(
            role,
            resource="*",
            reason="X-Ray's two actions for writing traces know no resource, nor do network interfaces",
        )


def _let_stand_in_vpc(role: iam.Role, function_arn: str) -> None:
    """Lambda itself may handle network interfaces by the role, the function's code may not.

    What the code asks for carries the function's ARN, what Lambda asks for does not (Lambda developer guide, "Giving
    Lambda functions access to resources in an Amazon VPC", recalled 2026-11-29).
    """
    role.add_to_policy(iam.PolicyStatement(actions=[*_INTERFACES], resources=["*"]))
    role.add_to_policy(
        iam.PolicyStatement(
            effect=iam.Effect.DENY,
            actions=[*_INTERFACES],
            resources=["*"],
            conditions={"ArnEquals": {"lambda:SourceFunctionArn": function_arn}},
        )
    )
