"""Rights that the local cloud does not ask for."""

from __future__ import annotations

import time
from typing import Any, Final

from smoke.ground import Ground
from smoke.outcome import Outcome, failed, held, read_back, shown
from smoke.raw import exchange, frame
from smoke.registry import check
from stacks.bulkheads import ROUTE_BULKHEADS
from threadkeep import schema

_RECENT_S: Final = 60


@check("log-rights", seconds_max=340)
async def functions_write_their_logs(ground: Ground) -> Outcome:
    """A function that a connection starts has lines of this minute."""
    config = await ground.function("connection")
    group = config.get("LoggingConfig", {}).get("LogGroup") or f"/aws/lambda/{config['FunctionName']}"
    since_ms = int((time.time() - _RECENT_S) * 1000)
    async with ground.socket() as socket:
        await exchange(socket, frame("ping", ref="smoke"))

    async def look() -> int:
        return len(await ground.log_lines(group, since_ms))

    count = await ground.until(look, ground.late(300))
    return shown(f"{count} lines of the last minute") if count else failed("no line came in time")


@check("table-key-rights")
async def roles_reach_the_table_through_its_key(ground: Ground) -> Outcome:
    """The table is under a key of ours; functions without a right on it write a message and read it back."""
    sse = (await ground.table()).get("SSEDescription", {})
    if (sse.get("Status"), sse.get("SSEType")) != ("ENABLED", "KMS"):
        return failed("the table is under no key of the account's")
    async with ground.user() as user:
        conversation = await ground.conversation(user)
        await user.create_message(conversation, "under a key", parent=None)
        found = await user.history(conversation)
    faults = [] if [message["parts"][0]["text"] for message in found] == ["under a key"] else ["not read back"]
    for bulkhead in ROUTE_BULKHEADS:
        rights = await _named_actions(ground, (await ground.function(bulkhead.name))["Role"])
        if any(action.startswith("kms:") for action in rights):
            faults.append(f"{bulkhead.name} has rights on keys")
    return held("a message was written and read back, by roles without a right on keys", faults, shows=True)


@check("leading-keys")
async def the_exporter_writes_exports_alone(ground: Ground) -> Outcome:
    """IAM's own simulation of the exporter's role: its own items, and those of a conversation."""
    role = (await ground.function("exporter"))["Role"]
    table = (await ground.table())["TableArn"]
    decisions = {}
    for name, key in (("own", f"smoke#{schema.EXPORTS_MARK}#1"), ("foreign", "smoke#1")):
        context = {"ContextKeyName": "dynamodb:LeadingKeys", "ContextKeyValues": [key], "ContextKeyType": "stringList"}
        answer = await ground.ask(
            "iam",
            "simulate_principal_policy",
            PolicySourceArn=role,
            ActionNames=["dynamodb:PutItem"],
            ResourceArns=[table],
            ContextEntries=[context],
        )
        decisions[name] = answer["EvaluationResults"][0]["EvalDecision"]
    if decisions == {"own": "allowed", "foreign": "implicitDeny"}:
        return read_back("IAM's simulation allows its own items, and denies those of conversations")
    return failed(f"IAM's simulation: {decisions}")


async def _named_actions(ground: Ground, role_arn: str) -> set[str]:
    """The actions of a role's own policies."""
    name = role_arn.rpartition("/")[2]
    listed = await ground.ask("iam", "list_role_policies", RoleName=name)
    actions: set[str] = set()
    for policy in listed["PolicyNames"]:
        read = await ground.ask("iam", "get_role_policy", RoleName=name, PolicyName=policy)
        statements: list[dict[str, Any]] = read["PolicyDocument"]["Statement"]
        for statement in statements:
            named = statement.get("Action", [])
            actions |= {named} if isinstance(named, str) else set(named)
    return actions
