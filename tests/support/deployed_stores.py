"""The deployed local cloud's stores, as their owner sees them: past the service."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Any, Final

from valkey import Valkey

from local.deploy import aws_session
from local.state import CloudState
from threadkeep.domain.model import ConversationKey
from threadkeep.stores.hot_keys import deadlines_of, stream_of_entry

PATIENCE_S: Final = 60
"""Far longer than an erasure takes: the queues hold its second pass back for some seconds."""


class Stores:
    """Table, bucket and Valkey."""

    def __init__(self, state: CloudState) -> None:
        self.table_name, self.bucket, self.address = state.table, state.bucket, state.valkey
        session = aws_session()
        self.table: Any = session.client("dynamodb", endpoint_url=state.endpoint)
        self.s3: Any = session.client("s3", endpoint_url=state.endpoint)

    def items(self, conversation: str) -> list[str]:
        """Sort keys of all items that name it anywhere in their keys."""
        pages = self.table.get_paginator("scan").paginate(TableName=self.table_name)
        items = [item for page in pages for item in page["Items"]]
        assert items, "the scan sees the table"
        return sorted(item["sk"]["S"] for item in items if conversation in str((item["pk"], item["sk"])))

    def objects(self, conversation: str) -> list[str]:
        """Keys of all versions of all objects that name it."""
        pages = self.s3.get_paginator("list_object_versions").paginate(Bucket=self.bucket)
        listed = [entry for page in pages for entry in (*page.get("Versions", []), *page.get("DeleteMarkers", []))]
        return [entry["Key"] for entry in listed if conversation in entry["Key"]]

    def hot_keys(self, conversation: str) -> list[str]:
        """Names of all keys in Valkey that name it."""
        with Valkey(host=self.address.host, port=self.address.port) as untyped:
            server: Any = untyped
            return [name.decode() for name in server.scan_iter(match=f"*{conversation}*", count=10_000)]

    def deadlines(self, key: ConversationKey) -> list[str]:
        """Its streams that the sweeper will still look at."""
        with Valkey(host=self.address.host, port=self.address.port) as untyped:
            server: Any = untyped
            entries = [entry.decode() for entry in server.zrange(deadlines_of(key), 0, -1)]
        return [stream for found, stream in map(stream_of_entry, entries) if found == key]


async def until(holds: Callable[[], Awaitable[bool]], what: str) -> None:
    """Ask again until it holds."""
    deadline = time.monotonic() + PATIENCE_S
    while not await holds():
        assert time.monotonic() < deadline, what
        await asyncio.sleep(0.2)
