"""One bulkhead: a function, its role with the rights of its row in `stacks.bulkheads`, its log group."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import aws_cdk as cdk
import msgspec
from aws_cdk import aws_iam as iam
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_logs as logs
from constructs import Construct

from stacks import bulkheads, naming
from stacks.constructs.wildcards import acknowledge_wildcard
from threadkeep.config import Config


class Right(msgspec.Struct, frozen=True, kw_only=True):
    """Actions on resources by ARN; where these end in a wildcard, the reason why they must; on what condition."""

    actions: Sequence[str]
    resources: Sequence[str]
    wildcard_reason: str = ""
    conditions: dict[str, dict[str, list[str]]] = {}


class BulkheadFunction(Construct):
    """The function is `self.function`; nothing else may take the role."""

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        bulkhead: bulkheads.Bulkhead,
        code: lambda_.Code,
        config: Config,
        rights: Iterable[Right],
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
        reserved: dict[str, Any] = {}
        if account_executions is not None and bulkhead.concurrency_percent:
            reserved["reserved_concurrent_executions"] = bulkheads.reserved_concurrency(bulkhead, account_executions)
        self.function = lambda_.Function(
            self,
            "Function",
            function_name=naming.function(config.stage, bulkhead.name),
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
            **reserved,
        )
        acknowledge_wildcard(role, resource="*", reason="X-Ray's two actions for writing traces know no resource")
