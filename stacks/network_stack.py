"""A region's network, under `network: vpc`: where the functions that talk to Valkey stand, and Valkey itself.

Nothing leads in: private subnets, no internet gateway, no NAT. Out lead an egress-only gateway, for IPv6 (to
``@connections``, Lambda, queues and what is in other regions), and gateway endpoints, to the region's own DynamoDB and
S3 over IPv4. All of these cost nothing (VPC pricing, recalled 2026-11-29). No interface endpoint: one for
``execute-api`` would take over the name of every public API in the VPC.
"""

from __future__ import annotations

from typing import Any, Final

import aws_cdk as cdk
import msgspec
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_iam as iam
from aws_cdk import aws_logs as logs
from constructs import Construct

from stacks.settings import Settings

CACHE_PORTS: Final = (6379, 6380)
"""A serverless cache reads and writes on the first and serves reads from replicas on the second; its clients need
both open (ElastiCache user guide, "Set up a serverless cache", read 2026-11-29)."""
_HTTPS: Final = 443
_ZONES_MAX: Final = 3


class Network(msgspec.Struct, frozen=True, kw_only=True):
    """What functions and cache need to know of it."""

    vpc: ec2.IVpc
    functions: ec2.ISecurityGroup
    cache: ec2.ISecurityGroup


class NetworkStack(cdk.Stack):
    """Both security groups are here: in the stacks that use them they would depend on each other.

    A Valkey of one's own is reached by a peering, which is for whoever owns it to make.
    """

    def __init__(self, scope: Construct, construct_id: str, *, settings: Settings, **stack: Any) -> None:
        self._zones = settings.availability_zones
        super().__init__(scope, construct_id, **stack)
        vpc = ec2.Vpc(
            self,
            "Vpc",
            max_azs=_ZONES_MAX,
            ip_protocol=ec2.IpProtocol.DUAL_STACK,
            nat_gateways=0,
            create_internet_gateway=False,
            restrict_default_security_group=False,  # no rule and nobody uses it; restricting takes a custom resource
            subnet_configuration=[
                # Isolated ones would get the egress-only gateway too, and no route to it.
                ec2.SubnetConfiguration(name="Functions", subnet_type=ec2.SubnetType.PRIVATE_WITH_EGRESS)
            ],
            gateway_endpoints={
                "DynamoDB": ec2.GatewayVpcEndpointOptions(service=ec2.GatewayVpcEndpointAwsService.DYNAMODB),
                "S3": ec2.GatewayVpcEndpointOptions(service=ec2.GatewayVpcEndpointAwsService.S3),
            },
        )
        if self._zones.get(self.region):
            cdk.Validations.of(vpc).acknowledge(
                cdk.Acknowledgment(
                    id="CloudFormation-Validate::W3010",
                    reason="whoever names zones in the settings wants these and no others",
                )
            )
        self._log_flows(vpc)
        functions = ec2.SecurityGroup(
            self, "FunctionsGroup", vpc=vpc, description="Functions that talk to Valkey", allow_all_outbound=False
        )
        functions.add_egress_rule(ec2.Peer.any_ipv4(), ec2.Port.tcp(_HTTPS), "DynamoDB and S3, by their endpoints")
        functions.add_egress_rule(ec2.Peer.any_ipv6(), ec2.Port.tcp(_HTTPS), "What has no endpoint here")
        cache = ec2.SecurityGroup(self, "CacheGroup", vpc=vpc, description="Valkey", allow_all_outbound=False)
        for port in CACHE_PORTS:
            cache.add_ingress_rule(functions, ec2.Port.tcp(port), "From our functions alone")
            functions.add_egress_rule(cache, ec2.Port.tcp(port), "Valkey")
        own = settings.hot_address(self.region)
        if own is not None:
            port = ec2.Port.tcp(own[1])
            functions.add_egress_rule(ec2.Peer.any_ipv4(), port, "A Valkey of your own, in a network peered with this")
        self.network = Network(vpc=vpc, functions=functions, cache=cache)

    @property
    def availability_zones(self) -> list[str]:
        """Those of the settings. Given to the VPC alone, CDK would ask the account for its zones all the same."""
        named = self._zones.get(self.region)
        return [*named] if named else list(super().availability_zones)

    def _log_flows(self, vpc: ec2.Vpc) -> None:
        """Refused traffic alone: there should be none, and what is let through the gateway's own logs tell."""
        group = logs.LogGroup(
            self, "Refused", retention=logs.RetentionDays.ONE_MONTH, removal_policy=cdk.RemovalPolicy.DESTROY
        )
        role = iam.Role(self, "FlowLogRole", assumed_by=iam.ServicePrincipal("vpc-flow-logs.amazonaws.com"))
        ec2.FlowLog(
            self,
            "Flows",
            resource_type=ec2.FlowLogResourceType.from_vpc(vpc),
            destination=ec2.FlowLogDestination.to_cloud_watch_logs(group, role),
            traffic_type=ec2.FlowLogTrafficType.REJECT,
        )
