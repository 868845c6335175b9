"""`threadkeep history`: a conversation's messages, or the list of conversations."""

from __future__ import annotations

import json
from typing import Final

from rich.console import Console
from rich.markdown import Markdown
from rich.table import Column, Table
from rich.text import Text

from threadkeep_client.cli.errors import naming_wrong_ids
from threadkeep_client.cli.opening import leaf_to_open
from threadkeep_client.cli.target import Target
from threadkeep_client.cli.terminal import printable
from threadkeep_client.wire import Message, Part

_CONVERSATIONS_MAX: Final = 100
_SHOWN_CHARS_MAX: Final = 2_000
_ID_CHARS: Final = 36
_SECONDS_CHARS: Final = len("2026-01-31T12:00:00")


async def show_history(target: Target, conversation: str, *, leaf: str | None, as_json: bool) -> int:
    """Print the messages, oldest first."""
    async with target.client("chat") as client:
        with naming_wrong_ids(conversation, leaf=leaf):
            messages = await client.history(conversation, leaf=leaf or await leaf_to_open(client, conversation))
    if as_json:
        for message in messages:
            print(json.dumps(message, ensure_ascii=False))
        return 0
    console = Console()
    # Imports mark what the service that they come from never showed.
    shown = [message for message in messages if message["metadata"].get("hidden") is not True]
    for message in shown:
        console.print(Text(_headline(message, with_parent=leaf == "all"), style="bold cyan"), soft_wrap=True)
        for part in message["parts"]:
            _print_part(console, part)
    if not messages:
        console.print("no messages yet")
    if len(shown) < len(messages):
        console.print(f"{len(messages) - len(shown)} more are hidden: --json shows them")
    return 0


async def list_conversations(target: Target, *, as_json: bool) -> int:
    """Print the newest conversations."""
    async with target.client("chat") as client:
        page = await client.list_conversations(limit=_CONVERSATIONS_MAX)
    if as_json:
        for conversation in page.items:
            print(json.dumps(conversation, ensure_ascii=False))
        return 0
    if not page.items:
        print("no conversations yet")
        return 0
    table = Table(
        Column("conversation", no_wrap=True, min_width=_ID_CHARS),
        "title",
        Column("active", no_wrap=True, min_width=_SECONDS_CHARS),
        box=None,
        pad_edge=False,
    )
    for conversation in page.items:
        title = printable(conversation.get("title") or "")
        table.add_row(
            conversation["id"],
            Text(title, overflow="ellipsis", no_wrap=True),
            f"{conversation['active_at'][:_SECONDS_CHARS]}Z",
        )
    console = Console()
    console.print(table)
    if page.cursor is not None:
        console.print(f"the newest {len(page.items)}; there are more")
    return 0


def _headline(message: Message, *, with_parent: bool) -> str:
    """Who, when, which; of several branches also what it follows, since it need not be what stands above."""
    words = [message["role"], message.get("model", ""), message["created_at"], message["id"]]
    if message["status"] != "complete":
        words.append(message["status"])
    if with_parent:
        words.append("begins anew" if message["parent"] is None else f"follows {message['parent']}")
    return printable("  ".join(word for word in words if word))


def _print_part(console: Console, part: Part) -> None:
    kind = part.get("type")
    if kind == "text":
        console.print(Markdown(printable(str(part.get("text", "")))))
        return
    shown = str(part.get("text", "")) if kind == "reasoning" else json.dumps(part, ensure_ascii=False)
    cut = shown if len(shown) <= _SHOWN_CHARS_MAX else f"{shown[:_SHOWN_CHARS_MAX]}… ({len(shown):,} characters)"
    console.print(Text(f"{kind}: {printable(cut)}", style="dim"))
