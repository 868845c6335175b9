"""What came of an import: counted, and for every conversation that is not whole the reason."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass, field
from typing import Final

from threadkeep_client.importing.catalog import Catalog, Entry, Refusal
from threadkeep_client.importing.files import Unreadable
from threadkeep_client.importing.sending import Sent
from threadkeep_client.wire import JsonObject

NOTES: Final = {
    "orphans": "messages whose parent is not in the export; they begin a branch of their own",
    "rings_cut": "rings of messages, each the parent of the next; cut where they began",
    "current_node_missing": "conversations that were left at a message which is not in the export",
    "roles_unknown": "messages without a known author, kept as an assistant's",
    "halves_replaced": "messages, titles or metadata with halves of characters (surrogates), each replaced by U+FFFD",
    "texts_differ": "messages whose `text` says something else than their `content`; it is kept in their metadata",
    "empty_messages": "messages without content, kept as empty turns",
    "nodes_dropped": "nodes that are no objects",
    "times_missing": "messages without a time, dated by the message above them",
    "titles_cut": "titles longer than 512 characters, cut",
    "metadata_dropped": "fields of metadata that did not fit 16 KiB, left out",
    "contents_dropped": "contents over 8 MiB, nested too deeply or no JSON, left out",
    "replies_dropped": "questions whose field `reply` was left out: it names an answer that is not in the export",
    "damaged": "messages that could not be read for this export; what stood under them begins a branch of its own",
    "heads_kept": "conversations that have another title, retention or metadata here, which stay",
    "files_missing": "files that are not in this deployment; what is known of them is kept",
}
"""The kinds of notes, each as a sentence goes on after its count."""


@dataclass(frozen=True, slots=True)
class Row:
    """A conversation that was begun."""

    entry: Entry
    conversation: str
    title: str | None
    sent: Sent
    notes: Counter[str]
    reason: str | None = None

    def to_json(self) -> JsonObject:
        """As the report has it."""
        return {
            "file": self.entry.file.name,
            "place": self.entry.place,
            "form": self.entry.form,
            "source": self.entry.source,
            "conversation": self.conversation,
            "title": self.title,
            "added": self.sent.added,
            "already_there": self.sent.present,
            **({"refused": self._refused()} if self.sent.refused else {}),
            **({"notes": dict(self.notes)} if self.notes else {}),
            **({"kept": self.sent.kept} if self.sent.kept else {}),
            **({"reason": self.reason} if self.reason is not None else {}),
        }

    def _refused(self) -> list[JsonObject]:
        return [{"message": name, "reason": reason} for name, reason in self.sent.refusals]


@dataclass(slots=True)
class ImportReport:
    """An import as it goes on.

    Attributes:
        found: conversations in the files, and what cannot be read where some should be: all that follow together.
        imported: those of which something was new.
        already_there: those of which nothing was.
        incomplete: those that were begun and not brought to their end; a second import completes them.
        refused: those that are not imported, and other values beside them.
        refused_more: refusals that are counted and not told.
        passed_over: files without conversations.
    """

    found: int = 0
    imported: list[Row] = field(default_factory=list)
    already_there: list[Row] = field(default_factory=list)
    incomplete: list[Row] = field(default_factory=list)
    refused: list[Refusal] = field(default_factory=list)
    refused_more: int = 0
    passed_over: list[Unreadable] = field(default_factory=list)
    seconds: float = 0.0

    @classmethod
    def of(cls, catalog: Catalog) -> ImportReport:
        """Before anything is sent."""
        return cls(
            found=len(catalog.entries) + len(catalog.refusals) + catalog.refusals_more,
            refused=list(catalog.refusals),
            refused_more=catalog.refusals_more,
            passed_over=catalog.passed_over,
        )

    def add(self, row: Row) -> None:
        """A conversation has come to its end, or to where it stopped."""
        if row.reason is not None:
            self.incomplete.append(row)
        elif row.sent.is_new or row.sent.added:
            self.imported.append(row)
        else:
            self.already_there.append(row)

    @property
    def is_whole(self) -> bool:
        """Whether everything that is a conversation is there now."""
        is_refused = self.refused or self.refused_more or self.messages_refused
        return not (is_refused or self.incomplete or self.not_reached)

    @property
    def messages_refused(self) -> int:
        """Messages under whose id something else stands here."""
        return sum(row.sent.refused for row in self.rows)

    @property
    def done(self) -> int:
        """Conversations that were dealt with, one way or another."""
        refused = len(self.refused) + self.refused_more
        return len(self.imported) + len(self.already_there) + len(self.incomplete) + refused

    @property
    def not_reached(self) -> int:
        """Conversations that nothing was done about, since the import ended before."""
        return self.found - self.done

    @property
    def rows(self) -> list[Row]:
        """All that were begun."""
        return [*self.imported, *self.already_there, *self.incomplete]

    @property
    def notes(self) -> Counter[str]:
        """All notes, counted."""
        return sum((row.notes for row in self.rows), Counter())

    def counts(self) -> dict[str, JsonObject]:
        """Conversations and messages."""
        return {
            "conversations": {
                "found": self.found,
                "imported": len(self.imported),
                "already_there": len(self.already_there),
                "incomplete": len(self.incomplete),
                "refused": len(self.refused) + self.refused_more,
                "not_reached": self.not_reached,
            },
            "messages": {
                "added": sum(row.sent.added for row in self.rows),
                "already_there": sum(row.sent.present for row in self.rows),
                "refused": self.messages_refused,
            },
        }

    def to_json(self) -> str:
        """One line."""
        refused = [
            {name: value for name, value in told.items() if value is not None}
            for told in (
                {"file": each.file, "place": each.place, "source": each.source, "reason": each.reason}
                for each in self.refused
            )
        ]
        fields: JsonObject = {
            **self.counts(),
            "notes": dict(self.notes),
            "seconds": round(self.seconds, 3),
            "imported": [row.to_json() for row in self.imported],
            "already_there": [row.to_json() for row in self.already_there],
            "incomplete": [row.to_json() for row in self.incomplete],
            "refused": refused,
            "passed_over": [{"file": each.name, "reason": each.reason} for each in self.passed_over],
        }
        return json.dumps(fields, ensure_ascii=False)
