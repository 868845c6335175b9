"""What a file holds, before anything is sent: where each conversation lies, of which form it is, how old; what is none.

The files are read twice, since the oldest activity is to be imported first, and exports begin with the newest.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Generator
from dataclasses import dataclass, field
from typing import Any, BinaryIO, Final

from threadkeep_client.importing.draft import Draft, Form, refusal_of
from threadkeep_client.importing.files import Found, Opened, Unreadable, is_called_conversations
from threadkeep_client.importing.reading import form_of, is_behind_conversation, read_draft, source_of
from threadkeep_client.importing.spans import Places, Span, is_blank, spans
from threadkeep_client.importing.times import to_ms
from threadkeep_client.importing.values import read_value
from threadkeep_client.wire import JsonObject

_TOLD_BYTES_MAX: Final = 64 * 1024
"""What is read of each field of a large conversation, to know what it is."""
REFUSALS_MAX: Final = 1_000
"""How many of one file are kept word for word; more are counted."""
_MARKS: Final = re.compile(rb'"(?:mapping|chat_messages)"\s*:|"type"\s*:\s*"conversation"')
"""What the JSON of a conversation holds, in any of the forms."""
_JSON_SUFFIXES: Final = (".json", ".jsonl")
_CUT_OFF: Final = "ends before its list does: it is cut off"


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

    def __str__(self) -> str:
        """Which, and why."""
        named = f", conversation {self.source}" if self.source else f", value {self.place}" if self.place else ""
        return f"{self.file}{named}: {self.reason}"


@dataclass(slots=True)
class Entry:
    """A conversation in a file.

    Attributes:
        place: which value of the file it is, from 1 on.
        active_ms: its last activity; 0 where nothing is said.
        places: where it lies: one value, in Threadkeep's own form one more for each line behind it.
        damage: why it cannot be read whole.
    """

    file: Opened
    place: int
    form: Form
    source: str
    active_ms: int
    places: Places
    damage: str | None = None

    @property
    def length(self) -> int:
        """In bytes."""
        return sum(place.length for place in self.places)

    def read(self) -> Draft:
        """Read it, all but what its messages say: that is read when it is wanted.

        Raises:
            RefusedError: It cannot be imported.
        """
        return read_draft(self.form, self.file.path, self.places, self.source)

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
        passed_over: files that hold no conversation at all, and why. One that cannot be read and looks as if it held
            some is among the refusals.
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
    catalog = Catalog(
        refusals=[Refusal(each.name, each.reason) for each in found.unreadable], passed_over=list(found.passed_over)
    )
    for opened in found.files:
        progress(opened.name)
        one = _File(opened)
        with opened.path.open("rb") as file:
            one.read(file)
        if one.is_of_conversations:
            catalog.entries += one.entries
            catalog.refusals += one.refusals
            catalog.refusals_more += one.refusals_more
        else:
            reason = f"value {one.refusals[0].place} {one.refusals[0].reason}" if one.refusals else "holds nothing"
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
        self._stray: str | None = None  # a conversation whose lines stand elsewhere
        self._is_cut_off = False
        self._is_suspect = False  # it cannot be read, and looks as if it held conversations

    @property
    def is_of_conversations(self) -> bool:
        """Whether it holds conversations, or cannot be read and may have held some."""
        return bool(self.entries or self._is_suspect or (self.refusals and is_called_conversations(self._opened.name)))

    def read(self, file: BinaryIO) -> None:
        """Take the values in."""
        place, last_is_sound = 0, True
        for span in self._spans(file):
            after = file.tell()
            if not is_blank(file, span):
                place += 1
                last_is_sound = self._try(file, span, place)
            file.seek(after)
        if self._is_cut_off and last_is_sound:
            self._refuse(Refusal(self._opened.name, _CUT_OFF))
            self._suspect(b"")

    def _spans(self, file: BinaryIO) -> Generator[Span, None, None]:
        self._is_cut_off = yield from spans(file)

    def _suspect(self, beginning: bytes) -> None:
        """Of something that cannot be read: its file may have held conversations by its name, or by what it says."""
        name = self._opened.name.lower()
        self._is_suspect |= name.endswith(_JSON_SUFFIXES) or _MARKS.search(beginning) is not None

    def _try(self, file: BinaryIO, span: Span, place: int) -> bool:
        """Take one in; whether it could be read."""
        try:
            value = read_value(file, span, each_bytes_max=_TOLD_BYTES_MAX, depth=1)
        except Exception as error:  # noqa: BLE001 -- one value that nobody foresaw stops no other
            file.seek(span.start)
            self._suspect(file.read(min(span.length, _TOLD_BYTES_MAX)))
            # Among our own lines it is told as what is wrong with their conversation.
            if not self._spoil(place, refusal_of(error)):
                self._refuse(Refusal(self._opened.name, refusal_of(error), place))
            return False
        try:
            self._take(value, span, place)
        except Exception as error:  # noqa: BLE001 -- likewise
            self._spoil(place, refusal_of(error))
            self._refuse(Refusal(self._opened.name, refusal_of(error), place))
        return True

    def _spoil(self, place: int, reason: str) -> bool:
        """Whether a conversation of our own form is open: whatever it was stands between that one's messages."""
        if self._open is None:
            return False
        self._open.damage = self._open.damage or f"value {place} of the file {reason}"
        return True

    def _take(self, value: Any, span: Span, place: int) -> None:
        if is_behind_conversation(value) and value["type"] != "conversation":
            self._take_line(span, value, place)
            return
        form, path = form_of(value), self._opened.path
        entry = Entry(self._opened, place, form, source_of(value, path, span), _active_ms(value), Places([span]))
        self.entries.append(entry)
        self._open = entry if form == "threadkeep" else None

    def _take_line(self, span: Span, line: JsonObject, place: int) -> None:
        source = line["conversation"]
        if self._open is not None and source == self._open.source:
            self._open.places.append(span)
        elif source != self._stray:  # lines of one conversation are told once
            self._stray = source
            reason = "is a line that does not stand behind its conversation"
            self._spoil(place, reason)
            self._refuse(Refusal(self._opened.name, reason, place, source))

    def _refuse(self, refusal: Refusal) -> None:
        if len(self.refusals) < REFUSALS_MAX:
            self.refusals.append(refusal)
        else:
            self.refusals_more += 1


def _active_ms(value: JsonObject) -> int:
    for name in ("active_at", "update_time", "updated_at", "create_time", "created_at"):
        at = to_ms(value.get(name))
        if at is not None:
            return at
    return 0
