"""Tool calls and their results, along a path: a provider refuses a whole conversation for half of one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec
from msgspec import UNSET

from threadkeep.domain.json_values import read_text
from threadkeep.domain.model import Message
from threadkeep.domain.ops import kind


class Pairs(msgspec.Struct, frozen=True):
    """How the messages of a stretch of a path belong together.

    Attributes:
        links: ids, of a message with a call and of the one with its result.
        open: messages (ids) with a result whose call lies in none of them.
    """

    links: tuple[tuple[str, str], ...]
    open: frozenset[str]

    @classmethod
    def of(cls, newest_first: Sequence[Message]) -> Pairs:
        """Find them.

        An id stands for the nearest call before the result: some models count anew in every answer. Of a message that
        comes without its parts it is taken that a tool's answers the model's before it, and that a model's made all
        calls that are answered after it.
        """
        calls: dict[str, str] = {}
        links: list[tuple[str, str]] = []
        unanswered: set[str] = set()
        asked = opaque = None  # the model's last message, and its last one without parts
        for message in reversed(newest_first):
            if message.parts is UNSET and message.role == "tool":
                links += [(asked, message.id)] if asked else []
                unanswered |= set() if asked else {message.id}
                continue
            for part_kind, call_id in _tool_parts(message):
                if part_kind == "tool_call":
                    calls[call_id] = message.id
                elif caller := calls.pop(call_id, opaque):
                    links.append((caller, message.id))
                else:
                    unanswered.add(message.id)
            if message.role == "assistant":
                asked = message.id
                if message.parts is UNSET:
                    opaque, calls = message.id, {}
        return cls(tuple(links), frozenset(unanswered))

    def calls_of(self, message: str) -> frozenset[str]:
        """The messages whose calls that one answers; with those that they answer in turn."""
        found: frozenset[str] = frozenset()
        while more := {call for call, result in self.links if result in found | {message}} - found:
            found |= more
        return found

    def unanswerable(self, kept: frozenset[str]) -> frozenset[str]:
        """Those of the kept messages with a result whose call is in the stretch, and not kept."""
        return frozenset(result for call, result in self.links if result in kept and call not in kept)

    def torn(self, kept: frozenset[str], *, is_whole: bool) -> frozenset[str]:
        """Those of the kept messages that hold half of a pair whose other half is not kept, or belong to such a one.

        ``is_whole``: the stretch goes up to the path's root, so an open result has no call anywhere, and may stay.
        """
        torn = frozenset() if is_whole else self.open & kept
        while True:
            missing = [pair for pair in self.links if not set(pair) <= kept - torn]
            more = frozenset(half for pair in missing for half in pair) & (kept - torn)
            if not more:
                return torn
            torn |= more


def _tool_parts(message: Message) -> Iterator[tuple[str, str]]:
    for part in () if message.parts is UNSET else message.parts:
        if (part_kind := kind(part)) in {"tool_call", "tool_result"}:
            yield part_kind, read_text(part.get("call_id")) or ""
