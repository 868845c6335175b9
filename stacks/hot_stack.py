"""A region's Valkey: ElastiCache Serverless, one IAM user per bulkhead."""

from __future__ import annotations

from typing import Any, Final

import aws_cdk as cdk
import msgspec
from aws_cdk import aws_elasticache as elasticache
from aws_cdk import aws_kms as kms
from constructs import Construct

from stacks import bulkheads, naming
from stacks.network_stack import CACHE_PORTS, Network
from stacks.settings import Settings

DATA_GIGABYTES_MAX: Final = 10
"""Beyond it the cache evicts settled streams and then refuses writes; the observability stack warns at 75 %."""

_ACCESS: Final = "on ~* +@all -@admin -@dangerous -script|flush"
"""Every data command and script, none that reads or empties the whole server (`KEYS`, `FLUSHALL`, `INFO`)."""


class HotEndpoint(msgspec.Struct, frozen=True, kw_only=True):
    """Where a region's Valkey stands; `cache` is None for one of one's own, which knows no IAM login."""

    host: str
    port: int
    cache: str | None = None


class HotStack(cdk.Stack):
    """The cache and who may log in to it.

    Given a network it stands in there. Else it has a public endpoint, which serverless Valkey offers from version 9 on,
    to users that log in by IAM only (ElastiCache user guide, "Create a Valkey serverless cache with a public endpoint",
    read 2026-11-29). TLS is always on. Snapshots stay off: the table is the truth, and a snapshot would outlive an
    erasure.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        settings: Settings,
        key: kms.IKey,
        network: Network | None,
        **stack: Any,
    ) -> None:
        super().__init__(scope, construct_id, **stack)
        users = [
            _iam_user(self, name=naming.cache_user(settings.stage, bulkhead.name), construct_id=f"User-{bulkhead.name}")
            for bulkhead in bulkheads.deployed(has_model=settings.model is not None, network=settings.network)
            if bulkhead.hot
        ]
        name = naming.cache(settings.stage, settings.network)
        group = elasticache.CfnUserGroup(
            self, "Users", engine="valkey", user_group_id=name, user_ids=[user.ref for user in users]
        )
        cache = elasticache.CfnServerlessCache(
            self,
            "Cache",
            serverless_cache_name=name,
            engine="valkey",
            major_engine_version="9",
            **_public_endpoint() if network is None else _endpoint_in(network),
            user_group_id=group.ref,
            kms_key_id=key.key_arn,
            snapshot_retention_limit=0,
            cache_usage_limits=elasticache.CfnServerlessCache.CacheUsageLimitsProperty(
                data_storage=elasticache.CfnServerlessCache.DataStorageProperty(unit="GB", maximum=DATA_GIGABYTES_MAX)
            ),
        )
        if network is None:
            cdk.Validations.of(cache).acknowledge(
                cdk.Acknowledgment(
                    id="CloudFormation-Validate::F3002",
                    reason="CDK's own validation lags behind CDK and does not know ConnectionType yet; cfn-lint does",
                )
            )
        self.endpoint = HotEndpoint(host=cache.attr_endpoint_address, port=CACHE_PORTS[0], cache=name)


def _public_endpoint() -> dict[str, Any]:
    return {"connection_type": "public"}


def _endpoint_in(network: Network) -> dict[str, Any]:
    return {
        "subnet_ids": [subnet.subnet_id for subnet in network.vpc.private_subnets],
        "security_group_ids": [network.cache.security_group_id],
    }


def _iam_user(scope: Construct, *, name: str, construct_id: str) -> elasticache.CfnUser:
    return elasticache.CfnUser(
        scope,
        construct_id,
        engine="valkey",
        user_id=name,
        user_name=name,  # IAM login wants id and name alike
        access_string=_ACCESS,
        authentication_mode={"Type": "iam"},
    )
