"""`threadkeep export`: ask for an export, wait until it is made, download it."""

from __future__ import annotations

import asyncio
import sys
import urllib.error
import urllib.request
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from http.client import HTTPException
from pathlib import Path
from typing import IO, Final, get_args
from urllib.parse import urlsplit

from threadkeep_client.backoff import Backoff
from threadkeep_client.cli.errors import CommandError, naming_wrong_ids
from threadkeep_client.cli.target import Target
from threadkeep_client.client import Client
from threadkeep_client.keeping import Export, ExportFormat

FORMATS: Final[tuple[ExportFormat, ...]] = get_args(ExportFormat)
_CHUNK_BYTES: Final = 256 * 1024
_SILENCE_S: Final = 60.0
"""How long the store may say nothing while a file comes."""
_POLLS: Final = Backoff(base_s=1.0, ceiling_s=10.0, floor_s=1.0)


async def export_file(target: Target, conversation: str | None, *, form: ExportFormat, path: Path | None) -> int:
    """Export a conversation, or all of the user's, to a file or standard output; returns the exit code.

    Raises:
        CommandError: The export failed, or its file cannot be had or written.
        ThreadkeepError: As any request.
    """
    async with target.client("chat") as client:
        with naming_wrong_ids(conversation):
            export = await client.create_export(conversation, form=form)
        export = await _finished(client, export)
    if export["state"] != "done" or "url" not in export:
        raise CommandError(f"the export failed: {export.get('error', 'it has no file')}")
    url = export["url"]
    size = await asyncio.to_thread(_download, url, path)
    _say(
        f"{export.get('conversations', 0):,} conversations, {export.get('messages', 0):,} messages, {size:,} bytes"
        + (f" in {path}" if path is not None else "")
    )
    if skipped := export.get("skipped", 0):
        _say(f"{skipped:,} messages could not be read from any store; the file says where they stood")
        return 1
    return 0


async def _finished(client: Client, export: Export) -> Export:
    """Ask until it is made, or has failed; how far it is goes to stderr."""
    told = ""
    for pause_s in _POLLS.pauses():
        if export["state"] != "running":
            return export
        line = f"exporting: {export.get('conversations', 0):,} conversations, {export.get('messages', 0):,} messages"
        if line != told:
            _say(line)
            told = line
        await asyncio.sleep(pause_s)
        export = await client.get_export(export["id"])
    raise AssertionError("pauses never end")


def _download(url: str, path: Path | None) -> int:
    """Fetch the file piece by piece; how many bytes it has. A file appears whole, or not at all.

    Raises:
        CommandError: It cannot be had, or not be written.
    """
    if urlsplit(url).scheme not in {"http", "https"}:
        raise CommandError("the link to the export is none of HTTP")
    part = None if path is None else path.with_name(f"{path.name}.part")
    try:
        with (
            urllib.request.urlopen(url, timeout=_SILENCE_S) as answer,  # noqa: S310 -- looked at above
            _output(part) as file,
        ):
            size = _copy(answer.read, file, answer.headers.get("content-length"))
        if part is not None and path is not None:
            part.replace(path)
    except BrokenPipeError:
        raise  # whoever read our standard output has gone
    except urllib.error.HTTPError as refused:
        refused.close()
        raise CommandError(f"the file of the export cannot be had: HTTP {refused.code}") from refused
    except (OSError, HTTPException) as error:
        raise CommandError(f"the export cannot be downloaded: {error}") from error
    finally:
        if part is not None:
            part.unlink(missing_ok=True)
    return size


def _output(part: Path | None) -> AbstractContextManager[IO[bytes]]:
    return nullcontext(sys.stdout.buffer) if part is None else part.open("wb")


def _copy(read: Callable[[int], bytes], file: IO[bytes], told: str | None) -> int:
    size = 0
    while chunk := read(_CHUNK_BYTES):
        file.write(chunk)
        size += len(chunk)
    file.flush()
    if told is not None and size != int(told):
        raise OSError(f"{size:,} of {int(told):,} bytes came")
    return size


def _say(line: str) -> None:
    print(line, file=sys.stderr)
