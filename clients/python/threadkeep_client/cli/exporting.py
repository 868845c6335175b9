"""`threadkeep export`: ask for an export, wait until it is made, download it."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final, get_args

from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, TextColumn, TimeRemainingColumn
from rich.progress import Progress as Bar

from threadkeep_client.backoff import Backoff
from threadkeep_client.cli.downloading import Progress, check_place, download
from threadkeep_client.cli.errors import CommandError, naming_wrong_ids
from threadkeep_client.cli.target import Target
from threadkeep_client.cli.terminal import counted
from threadkeep_client.client import Client
from threadkeep_client.keeping import Export, ExportFormat

FORMATS: Final[tuple[ExportFormat, ...]] = get_args(ExportFormat)
_POLLS: Final = Backoff(base_s=1.0, ceiling_s=10.0, floor_s=1.0)
_LINE_BYTES: Final = 64 * 1024 * 1024
"""How much comes between two lines of progress, where there is no terminal."""
_REASONS: Final = {
    "not_found": "there is no such conversation of yours any more",
    "unavailable": "a store is away: ask again later",
    "too_large": "it takes longer than an export may: export single conversations",
    "unsettled": "conversations went cold while it was made, every time: ask again",
    "lost": "nobody finished it: ask again",
    "internal": "the service has a fault: ask again, or tell its operator",
}
"""The codes by which an export fails (protocol, section 7)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportOptions:
    """What was asked for; without a path the file goes to standard output."""

    form: ExportFormat = "jsonl"
    path: Path | None = None
    as_json: bool = False


async def export_file(target: Target, conversation: str | None, options: ExportOptions) -> int:
    """Export a conversation, or all of the user's, to a file or standard output; returns the exit code.

    Raises:
        CommandError: The export failed, or its file cannot be had or written.
        ThreadkeepError: As any request.
    """
    path = options.path
    if path is not None:
        check_place(path)
    elif options.as_json:
        raise CommandError("--json needs --output: without it the export itself goes to standard output")
    async with target.client("chat") as client:
        with naming_wrong_ids(conversation):
            export = await client.create_export(conversation, form=options.form)
        export = await _finished(client, export)
        if export["state"] != "done" or "url" not in export:
            raise CommandError(f"the export failed: {_why_failed(export)}")

        async def renew() -> str:
            return (await client.get_export(export["id"])).get("url", "")

        with _progress() as progress:
            size = await download(export["url"], renew, path, progress)
    _say(f"{_counts(export)}, {size:,} bytes" + (f" in {path}" if path is not None else ""))
    if options.as_json:
        told = {name: value for name, value in export.items() if not name.startswith("url")}
        print(json.dumps(told | {"file": str(path), "bytes": size}, ensure_ascii=False))
    if skipped := export.get("skipped", 0):
        _say(f"{counted(skipped, 'message')} could not be read from any store; the file says where")
        return 1
    return 0


async def _finished(client: Client, export: Export) -> Export:
    """Ask until it is made, or has failed; how far it is goes to stderr."""
    told = ""
    for pause_s in _POLLS.pauses():
        if export["state"] != "running":
            return export
        line = f"exporting: {_counts(export)}"
        if line != told:
            _say(line)
            told = line
        await asyncio.sleep(pause_s)
        export = await client.get_export(export["id"])
    raise AssertionError("pauses never end")


def _counts(export: Export) -> str:
    conversations = counted(export.get("conversations", 0), "conversation")
    return f"{conversations}, {counted(export.get('messages', 0), 'message')}"


def _why_failed(export: Export) -> str:
    code = export.get("error", "it has no file")
    return f"{code}: {_REASONS[code]}" if code in _REASONS else code


@contextmanager
def _progress() -> Iterator[Progress]:
    """A bar on a terminal; else a line now and then. Both on stderr."""
    console = Console(stderr=True)
    if not console.is_terminal:
        yield _lines()
        return
    with Bar(
        TextColumn("downloading"), BarColumn(), DownloadColumn(), TimeRemainingColumn(), console=console, transient=True
    ) as bar:
        task = bar.add_task("downloading", total=None)
        yield lambda size, total: bar.update(task, completed=size, total=total)


def _lines() -> Progress:
    told = 0

    def show(size: int, total: int | None) -> None:
        nonlocal told
        if size // _LINE_BYTES > told:
            told = size // _LINE_BYTES
            _say(f"downloading: {size:,}" + (f" of {total:,} bytes" if total is not None else " bytes"))

    return show


def _say(line: str) -> None:
    print(line, file=sys.stderr)
