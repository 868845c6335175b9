"""The global table between its regions."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from typing import Any, Final

from smoke.ground import Ground
from smoke.outcome import Outcome, failed, held, not_applicable, shown
from smoke.registry import check
from stacks import naming
from threadkeep import schema
from threadkeep.domain.model import ConversationKey
from threadkeep.stores import table_keys

_ONE_REGION: Final = "the deployment has one region"
_LAG_MAX_S: Final = 60.0
_ROUNDS: Final = 5
_SETTLE_S: Final = 10.0


@check("replication-lag", seconds_max=100)
async def how_long_until_the_others_have_it(ground: Ground) -> Outcome:
    """From the reply here to the item there, asked for ten times a second."""
    others = await ground.other_regions()
    if not others:
        return not_applicable(_ONE_REGION)
    async with ground.user() as user:
        conversation = await ground.conversation(user)
    begun = time.perf_counter()
    partition = table_keys.partition(ConversationKey(ground.target.tenant, conversation))
    key = {schema.PARTITION_KEY: {"S": partition}, schema.SORT_KEY: {"S": schema.SORT_HEAD}}
    lags: dict[str, float] = {}
    while len(lags) < len(others) and time.perf_counter() - begun < _LAG_MAX_S:
        for region in others:
            answer = await ground.ask("dynamodb", "get_item", region=region, TableName=ground.table_name, Key=key)
            if "Item" in answer and region not in lags:
                lags[region] = round((time.perf_counter() - begun) * 1000)
        await asyncio.sleep(0.1)
    if missing := sorted(set(others) - lags.keys()):
        return failed(f"after {_LAG_MAX_S:.0f} s not in {', '.join(missing)}")
    return shown(", ".join(f"{region}: {lag} ms at most" for region, lag in lags.items()), **lags)


@check("replication-conflict", seconds_max=100)
async def the_last_writer_wins_everywhere(ground: Ground) -> Outcome:
    """Two regions change one title at one time; afterwards they agree, and on one of the two."""
    others = await ground.other_regions()
    if not others:
        return not_applicable(_ONE_REGION)
    url = f"{(await ground.api(others[0]))['ApiEndpoint']}/{ground.target.stage}"
    async with AsyncExitStack() as stack:
        here = await stack.enter_async_context(ground.user())
        there = await stack.enter_async_context(ground.user(url))
        conversation = await ground.conversation(here)
        await asyncio.sleep(_SETTLE_S)  # the other region has to have heard of it
        for number in range(_ROUNDS):
            await asyncio.gather(
                here.update_conversation(conversation, title=f"here {number}"),
                there.update_conversation(conversation, title=f"there {number}"),
            )
        await asyncio.sleep(_SETTLE_S)
        titles = [(await client.get_conversation(conversation)).get("title") for client in (here, there)]
    if titles[0] != titles[1] or titles[0] not in {f"here {_ROUNDS - 1}", f"there {_ROUNDS - 1}"}:
        return failed(f"they read {titles[0]!r} and {titles[1]!r}")
    return shown(f"after {_ROUNDS} writes at one time in two regions both read the same one")


async def _in_each(ground: Ground, fault: Callable[[str, dict[str, Any]], Awaitable[str]], what: str) -> Outcome:
    """Read something back in every region, and say where it is otherwise."""
    regions = [ground.target.region, *await ground.other_regions()]
    faults = [found for region in regions if (found := await fault(region, await ground.table(region)))]
    return held(f"{what} in {', '.join(regions)}", faults, shows=False)


@check("replica-recovery")
async def every_replica_can_be_taken_back(ground: Ground) -> Outcome:
    """Point-in-time recovery is each replica's own."""

    async def fault(region: str, _: dict[str, Any]) -> str:
        answer = await ground.ask("dynamodb", "describe_continuous_backups", region=region, TableName=ground.table_name)
        recovery = answer["ContinuousBackupsDescription"].get("PointInTimeRecoveryDescription", {})
        return "" if recovery.get("PointInTimeRecoveryStatus") == "ENABLED" else f"no recovery in {region}"

    return await _in_each(ground, fault, "point-in-time recovery")


@check("replica-protection")
async def every_replica_is_protected(ground: Ground) -> Outcome:
    """So is deletion protection."""

    async def fault(region: str, table: dict[str, Any]) -> str:
        return "" if table.get("DeletionProtectionEnabled") else f"no protection in {region}"

    return await _in_each(ground, fault, "deletion protection")


@check("replica-keys")
async def every_replica_has_its_regions_key(ground: Ground) -> Outcome:
    """The templates name the key by an alias's ARN: which key DynamoDB made of it, and that the table is usable."""
    regions = [ground.target.region, *await ground.other_regions()]
    faults = []
    for region in regions:
        sse = (await ground.table(region)).get("SSEDescription", {})
        alias = naming.key_alias(ground.target.stage)
        key = (await ground.ask("kms", "describe_key", region=region, KeyId=alias))["KeyMetadata"]["Arn"]
        if sse.get("Status") != "ENABLED" or sse.get("KMSMasterKeyArn") not in {key, key.rpartition("key/")[0] + alias}:
            faults.append(f"in {region} the table's key is not the alias's")
    if len(regions) == 1 and not faults:
        return not_applicable(f"{_ONE_REGION}; its own table has the alias's key")
    return held(f"the alias's own key in {', '.join(regions)}", faults, shows=True)
