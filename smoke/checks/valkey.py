"""The serverless Valkey: who gets in, its bounds, and how far it is."""

from __future__ import annotations

import asyncio
import re
import socket
import ssl
import time
from typing import Any, Final

from botocore.exceptions import ClientError

from smoke.checks.latency import median_and_p95
from smoke.ground import Ground
from smoke.live import live_stream
from smoke.outcome import Outcome, failed, held, not_applicable, shown
from smoke.registry import check
from stacks import naming

_OWN: Final = "Valkey is one's own here, without IAM login or TLS"
_APPENDS: Final = 60
_CONNECT_S: Final = 5.0
_REPORT: Final = re.compile(r"\bDuration: ([0-9.]+) ms")
_INIT: Final = "Init Duration"


async def _hot_setting(ground: Ground, name: str) -> str:
    """A part of what the function of streams is told of Valkey."""
    environment = (await ground.function("stream"))["Environment"]["Variables"]
    return str(environment.get(f"THREADKEEP_HOT_{name}", ""))


async def _cache(ground: Ground) -> dict[str, Any] | None:
    """The cache's description; None where Valkey is one's own."""
    name = await _hot_setting(ground, "CACHE")
    if not name:
        return None
    listed = await ground.ask("elasticache", "describe_serverless_caches", ServerlessCacheName=name)
    return dict(listed["ServerlessCaches"][0])


@check("valkey-login")
async def functions_log_in_by_iam(ground: Ground) -> Outcome:
    """A live stream is judged by Valkey at every append; the functions have no other way in than their roles."""
    if await _hot_setting(ground, "AUTH") != "iam":
        return not_applicable(_OWN)
    async with live_stream(ground) as live, ground.user() as user:
        await live.append("in Valkey")
        page = await user.connection.request(
            "stream.resume", conversation=live.conversation, stream=live.stream, epoch=0, offset=0
        )
    if page["state"] != "live" or not page["ops"]:
        return failed(f"the stream was not live: {page['state']}")
    return shown("a stream was opened, written and resumed by functions whose only login is IAM, over TLS")


@check("valkey-closed")
async def nobody_else_gets_in(ground: Ground) -> Outcome:
    """From here: no way at all into a VPC; to a public endpoint TLS, and nothing without a login."""
    cache = await _cache(ground)
    if cache is None:
        return not_applicable(_OWN)
    host, port = cache["Endpoint"]["Address"], cache["Endpoint"]["Port"]
    if (await ground.function("stream")).get("VpcConfig", {}).get("VpcId"):
        reached = await asyncio.to_thread(_reaches, host, port)
        return held("no connection from outside the VPC", ["it answers from here"] if reached else [], shows=True)
    answer, plain = await asyncio.to_thread(_answer_to_nobody, host, port)
    faults = [] if answer.startswith("-NOAUTH") else [f"over TLS a stranger was told {answer!r}"]
    if plain:
        faults.append("it speaks without TLS")
    return held("TLS with a valid certificate, and NOAUTH to a stranger; nothing without TLS", faults, shows=True)


def _reaches(host: str, port: int) -> bool:
    try:
        with socket.create_connection((host, port), timeout=_CONNECT_S):
            return True
    except OSError:
        return False


def _answer_to_nobody(host: str, port: int) -> tuple[str, bool]:
    """What PING is told over TLS, and whether there is an answer without."""
    context = ssl.create_default_context()
    with (
        socket.create_connection((host, port), timeout=_CONNECT_S) as bare,
        context.wrap_socket(bare, server_hostname=host) as secure,
    ):
        secure.sendall(b"PING\r\n")
        answer = secure.recv(64).decode(errors="replace").strip()
    try:
        with socket.create_connection((host, port), timeout=_CONNECT_S) as plain:
            plain.sendall(b"PING\r\n")
            return answer, bool(plain.recv(64))
    except OSError:
        return answer, False


@check("valkey-limits")
async def its_bounds(ground: Ground) -> Outcome:
    """Version, data maximum, no snapshots, and users without a password."""
    cache = await _cache(ground)
    if cache is None:
        return not_applicable(_OWN)
    maximum = cache.get("CacheUsageLimits", {}).get("DataStorage", {}).get("Maximum")
    users = await ground.ask("elasticache", "describe_users", Engine="valkey")
    ours = [user for user in users["Users"] if user["UserId"].startswith(naming.table(ground.target.stage) + "-")]
    login = {user["Authentication"]["Type"] for user in ours}
    faults = []
    if cache.get("MajorEngineVersion") != "9":
        faults.append(f"version {cache.get('MajorEngineVersion')}")
    if not maximum:
        faults.append("no data maximum")
    if cache.get("SnapshotRetentionLimit"):
        faults.append("snapshots are kept")
    if login != {"iam"}:
        faults.append(f"{len(ours)} users log in by {sorted(login)}")
    return held(f"version 9, at most {maximum} GB, no snapshots, {len(ours)} users by IAM alone", faults, shows=False)


@check("evalsha-latency", seconds_max=200, turn="alone")
async def appends_inside_the_function(ground: Ground) -> Outcome:
    """An append that nobody watches is one script call and little else; Lambda reports how long each took."""
    config = await ground.function("stream")
    since_ms = int(time.time() * 1000)
    async with live_stream(ground) as live:
        for number in range(_APPENDS):
            await live.append(f"{number} ")

    async def look() -> list[float]:
        found = await _reported_ms(ground, config, since_ms)
        return found if len(found) >= _APPENDS // 2 else []

    taken = await ground.until(look, ground.late(120))
    if not taken:
        return failed("Lambda's reports of the appends were not found in the log")
    median, p95 = median_and_p95([ms / 1000 for ms in taken])
    network = "vpc" if config.get("VpcConfig", {}).get("VpcId") else "public"
    text = f"network {network}: an append takes the function {min(taken)} ms at best, median {median}, p95 {p95}"
    return shown(f"{text}; its EVALSHA no more", best_ms=min(taken), median_ms=median, p95_ms=p95, network=network)


async def _reported_ms(ground: Ground, config: dict[str, Any], since_ms: int) -> list[float]:
    """Of warm invocations since then, of everybody's."""
    group = config.get("LoggingConfig", {}).get("LogGroup") or f"/aws/lambda/{config['FunctionName']}"
    try:
        lines = await ground.log_lines(group, since_ms, "REPORT")
    except ClientError as error:
        if error.response["Error"]["Code"] == "ResourceNotFoundException":
            return []
        raise
    warm = (line for line in lines if _INIT not in line)
    return [float(found[1]) for found in map(_REPORT.search, warm) if found]
