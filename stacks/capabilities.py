"""What each target can do: the one list that says what `local` leaves out, and why.

Local facts were run against ministack 1.5.33 on 2026-11-29. A type that the emulator does not know fails the whole
stack; what it accepts without applying it is either harmless (then it stays, so that the two targets differ little)
or set by other means (then it is named here). The `aws` templates are asserted by the tests instead.
"""

from __future__ import annotations

from typing import Final, Literal

import msgspec


class Capabilities(msgspec.Struct, frozen=True, kw_only=True):
    """One flag per thing that not every target can do.

    Attributes:
        route_responses: knows ``ApiGatewayV2::RouteResponse`` (the emulator answers on every route without one).
        vpc: knows what a network that nothing leads into is made of; without it functions stand nowhere in particular,
            and only who calls whom follows the setting ``network``.
        metric_math_alarms: takes an alarm on an expression over several metrics.
        access_logs: writes the gateway's access logs, and has the account-wide role for them.
        table_settings: applies a template's ``Replicas`` and ``TimeToLiveSpecification``, and with them protection,
            recovery and keys; without it a custom resource sets replicas and TTL.
        tls: speaks HTTPS, so that a bucket may insist on it.
        lambda_platform: runs functions on Lambda's own platform; without it they run on this machine's Python.
        bootstrap_roles: has the roles of CDK's bootstrap; without it the command line's own credentials deploy.
        template_rules: is held to CloudFormation's schemas, so that CDK's validation of the templates says something;
            it takes 4 s, which the local target's every deployment would wait for.
        durable: keeps data worth protecting: retention, deletion and termination protection.
    """

    route_responses: bool = True
    vpc: bool = True
    metric_math_alarms: bool = True
    access_logs: bool = True
    table_settings: bool = True
    tls: bool = True
    lambda_platform: bool = True
    bootstrap_roles: bool = True
    template_rules: bool = True
    durable: bool = True


_AWS: Final = Capabilities()
_LOCAL: Final = Capabilities(**dict.fromkeys(Capabilities.__struct_fields__, False))

LOCAL_UNKNOWN_TYPES: Final = frozenset(
    {
        "AWS::ApiGatewayV2::RouteResponse",
        "AWS::ApplicationAutoScaling::ScalableTarget",
        "AWS::Athena::NamedQuery",
        "AWS::Budgets::Budget",
        "AWS::CloudWatch::CompositeAlarm",
        "AWS::EC2::EgressOnlyInternetGateway",
        "AWS::EC2::FlowLog",
        "AWS::EC2::SecurityGroupEgress",
        "AWS::EC2::SecurityGroupIngress",
        "AWS::EC2::VPCCidrBlock",
        "AWS::ElastiCache::ServerlessCache",
        "AWS::KMS::ReplicaKey",
        "AWS::Logs::QueryDefinition",
        "AWS::Route53::HealthCheck",
    }
)
"""Resource types that fail a whole stack on `local`."""


def of(target: Literal["aws", "local"]) -> Capabilities:
    """What the target can do."""
    return _AWS if target == "aws" else _LOCAL
