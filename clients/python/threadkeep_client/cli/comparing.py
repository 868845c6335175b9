"""Comparing what was sent with what came back, code point for code point."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from threadkeep_client.wire import Message, Role, text_of


@dataclass(frozen=True, slots=True)
class Sent:
    """A message as it was sent; `branch` if the conversation does not go on from it."""

    id: str
    parent: str | None
    role: Role
    text: str
    model: str | None
    branch: bool = False


def compare_text(sent: str, found: str) -> str | None:
    """Where two texts differ; None where they do not. Tells places and lengths, never what is written there."""
    if sent == found:
        return None
    place = next((at for at, (one, other) in enumerate(zip(sent, found, strict=False)) if one != other), None)
    if place is None:
        return f"{len(found):,} code points in place of {len(sent):,}"
    return f"differs from code point {place:,} on"


def compare_message(sent: Sent, found: Message) -> Iterator[str]:
    """What differs between a message and what was sent of it."""
    expected = {"parent": sent.parent, "role": sent.role, "model": sent.model, "status": "complete"}
    for name, value in expected.items():
        if found.get(name) != value:
            yield f"{sent.id}: {name} is another"
    others = [part.get("type") for part in found["parts"] if part.get("type") != "text"]
    if others:
        yield f"{sent.id}: parts of other types came too"
    difference = compare_text(sent.text, text_of(found["parts"]))
    if difference is not None:
        yield f"{sent.id}: its text {difference}"


def compare_messages(where: str, sent: Iterable[Sent], found: Iterable[Message]) -> Iterator[str]:
    """What differs between the messages sent and those read: missing, unexpected, doubled, out of order, changed."""
    expected = {message.id: message for message in sent}
    found = list(found)
    ids = [message["id"] for message in found]
    if ids != sorted(set(ids)):
        yield f"{where}: messages come twice or out of order"
    for missing in expected.keys() - set(ids):
        yield f"{where}: {missing} is missing"
    for message in found:
        if message["id"] in expected:
            for difference in compare_message(expected[message["id"]], message):
                yield f"{where}: {difference}"
        else:
            yield f"{where}: {message['id']} was never sent"
