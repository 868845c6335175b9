"""Tool calls and their results, along a path: a provider refuses a whole conversation for half of one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator

from msgspec import UNSET

from threadkeep.domain.json_values import read_text
from threadkeep.domain.model import Message
from threadkeep.domain.ops import kind


class Pairs:
    """How the messages of a path belong together, as far as it was looked at: they are told one by one, newest first.

    An id stands for the nearest call before the result: some models count anew in every answer. Of a message that
    comes without its parts it is taken that a tool's answers the model's before it, and that a model's made all calls
    that are answered after it. Each message is looked at once, however many there are.

    Attributes:
        calls: of a message with results (ids), those with the calls that it answers.
        results: of a message with calls, those that answer them.
        open: messages with a result whose call was not seen yet, and how many results.
    """

    def __init__(self, newest_first: Iterable[Message] = ()) -> None:
        self.calls: dict[str, set[str]] = {}
        self.results: dict[str, set[str]] = {}
        self.open: Counter[str] = Counter()
        # Messages, one for each result that waits: for the next call of its id; only for a model's message without
        # its parts, since the next call of the id is another result's; for the model's next message, whatever it says.
        self._for_call: dict[str, str] = {}
        self._for_opaque: list[str] = []
        self._for_model: list[str] = []
        for message in newest_first:
            self.add(message)

    @property
    def links(self) -> set[tuple[str, str]]:
        """Ids, of a message with a call and of the one with its result."""
        return {(call, result) for result, calls in self.calls.items() for call in calls}

    def add(self, message: Message) -> None:
        """The next older message."""
        if message.parts is UNSET and message.role == "tool":
            self._for_model.append(message.id)
            self.open[message.id] += 1
            return
        self._add_parts(message)
        if message.role == "assistant":
            self._answer(message.id, self._for_model)
            if message.parts is UNSET:
                self._answer(message.id, self._for_opaque)
                self._answer(message.id, list(self._for_call.values()))
                self._for_call.clear()

    def gather(self, message: str, found: set[str]) -> list[str]:
        """Put the message, and all that belongs together with it, into ``found``; what was not there yet."""
        fresh = [] if message in found else [message]
        found.update(fresh)
        for one in fresh:  # which grows
            for other in (*self.calls.get(one, ()), *self.results.get(one, ())):
                if other not in found:
                    found.add(other)
                    fresh.append(other)
        return fresh

    def groups(self) -> Iterator[list[str]]:
        """Messages that belong together, each with some other or `open`."""
        found: set[str] = set()
        for message in (*self.calls, *self.open):
            if group := self.gather(message, found):
                yield group

    def calls_of(self, message: str) -> set[str]:
        """The messages whose calls that one answers; with those that they answer in turn."""
        found: set[str] = set()
        asked = [message]
        for one in asked:  # which grows
            fresh = self.calls.get(one, set()) - found
            found |= fresh
            asked += fresh
        return found

    def unanswerable(self, kept: Collection[str]) -> set[str]:
        """Those of the kept messages with a result whose call is known, and not kept."""
        return {result for result, calls in self.calls.items() if result in kept and any(c not in kept for c in calls)}

    def _add_parts(self, message: Message) -> None:
        called: set[str] = set()
        unanswered: set[str] = set()
        waits: set[str] = set()
        for part_kind, call_id in _tool_parts(message):
            if part_kind == "tool_call":
                called.add(call_id)
                unanswered.add(call_id)
            elif call_id in unanswered:
                unanswered.remove(call_id)
            elif call_id in called or call_id in waits:
                self._for_opaque.append(message.id)
                self.open[message.id] += 1
            else:
                waits.add(call_id)
        for call_id in called | waits:
            if (result := self._for_call.pop(call_id, None)) is None:
                continue
            if call_id in unanswered:
                self._answer(message.id, [result])
            else:
                self._for_opaque.append(result)
        for call_id in waits:
            self._for_call[call_id] = message.id
            self.open[message.id] += 1

    def _answer(self, call: str, results: list[str]) -> None:
        """They wait no longer: that message has their call."""
        for result in results:
            if result != call:
                self.calls.setdefault(result, set()).add(call)
                self.results.setdefault(call, set()).add(result)
            self.open[result] -= 1
            if not self.open[result]:
                del self.open[result]
        results.clear()


def _tool_parts(message: Message) -> Iterator[tuple[str, str]]:
    for part in () if message.parts is UNSET else message.parts:
        if (part_kind := kind(part)) in {"tool_call", "tool_result"}:
            yield part_kind, read_text(part.get("call_id")) or ""
