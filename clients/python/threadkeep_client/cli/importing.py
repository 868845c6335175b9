"""`threadkeep import`: the conversations of an export, into a deployment."""

from __future__ import annotations

import asyncio
import secrets
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final, NoReturn

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.table import Table
from rich.text import Text

from threadkeep_client.cli.errors import CommandError
from threadkeep_client.cli.target import Target
from threadkeep_client.cli.terminal import printable
from threadkeep_client.client import Client
from threadkeep_client.errors import UnauthorizedError
from threadkeep_client.importing.building import Identity, claims_of
from threadkeep_client.importing.catalog import Catalog, catalog_of
from threadkeep_client.importing.files import UnreadableError, opened
from threadkeep_client.importing.report import NOTES, ImportReport
from threadkeep_client.importing.running import ImportSettings, run_import
from threadkeep_client.importing.times import to_ms

SCOPE: Final = "chat produce"
_NEEDED: Final = (
    "an import writes answers as well as questions, and as you: its token needs the claims `sub` and `tenant` and "
    f"the scope `{SCOPE}`"
)
_SHOWN_MAX: Final = 20
_NAMED_MAX: Final = 5
"""How many files are named that were passed over."""
_STEPS: Final = 10
"""How many lines of progress at most, where there is no terminal."""
_DEADLINE_S: Final = 120.0
"""For a request with its repeats: an import of hours outlives a disturbance of minutes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportOptions:
    """What was asked for."""

    as_json: bool
    new_ids: bool
    concurrency: int


async def import_file(target: Target, path: Path, options: ImportOptions) -> int:
    """Import what the file, zip or folder holds; returns the exit code: 1 where something is not there now.

    Raises:
        CommandError: It cannot be read, holds no conversation, or the token does not do.
        ThreadkeepError: The deployment cannot be reached, or is away for minutes.
    """
    identity = _identity(target)
    try:
        with opened(path) as found:
            catalog = catalog_of(found, lambda name: _say(f"reading {name}"))
            report = ImportReport.of(catalog)
            if not catalog.entries:
                _complain(path, report, as_json=options.as_json)
            await _run(target, catalog, report, identity, options)
    except UnreadableError as error:
        raise CommandError(str(error)) from error
    except OSError as error:
        raise CommandError(f"{error.filename or path} cannot be read or unpacked: {error.strerror or error}") from error
    return 0 if report.is_whole else 1


def _identity(target: Target) -> Identity:
    token = target.token_for(SCOPE)
    identity, scope = Identity.from_token(token), claims_of(token).get("scope")
    lacks = isinstance(scope, str) and not set(SCOPE.split()) <= set(scope.split())
    if identity is None or lacks:
        raise CommandError(_NEEDED)
    return identity


async def _run(
    target: Target, catalog: Catalog, report: ImportReport, identity: Identity, options: ImportOptions
) -> None:
    clock = asyncio.get_running_loop().time
    begin = clock()
    async with target.client(SCOPE, deadline_s=_DEADLINE_S) as client:
        settings = ImportSettings(
            identity=identity,
            now_ms=await _now_ms(client),
            salt=secrets.token_hex(16) if options.new_ids else "",
            concurrency=options.concurrency,
        )
        try:
            with _progress(len(catalog.entries)) as advance:
                await run_import(client, catalog, report, settings, advance)
        except* UnauthorizedError as group:
            raise CommandError(_NEEDED) from group
        finally:
            report.seconds = clock() - begin
            _tell(report, as_json=options.as_json)


async def _now_ms(client: Client) -> int:
    now_ms = to_ms(await client.ping())
    if now_ms is None:
        raise CommandError("the deployment does not tell the time")
    return now_ms


def _complain(path: Path, report: ImportReport, *, as_json: bool) -> NoReturn:
    if as_json:
        print(report.to_json())
    # What cannot be read comes first: it may have held them.
    reasons = [str(each) for each in report.refused]
    reasons += [f"{each.name}: {each.reason}" for each in report.passed_over]
    more = f" (and {len(reasons) - 1} more)" if len(reasons) > 1 else ""
    told = reasons[0] + more if reasons else f"{path} holds no JSON"
    raise CommandError(printable(f"no conversations found: {told}"))


def _tell(report: ImportReport, *, as_json: bool) -> None:
    if as_json:
        print(report.to_json())
        return
    table = Table(box=None, show_header=False, pad_edge=False)
    table.add_column()
    table.add_column(justify="right")
    for kind, counts in report.counts().items():
        for name, count in counts.items():
            if count or name in {"imported", "added"}:
                table.add_row(f"{kind} {name.replace('_', ' ')}", f"{count:,}")
    table.add_row("seconds", f"{report.seconds:.1f}")
    Console().print(table)
    _name_imported(report)
    _tell_what_is_amiss(report)


def _tell_what_is_amiss(report: ImportReport) -> None:
    console = Console(stderr=True, soft_wrap=True)
    if report.notes:
        console.print(Text("what was repaired, left out or left as it was:"))
    for name, count in report.notes.items():
        console.print(Text(f"{count:>7,}  {NOTES[name]}"))
    lines = [
        f"incomplete: {row.entry.file.name}, conversation {row.entry.source}: {row.reason}" for row in report.incomplete
    ]
    lines += [f"refused: {each}" for each in report.refused]
    lines += [
        f"refused: {row.entry.file.name}, conversation {row.entry.source}, message {name}: {reason}"
        for row in report.rows
        for name, reason in row.sent.refusals
    ]
    lines += [
        f"kept: {row.entry.file.name}, conversation {row.entry.source}: {row.sent.kept}"
        for row in report.rows
        if row.sent.kept
    ]
    untold = report.refused_more + sum(row.sent.refused - len(row.sent.refusals) for row in report.rows)
    for line in lines[:_SHOWN_MAX]:
        console.print(Text(printable(line)))
    if len(lines) + untold > _SHOWN_MAX:
        console.print(Text(f"… and {len(lines) + untold - _SHOWN_MAX:,} more: --json tells them"))
    if report.passed_over:
        names = [each.name for each in report.passed_over]
        more = f" and {len(names) - _NAMED_MAX:,} more" if len(names) > _NAMED_MAX else ""
        told = f"passed over, no conversations in: {', '.join(names[:_NAMED_MAX])}{more}"
        console.print(Text(printable(told)))
    if report.incomplete or report.not_reached:
        console.print(Text("what is incomplete or was not reached is completed by importing the same again"))


def _name_imported(report: ImportReport) -> None:
    for row in report.imported[:_SHOWN_MAX]:
        title = " ".join((row.title or "").split())
        print(f"{row.conversation}  {printable(title)}".rstrip())
    if len(report.imported) > _SHOWN_MAX:
        print(f"… and {len(report.imported) - _SHOWN_MAX:,} more: `threadkeep history` lists them, --json tells all")


def _say(line: str) -> None:
    print(printable(line), file=sys.stderr)


@contextmanager
def _progress(total: int) -> Iterator[Callable[[], None]]:
    """A bar on a terminal; else a line now and then. Both on stderr."""
    console = Console(stderr=True)
    if not console.is_terminal:
        yield _lines(total)
        return
    columns = (
        TextColumn("conversations"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=console, transient=True) as progress:
        task = progress.add_task("conversations", total=total)
        yield lambda: progress.advance(task)


def _lines(total: int) -> Callable[[], None]:
    done = 0

    def advance() -> None:
        nonlocal done
        done += 1
        if done == total or done * _STEPS // total > (done - 1) * _STEPS // total:
            _say(f"{done:,} of {total:,} conversations")

    return advance
