"""An import: conversation after conversation, oldest activity first, several at once."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Final

from threadkeep_client.client import Client
from threadkeep_client.errors import (
    BadRequestError,
    ConflictError,
    InternalError,
    NotFoundError,
    ThreadkeepError,
    TooLargeError,
    UnavailableError,
    WireError,
)
from threadkeep_client.importing.building import Built, Identity, build
from threadkeep_client.importing.catalog import Catalog, Entry
from threadkeep_client.importing.draft import RefusedError, refusal_of
from threadkeep_client.importing.report import ImportReport, Row
from threadkeep_client.importing.sending import Sent, send

HELD_BYTES_MAX: Final = 16 * 1024 * 1024
"""The conversations that are sent at once, as JSON; one that is larger by itself is sent alone. Of each the tree is
held, and of its messages the one that is sent."""
_OF_ONE_CONVERSATION: Final = (BadRequestError, TooLargeError, ConflictError, NotFoundError, InternalError)


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportSettings:
    """What was asked for.

    Attributes:
        identity: whose import it is.
        now_ms: the service's clock.
        salt: as `build` takes it.
        concurrency: conversations at once.
    """

    identity: Identity
    now_ms: int
    salt: str = ""
    concurrency: int = 4


async def run_import(
    client: Client,
    catalog: Catalog,
    report: ImportReport,
    settings: ImportSettings,
    advance: Callable[[], None] = lambda: None,
) -> None:
    """Import what the catalog lists; `report` says how far it came, also where this raises.

    Args:
        client: with a token of scope `chat produce`.
        catalog: what there is.
        report: `ImportReport.of(catalog)`.
        settings: what was asked for.
        advance: called after each conversation.

    Raises:
        ThreadkeepError: The service is away, or refuses the token: no conversation after it would fare better.
    """
    room = _Room(HELD_BYTES_MAX)
    groups = iter(_groups(catalog.entries))

    async def work() -> None:
        for group in groups:
            for entry in group:
                async with room.of(entry.length):
                    await _import_one(client, entry, report, settings)
                advance()

    async with asyncio.TaskGroup() as tasks:
        for _ in range(settings.concurrency):
            tasks.create_task(work())


def _groups(entries: Iterable[Entry]) -> list[list[Entry]]:
    """A conversation that stands in several files is imported from one after the other."""
    groups: dict[str, list[Entry]] = {}
    for entry in entries:
        groups.setdefault(entry.source, []).append(entry)
    return list(groups.values())


async def _import_one(client: Client, entry: Entry, report: ImportReport, settings: ImportSettings) -> None:
    try:
        # In a thread: a large one takes seconds to read, and requests in flight have timers.
        built = await asyncio.to_thread(_read, entry, settings)
    except RefusedError as refused:
        report.refused.append(entry.refusal(str(refused)))
        return
    sent = Sent()
    try:
        reason = await _send(client, built, sent)
    except BaseException as error:
        if sent.is_begun:
            told = str(error) if isinstance(error, ThreadkeepError) else "interrupted"
            report.add(Row(entry, built.id, built.title, sent, built.notes, told))
        raise
    if reason is not None and not sent.is_begun:
        report.refused.append(entry.refusal(reason))
        return
    report.add(Row(entry, built.id, built.title, sent, built.notes, reason))


async def _send(client: Client, built: Built, sent: Sent) -> str | None:
    """Send it; the reason why it is not whole, where the others may fare better."""
    try:
        await send(client, built, sent)
    except RefusedError as refused:
        return str(refused)
    except ValueError:
        return "it holds a number that JSON has no word for"
    except WireError as error:
        if not _is_of_one_conversation(error):
            raise
        return str(error)
    return None


def _is_of_one_conversation(error: WireError) -> bool:
    """Whether the others may fare better."""
    return isinstance(error, _OF_ONE_CONVERSATION) or (isinstance(error, UnavailableError) and error.reason == "upload")


def _read(entry: Entry, settings: ImportSettings) -> Built:
    if entry.damage is not None:
        raise RefusedError(entry.damage)
    try:
        return build(entry.read(), settings.identity, now_ms=settings.now_ms, salt=settings.salt)
    except Exception as error:
        raise RefusedError(refusal_of(error)) from error


class _Room:
    """Lets in as many bytes as there is room for; whatever is larger than the room waits until it is empty.

    Who waits is let in by turns, so that a large conversation is not overtaken for ever.
    """

    def __init__(self, bytes_max: int) -> None:
        self._bytes_max = bytes_max
        self._taken = 0
        self._turn = asyncio.Lock()
        self._changed = asyncio.Condition()

    def of(self, length: int) -> _Place:
        """Room for so many bytes, while it is entered."""
        return _Place(self, min(length, self._bytes_max))

    async def take(self, length: int) -> None:
        """Wait for room."""
        async with self._turn, self._changed:
            await self._changed.wait_for(lambda: self._taken + length <= self._bytes_max)
            self._taken += length

    async def leave(self, length: int) -> None:
        """Give it back."""
        async with self._changed:
            self._taken -= length
            self._changed.notify_all()


class _Place:
    def __init__(self, room: _Room, length: int) -> None:
        self._room = room
        self._length = length

    async def __aenter__(self) -> None:
        await self._room.take(self._length)

    async def __aexit__(self, *_: object) -> None:
        await self._room.leave(self._length)
