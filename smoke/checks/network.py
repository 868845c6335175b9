"""The network of `network: vpc`, and the way out of it."""

from __future__ import annotations

import asyncio
import socket
import time
from typing import Any, Final
from urllib.parse import urlsplit

from smoke.ground import Ground
from smoke.live import live_stream
from smoke.outcome import Outcome, failed, held, not_applicable, read_back, shown
from smoke.raw import REPLY_S, exchange, frame, heard
from smoke.registry import check

_OUTSIDE: Final = "no function of this deployment stands in a VPC"
_PUSHES: Final = 20
_CONNECT_TIMEOUT_S: Final = 1.0
"""Of the functions' client for pushes (`threadkeep.stores.aws_config`): a wrong address would cost so much."""


async def _vpc(ground: Ground) -> dict[str, Any] | None:
    """Where the function of streams stands; None outside any VPC."""
    config: dict[str, Any] = (await ground.function("stream")).get("VpcConfig") or {}
    return config if config.get("VpcId") else None


async def _ways_out(ground: Ground, vpc: dict[str, Any]) -> dict[str, str]:
    """From destination to what leads there, of the routes of the functions' subnets."""
    tables = await ground.ask(
        "ec2", "describe_route_tables", Filters=[{"Name": "association.subnet-id", "Values": vpc["SubnetIds"]}]
    )
    ways: dict[str, str] = {}
    for table in tables["RouteTables"]:
        for route in table["Routes"]:
            to = route.get("DestinationCidrBlock") or route.get("DestinationIpv6CidrBlock") or ""
            by = route.get("EgressOnlyInternetGatewayId") or route.get("NatGatewayId") or route.get("GatewayId") or "?"
            if to and by != "local":
                ways[to] = by
    return ways


@check("vpc-shape")
async def nothing_leads_in(ground: Ground) -> Outcome:
    """Out lead IPv6 by an egress-only gateway, and gateway endpoints to the region's DynamoDB and S3."""
    vpc = await _vpc(ground)
    if vpc is None:
        return not_applicable(_OUTSIDE)
    ways = await _ways_out(ground, vpc)
    listed = await ground.ask("ec2", "describe_vpc_endpoints", Filters=[{"Name": "vpc-id", "Values": [vpc["VpcId"]]}])
    kinds = {(end["ServiceName"].rpartition(".")[2], end["VpcEndpointType"]) for end in listed["VpcEndpoints"]}
    faults = []
    if not vpc.get("Ipv6AllowedForDualStack"):
        faults.append("the functions have no IPv6")
    if not ways.get("::/0", "").startswith("eigw-"):
        faults.append("no egress-only gateway")
    if "0.0.0.0/0" in ways:
        faults.append("there is a way out over IPv4")
    if kinds != {("dynamodb", "Gateway"), ("s3", "Gateway")}:
        faults.append(f"endpoints: {sorted(kinds)}")
    return held("egress-only gateway, no NAT, no internet gateway, two gateway endpoints", faults, shows=False)


async def _push_seconds(ground: Ground) -> list[float]:
    """From appends to their deltas, at another connection."""
    taken = []
    async with live_stream(ground) as live, ground.socket() as viewer:
        await exchange(viewer, frame("conversation.subscribe", ref="smoke", conversation=live.conversation))
        for number in range(_PUSHES):
            begun, at = time.perf_counter(), live.offset
            await live.append(f"{number} ")
            while (await heard(viewer, REPLY_S)).get("at") != at:
                pass
            taken.append(time.perf_counter() - begun)
    return taken


@check("push-over-ipv6", turn="alone")
async def pushes_leave_the_vpc(ground: Ground) -> Outcome:
    """A push that arrives, from where IPv4 leads nowhere."""
    vpc = await _vpc(ground)
    if vpc is None:
        return not_applicable(_OUTSIDE)
    ways = await _ways_out(ground, vpc)
    if "0.0.0.0/0" in ways or "::/0" not in ways:
        return failed(f"IPv6 is not the only way out: {sorted(ways)}")
    taken = await _push_seconds(ground)
    return shown(f"{len(taken)} pushes arrived, and IPv6 is the only way out", pushes=len(taken))


@check("address-order", turn="alone")
async def no_push_waits_for_a_wrong_address(ground: Ground) -> Outcome:
    """An IPv4 address that is tried first costs a connect timeout; the first pushes make connections."""
    if await _vpc(ground) is None:
        return not_applicable(_OUTSIDE)
    taken = await _push_seconds(ground)
    text = f"{len(taken)} pushes on new and kept connections, the slowest after {max(taken) * 1000:.0f} ms"
    slow = sum(seconds > _CONNECT_TIMEOUT_S for seconds in taken[1:])
    return failed(f"{text}: {slow} took a connect timeout or more") if slow else shown(text)


@check("dual-stack-name")
async def the_gateways_name_has_both_kinds_of_addresses(ground: Ground) -> Outcome:
    """A and AAAA, where the API's own name is asked for."""
    api = await ground.api()
    if api.get("IpAddressType") != "dualstack":
        return failed(f"the API is of type {api.get('IpAddressType')}")
    host = urlsplit(api["ApiEndpoint"]).hostname or ""
    found = await asyncio.to_thread(_families, host)
    if socket.AF_INET6 in found and socket.AF_INET in found:
        return shown("the API's name has addresses of both kinds")
    if not found:
        return failed("the API's name has no address")
    return read_back("the API is dual stack; the resolver here gives addresses of one kind only")


def _families(host: str) -> set[int]:
    families = set()
    for family in (socket.AF_INET, socket.AF_INET6):
        try:
            socket.getaddrinfo(host, 443, family, socket.SOCK_STREAM)
        except socket.gaierror:
            continue
        families.add(int(family))
    return families
