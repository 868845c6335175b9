"""What a file holds, before anything is sent: where each conversation lies, of which form it is, how old; what is none.

The files are read twice, since the oldest activity is to be imported first, and exports begin with the newest.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, BinaryIO, Final

from threadkeep_client.frames import from_json
from threadkeep_client.importing.draft import Draft, Form, RefusedError, refusal_of
from threadkeep_client.importing.files import Found, Opened, Unreadable
from threadkeep_client.importing.reading import form_of, is_behind_conversation, read_draft, source_of
from threadkeep_client.importing.spans import Span, spans
from threadkeep_client.importing.times import to_ms
from threadkeep_client.wire import JsonObject

CONVERSATION_BYTES_MAX: Final = 64 * 1024 * 1024
"""One conversation as JSON. It is held in memory whole: some three times as large, and up to eight times where every
message holds an emoji (43 MB took 347 MB; measured 2026-11-29)."""
REFUSALS_MAX: Final = 1_000
"""How many of one file are kept word for word; more are counted."""


@dataclass(frozen=True, slots=True)
class Refusal:
    """What was not imported, and why.

    Attributes:
        file: what people call it.
        place: which value of the file it is, from 1 on; None for the whole file.
        source: the conversation's id in the export, where it says one.
    """

    file: str
    reason: str
    place: int | None = None
    source: str | None = None


@dataclass(slots=True)
class Entry:
    """A conversation in a file.

    Attributes:
        place: which value of the file it is, from 1 on.
        active_ms: its last activity; 0 where nothing is said.
        spans: where it lies: one value, in Threadkeep's own form one more for each line behind it.
        damage: why it cannot be read whole.
    """

    file: Opened
    place: int
    form: Form
    source: str
    active_ms: int
    spans: list[Span]
    damage: str | None = None

    @property
    def length(self) -> int:
        """In bytes."""
        return sum(span.length for span in self.spans)

    def read(self) -> Draft:
        """Read it.

        Raises:
            RefusedError: It cannot be imported.
        """
        with self.file.path.open("rb") as file:
            values = [_parse(_content(file, span)) for span in self.spans]
        return read_draft(self.form, values, self.source)

    def refusal(self, reason: str) -> Refusal:
        """That it was refused."""
        return Refusal(self.file.name, reason, self.place, self.source)


@dataclass(slots=True)
class Catalog:
    """What was found.

    Attributes:
        entries: oldest activity first.
        refusals: what is no conversation beside others that are, and what cannot be read.
        refusals_more: how many more there were than are told.
        passed_over: files that hold no conversation at all, and why.
    """

    entries: list[Entry] = field(default_factory=list)
    refusals: list[Refusal] = field(default_factory=list)
    refusals_more: int = 0
    passed_over: list[Unreadable] = field(default_factory=list)


def catalog_of(found: Found, progress: Callable[[str], None] = lambda _: None) -> Catalog:
    """Go through the files.

    Args:
        found: the files.
        progress: told the name of each, before it is read.
    """
    catalog = Catalog(refusals=[Refusal(each.name, each.reason) for each in found.unreadable])
    for opened in found.files:
        progress(opened.name)
        one = _File(opened)
        with opened.path.open("rb") as file:
            one.read(file)
        if one.entries:
            catalog.entries += one.entries
            catalog.refusals += one.refusals
            catalog.refusals_more += one.refusals_more
        else:
            reason = one.refusals[0].reason if one.refusals else "holds nothing"
            catalog.passed_over.append(Unreadable(opened.name, reason))
    catalog.entries.sort(key=lambda entry: entry.active_ms)
    return catalog


class _File:
    """The values of one file, each looked at once."""

    def __init__(self, opened: Opened) -> None:
        self.entries: list[Entry] = []
        self.refusals: list[Refusal] = []
        self.refusals_more = 0
        self._opened = opened
        self._open: Entry | None = None  # a conversation of our own form, whose lines follow
        self._open_bytes = 0

    def read(self, file: BinaryIO) -> None:
        """Take the values in."""
        place = 0
        for span, content in _contents(file):
            if content is not None and not content.strip():
                continue
            place += 1
            try:
                self._take(span, content, place)
            except Exception as error:  # noqa: BLE001 -- one value that nobody foresaw stops no other
                reason = refusal_of(error)
                if self._open is not None:
                    # Whatever it was, it stands between this conversation's messages.
                    self._open.damage = f"value {place} of the file {reason}"
                self._refuse(Refusal(self._opened.name, reason, place))

    def _take(self, span: Span, content: bytes | None, place: int) -> None:
        if content is None:
            raise RefusedError(f"takes more than {CONVERSATION_BYTES_MAX:,} bytes")
        value = _parse(content)
        if is_behind_conversation(value) and value["type"] != "conversation":
            self._take_line(span, value)
            return
        form = form_of(value)
        entry = Entry(self._opened, place, form, source_of(value, content), _active_ms(value), [span])
        self.entries.append(entry)
        self._open = entry if form == "threadkeep" else None
        self._open_bytes = span.length

    def _take_line(self, span: Span, line: JsonObject) -> None:
        if self._open is None or line["conversation"] != self._open.source:
            raise RefusedError("is a line that does not stand behind its conversation")
        self._open.spans.append(span)
        self._open_bytes += span.length
        if self._open_bytes > CONVERSATION_BYTES_MAX:
            self._open.damage = f"takes more than {CONVERSATION_BYTES_MAX:,} bytes"

    def _refuse(self, refusal: Refusal) -> None:
        if len(self.refusals) < REFUSALS_MAX:
            self.refusals.append(refusal)
        else:
            self.refusals_more += 1


def _contents(file: BinaryIO) -> Iterator[tuple[Span, bytes | None]]:
    """The values and their bytes; None where there are too many."""
    for span in spans(file):
        after = file.tell()
        yield span, _content(file, span) if span.length <= CONVERSATION_BYTES_MAX else None
        file.seek(after)


def _content(file: BinaryIO, span: Span) -> bytes:
    file.seek(span.start)
    return file.read(span.length)


def _parse(content: bytes) -> Any:
    try:
        return from_json(content.decode())
    except UnicodeDecodeError as error:
        raise RefusedError("is not UTF-8") from error
    except ValueError as error:
        raise RefusedError("is not JSON, or cut off") from error


def _active_ms(value: JsonObject) -> int:
    for name in ("active_at", "update_time", "updated_at", "create_time", "created_at"):
        at = to_ms(value.get(name))
        if at is not None:
            return at
    return 0
