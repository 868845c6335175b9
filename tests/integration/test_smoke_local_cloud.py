"""The smoke pack as its users run it, on the deployed local cloud: which verdict each line has there, to the letter.

What the local cloud holds shows nothing of AWS, so nothing is `shown`; what its emulator cannot hold is told with what
was measured. A line that moves to another of these lists has changed its meaning, or the emulator has.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
from pathlib import Path
from typing import Any, Final

from local.state import ACCOUNT
from tests.support.services import DeployedCloud
from threadkeep_client import Client

ROOT: Final = Path(__file__).resolve().parents[2]
SECRET: Final = "no-one-may-see-this-key"
PATIENCE_S: Final = "2"
"""What comes late on AWS never comes here."""

HELD: Final = {
    "event-source-rights",
    "frame-24k",
    "latency-push",
    "latency-reply",
    "latency-send",
    "order-pushes",
    "order-requests",
    "runtime",
    "token-4k",
}
"""Not applicable: it held, which says nothing of AWS."""
LACKING: Final = {
    "access-logs",
    "alarms-fire",
    "bucket-lifecycle",
    "concurrency",
    "connection-deleted",
    "dual-stack-name",
    "emf-metrics",
    "evalsha-latency",
    "frame-limit",
    "invoke-payload-limit",
    "leading-keys",
    "log-rights",
    "message-limit",
    "push-payload-limit",
    "replica-keys",
    "replica-protection",
    "replica-recovery",
    "route-response",
    "subprotocol-echo",
    "table-key-rights",
    "throttle-frame",
    "xray-trace",
}
"""Not applicable: it did not hold, as the emulator is known not to."""
NOTHING_TO_SHOW_ON: Final = {
    "address-order",
    "aliases",
    "bucket-copies",
    "files-browser",
    "push-over-ipv6",
    "replication-conflict",
    "replication-lag",
    "reserved-concurrency",
    "subprotocol-browser",
    "valkey-closed",
    "valkey-limits",
    "valkey-login",
    "vpc-shape",
    "waf",
    "xray-trace-vpc",
}
"""Not applicable: this deployment has nothing of the kind."""
OTHERS: Final = {
    "athena": "needs hours",
    "evalsha-vpc-against-public": "needs a second deployment",
    "idle-limit": "needs hours",
    "lifecycle-acts": "needs hours",
    "lifetime-limit": "needs hours",
    "stream-bisecting": "only read back as configured",
    "stream-partial-answers": "only read back as configured",
    "stream-retries": "only read back as configured",
    "ttl-records": "needs hours",
}
TENANT: Final = "smoke"
"""Of nobody else's, so that no other test's segments are found."""


class Run:
    """One run of the pack."""

    def __init__(self, cloud: DeployedCloud) -> None:
        self.tokens = {
            "TOKEN": cloud.mint_token(tenant=TENANT, scope="chat"),
            "OTHER_TOKEN": cloud.mint_token(sub="bob", tenant="smoke-other", scope="chat"),
            "PRODUCE_TOKEN": cloud.mint_token(sub="worker", tenant=TENANT, scope="produce"),
        }
        own = {name: value for name, value in os.environ.items() if not name.startswith("AWS_")}
        aws = {"AWS_ACCESS_KEY_ID": ACCOUNT, "AWS_SECRET_ACCESS_KEY": SECRET, "AWS_REGION": cloud.state.region}
        self._environment = own | aws | self.tokens | {"URL": cloud.state.url, "AWS_EC2_METADATA_DISABLED": "true"}

    async def of(self, *words: str, **changed: str) -> tuple[int | None, str, str]:
        """Its exit code, and what it said on standard output and standard error."""
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "smoke", "--patience", PATIENCE_S, "--at-once", "1", *words),
            cwd=ROOT,
            env=self._environment | changed,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
        said, progress = await process.communicate()
        return process.returncode, said.decode(), progress.decode()


async def test_every_line_has_its_verdict_and_nothing_is_left(local_cloud: DeployedCloud) -> None:
    run = Run(local_cloud)
    code, said, progress = await run.of("--json")
    report = json.loads(said)
    results: dict[str, dict[str, Any]] = {result["line"]: result for result in report["results"]}

    def lines(verdict: str, found: str | None) -> set[str]:
        return {name for name, told in results.items() if (told["verdict"], told["found"]) == (verdict, found)}

    failed = {name: told["detail"] for name, told in results.items() if told["verdict"] == "FAILED"}
    assert failed == {}
    assert lines("not applicable", "shown") == HELD
    assert lines("not applicable", "FAILED") == LACKING
    assert lines("not applicable", None) == NOTHING_TO_SHOW_ON
    assert {name: results[name]["verdict"] for name in OTHERS} == OTHERS
    assert len(results) == len(report["results"]) == len(HELD | LACKING | NOTHING_TO_SHOW_ON | OTHERS.keys())
    assert (code, report["left_behind"]) == (0, [])
    assert "33792 bytes: too_large" in results["frame-limit"]["detail"], "what was measured is told"
    assert f"[{len(results)}/{len(results)}]" in progress
    for secret in (*run.tokens.values(), SECRET):
        assert secret not in said + progress

    async with Client(local_cloud.state.url, run.tokens["TOKEN"]) as user:
        assert (await user.list_conversations()).items == []


async def test_single_lines_as_a_table(local_cloud: DeployedCloud) -> None:
    code, said, _ = await Run(local_cloud).of("--only", "frame-limit", "--only", "frame-24k")
    assert code == 0
    assert "2 lines in" in said
    assert "2 not applicable" in said
    assert "there is no limit to frames" in said


async def test_what_cannot_be_run_is_said_in_one_line(local_cloud: DeployedCloud) -> None:
    run = Run(local_cloud)
    nobody = {"AWS_ACCESS_KEY_ID": "", "AWS_SECRET_ACCESS_KEY": "", "AWS_SHARED_CREDENTIALS_FILE": os.devnull}
    for words, changed, reason in (
        ([], nobody, "no AWS credentials found"),
        (["--only", "no-such-line"], {}, "no line is called no-such-line"),
        ([], {"TOKEN": ""}, "TOKEN not given"),
        ([], {"URL": "https://example.com"}, "URL is no ws://"),
    ):
        code, said, told = await run.of(*words, **changed)
        assert (code, said) == (2, "")
        assert reason in told
        assert len(told.splitlines()) == 1
