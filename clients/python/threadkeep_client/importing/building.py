"""From a draft to what is sent: ids, times and parents as the protocol wants them.

Ids are UUIDv7 of the time that the export tells, and of a digest of whose import it is and what is imported. So the
same file imported again meets its own messages, and two users may import the same one.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Self

from threadkeep_client.frames import clean
from threadkeep_client.ids import id_at, time_ms
from threadkeep_client.importing.draft import Content, Draft, Form, Node, RefusedError
from threadkeep_client.importing.tree import sound
from threadkeep_client.wire import JsonObject

FLAGS: Final = ("orphans", "rings_cut", "current_node_missing", "roles_unknown", "halves_replaced", "texts_differ")
"""Notes that a conversation keeps, in `metadata.imported.flags`: it is not what its export said."""
CURRENT: Final = "current_node"
"""Of a conversation's metadata: the message at which its reader left it, where that is not the newest."""
NEWEST: Final = "newest_imported"
"""Beside it: the newest message of the import. Once a newer one stands there, its reader is elsewhere."""


@dataclass(frozen=True, slots=True)
class Identity:
    """Whose import it is."""

    tenant: str
    user: str

    @classmethod
    def from_token(cls, token: str) -> Self | None:
        """As a JWT says it, unverified: the service verifies it. None where there is nothing to read."""
        claims = claims_of(token)
        tenant, user = claims.get("tenant"), claims.get("sub")
        return cls(tenant, user) if isinstance(tenant, str) and isinstance(user, str) else None


def claims_of(token: str) -> JsonObject:
    """The claims of a JWT, unverified; none where it is no JWT."""
    try:
        payload = token.split(".")[1]
        claims: Any = json.loads(base64.urlsafe_b64decode(payload + "=" * (-len(payload) % 4)))
    except (IndexError, ValueError, binascii.Error):
        return {}
    return claims if isinstance(claims, dict) else {}


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """A message to be sent.

    Attributes:
        parent: its parent's id here.
        reply: as the protocol has it.
        node: its place in the export, by which `Built.content_of` reads what it says.
    """

    id: str
    parent: str | None
    reply: str | None
    node: Node = field(compare=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Built:
    """A conversation to be sent.

    Attributes:
        source: its id in the export.
        current: the message at which its reader left it; None where the export does not say.
        messages: in id order, so parents first.
        content_of: reads what the message of a node says; `RefusedError` where the file has changed meanwhile.
        notes: what was repaired or left out, by kind.
    """

    form: Form
    source: str
    id: str
    title: str | None
    metadata: JsonObject
    retention_days: int | None
    current: str | None
    messages: Sequence[Message]
    content_of: Callable[[Node], Content] = field(compare=False)
    notes: Counter[str]


def build(draft: Draft, identity: Identity, *, now_ms: int, salt: str = "") -> Built:
    """Give ids and times.

    Args:
        draft: what was read.
        identity: whose import it is.
        now_ms: the present; what lies after it is no time at which anything was written.
        salt: makes other ids than any import before, also where the draft has ids of its own.

    Raises:
        RefusedError: It holds no message.
    """
    ordered, nearest = sound(draft.nodes, draft.notes)
    if not ordered and not draft.keeps_ids:
        raise RefusedError("holds no messages")
    minted = _Ids(draft, identity, now_ms=now_ms, salt=salt).mint(ordered)
    current = _current(draft, nearest, minted.messages)
    metadata = _metadata(draft, minted.messages, current)
    messages = [_message(node, above, minted, draft.notes) for node, above in ordered]
    return Built(
        form=draft.form,
        source=draft.source,
        id=minted.conversation,
        title=draft.title,
        metadata=metadata,
        retention_days=draft.retention_days,
        current=current,
        messages=sorted(messages, key=lambda message: message.id),
        content_of=draft.content_of,
        notes=+draft.notes,
    )


@dataclass(frozen=True, slots=True)
class _Minted:
    conversation: str
    messages: dict[str, str]
    are_kept: bool = False


class _Ids:
    """Mints the ids of one conversation."""

    def __init__(self, draft: Draft, identity: Identity, *, now_ms: int, salt: str) -> None:
        self._draft = draft
        self._now_ms = now_ms
        self._names = ("threadkeep import 1", salt, identity.tenant, identity.user, draft.source)
        self._keeps = draft.keeps_ids and not salt

    def mint(self, ordered: list[tuple[Node, str | None]]) -> _Minted:
        """Ids of the conversation and of its messages, by their ids in the export; each greater than its parent's."""
        if self._keeps:
            return _Minted(self._draft.source, {node.source: node.source for node, _ in ordered}, are_kept=True)
        known = [at for node, _ in ordered if (at := self._time_of(node)) is not None]
        created = self._past(self._draft.created_ms) or min(known, default=1)
        ids: dict[str, str] = {}
        times: dict[str, int] = {}
        for node, above in ordered:
            at = self._time_of(node)
            if at is None:
                at = created if above is None else times[above]
                self._draft.notes["times_missing"] += 1
            # An id that is greater than its parent's for certain has a later time, if only by a millisecond.
            times[node.source] = at if above is None else max(at, times[above] + 1)
            ids[node.source] = id_at(times[node.source], self._digest("message", node.source))
        return _Minted(id_at(created, self._digest("conversation")), ids)

    def _time_of(self, node: Node) -> int | None:
        if self._draft.keeps_ids:
            return time_ms(node.source)
        return self._past(node.time_ms)

    def _past(self, at: int | None) -> int | None:
        return at if at is not None and at <= self._now_ms else None

    def _digest(self, *names: str) -> bytes:
        digest = hashlib.sha256()
        for name in (*self._names, *names):
            data = clean(name).encode()
            digest.update(len(data).to_bytes(8) + data)
        return digest.digest()


def _current(draft: Draft, nearest: dict[str, str | None], ids: dict[str, str]) -> str | None:
    if draft.current is None:
        return None
    if draft.current not in nearest:
        draft.notes["current_node_missing"] += 1
        return None
    message = nearest[draft.current]
    return None if message is None else ids[message]


def _metadata(draft: Draft, ids: dict[str, str], current: str | None) -> JsonObject:
    metadata = dict(draft.metadata)
    for name in (CURRENT, NEWEST):
        named = metadata.get(name)
        if isinstance(named, str) and named in ids:
            metadata[name] = ids[named]
    if draft.keeps_ids:
        return metadata
    flags = [name for name in FLAGS if draft.notes[name]]
    if flags:
        metadata["imported"] = {**metadata["imported"], "flags": flags}
    # The present leaf is the newest message; where its reader left it elsewhere, that is told here.
    if current is not None and current != max(ids.values()):
        metadata |= {CURRENT: current, NEWEST: max(ids.values())}
    return metadata


def _message(node: Node, above: str | None, minted: _Minted, notes: Counter[str]) -> Message:
    ids = minted.messages
    reply = ids.get(node.reply or "", node.reply if minted.are_kept else None)
    # `message.create` alone takes it, and that takes neither `usage` nor `error`.
    if node.has_end:
        reply = None
    if node.reply is not None and reply is None:
        notes["replies_dropped"] += 1
    return Message(id=ids[node.source], parent=None if above is None else ids[above], reply=reply, node=node)
