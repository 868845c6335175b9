"""AWS clients for where a function stands."""

from __future__ import annotations

from typing import Any

import boto3
from botocore.config import Config

from threadkeep.stores.ipv6 import over_ipv6


class Clients:
    """Builds clients, each with the way that leads to its service.

    Args:
        region: the function's own.
        ipv6_out: see `threadkeep.config.Config`.
    """

    def __init__(self, region: str, *, ipv6_out: bool = False) -> None:
        self._region = region
        self._ipv6_out = ipv6_out

    def near(self, service: str, config: Config) -> Any:
        """Of DynamoDB or S3 in the function's own region, which a network's gateway endpoints lead to, over IPv4."""
        return boto3.client(service, region_name=self._region, config=config)  # type: ignore[call-overload]

    def far(self, service: str, config: Config, *, region: str | None = None, url: str | None = None) -> Any:
        """Of any other service, or of any service in another region.

        The way over IPv6 is chosen client by client: chosen for all of a function's, as boto3's environment does, it
        would lead past the gateway endpoints.

        Args:
            service: as boto3 names it.
            config: its timeouts and retries.
            region: the service's; by default the function's own.
            url: an endpoint of ours, which has addresses of both kinds; by default the service's endpoint.
        """
        if self._ipv6_out and url is None:
            # With an `s3` of its own: botocore notes the dual stack in the dictionary that it is given, which would
            # lead every later client of the same settings out too (botocore 1.43.106, `args.py`, seen 2026-11-29).
            own: Any = dict(getattr(config, "s3", None) or {})  # an option that its types do not know
            config = config.merge(Config(use_dualstack_endpoint=True, s3=own))
        client = boto3.client(  # type: ignore[call-overload]
            service, region_name=region or self._region, endpoint_url=url, config=config
        )
        if self._ipv6_out:
            over_ipv6(client)
        return client

    def bucket(self, region: str, config: Config) -> Any:
        """Of S3 in a region."""
        return self.near("s3", config) if region == self._region else self.far("s3", config, region=region)
