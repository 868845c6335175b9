"""``threadkeep replay --check``, the command itself, against a service on whose way everything goes wrong."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from pathlib import Path

import pytest

from local.keys import SigningKey
from local.state import Address
from tests.support.gateway import Faults
from tests.support.gateway.bulkheads import REGION
from tests.support.gateway.deployment import deployed
from tests.support.hot import client_of
from threadkeep.stores.hot_valkey import HotValkey

CHATS = Path(__file__).parents[1] / "data" / "chats-demo.jsonl"


@pytest.mark.parametrize(
    "faults",
    [
        Faults(),
        Faults(double_request=0.1, double_push=0.1, lose_push=0.05, delay_push=0.2, fail_integration=0.02, cut=0.005),
    ],
    ids=["fair", "foul"],
)
async def test_the_command_finds_no_difference(valkey_cluster: Address, faults: Faults) -> None:
    key = SigningKey.generate()
    client = client_of(valkey_cluster, is_cluster=True)
    async with deployed(HotValkey(client, region=REGION), key, faults=faults) as deployment:
        token = key.mint_token(sub="ann", tenant="acme", scope=["chat", "produce"])
        command = (
            sys.executable,
            "-m",
            "threadkeep_client.cli",
            "replay",
            str(CHATS),
            "--check",
            "--json",
            "--limit",
            "3",
        )
        where = {"THREADKEEP_URL": deployment.gateway.url, "THREADKEEP_TOKEN": token}
        process = await asyncio.create_subprocess_exec(
            *command, env=os.environ | where, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE
        )
        printed, complaints = await asyncio.wait_for(process.communicate(), 120)
    client.close()
    assert process.returncode == 0, complaints.decode()
    report = json.loads(printed)
    assert report["conversations"] == 3
    assert report["differences"] == 0
    assert (deployment.gateway.counts["requests_doubled"] > 0) is (faults != Faults())
