"""Sending a conversation: its head, then its messages in id order, each once its parent is durable.

What is there already is met, not doubled, so an import that was cut off is completed by the next one.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Final, cast

from threadkeep_client.client import Client
from threadkeep_client.errors import ClosedError, ConflictError, NotFoundError
from threadkeep_client.importing.building import CURRENT, NEWEST, Built, Message
from threadkeep_client.importing.draft import RefusedError
from threadkeep_client.reading import read_path
from threadkeep_client.uploading import fits_frame, upload_parts
from threadkeep_client.wire import Conversation, Frame, JsonObject, Part

_TAKEN: Final = (
    "its id is another user's here, or that of a conversation that was deleted: `--new-ids` imports it under another"
)


@dataclass(slots=True)
class Sent:
    """How far a conversation came; counts go on while it is sent.

    Attributes:
        is_begun: whether there is a conversation.
        is_new: whether the conversation was not there before.
        added: messages that were not there before.
        present: messages that were.
        differing: of these, those that say something else than the export; they stay as they are.
    """

    is_begun: bool = False
    is_new: bool = False
    added: int = 0
    present: int = 0
    differing: int = 0


async def send(client: Client, built: Built, sent: Sent) -> None:
    """Send a conversation.

    Args:
        client: with a token of scope `chat produce`.
        built: the conversation; its notes count `files_missing`, files that messages name and that are not here.
        sent: how far it comes is told here, also where it does not come to its end.

    Raises:
        RefusedError: Its id is not to be had.
        ThreadkeepError: As any request; everything that `sent` counts is durable.
    """
    head = await _send_head(client, built)
    sent.is_begun = True
    sent.is_new = "duplicate" not in head
    sender = _Sender(client, built.id, built.notes)
    if not sent.is_new and any(_has_end(message) for message in built.messages):
        # A message with an end goes by `stream.close`, whose answer does not tell whether it had been there.
        async for known in read_path(client.connection, built.id, "all"):
            sender.known.add(known["id"])
    before: str | None = None
    for message in built.messages:
        match await sender.send(message, fork=message.parent != before):
            case "added":
                sent.added += 1
            case "present":
                sent.present += 1
            case "differs":
                sent.present += 1
                sent.differing += 1
        before = message.id
    await _move_current(client, built, head["conversation"], sent)


async def _send_head(client: Client, built: Built) -> Frame:
    fields: JsonObject = {"title": built.title, "metadata": built.metadata, "retention_days": built.retention_days}
    given = {name: value for name, value in fields.items() if value is not None}
    try:
        return await client.connection.request("conversation.create", conversation=built.id, **given)
    except NotFoundError as error:
        raise RefusedError(_TAKEN) from error
    except ConflictError as error:
        if error.reason != "id_taken":
            raise
        raise RefusedError(_TAKEN) from error


async def _move_current(client: Client, built: Built, head: Conversation, sent: Sent) -> None:
    """A later export of the same conversation may have been left at another message."""
    if sent.is_new or not sent.added or built.form == "threadkeep":
        return
    wanted = {name: built.metadata[name] for name in (CURRENT, NEWEST) if name in built.metadata}
    moved = {name: value for name, value in head["metadata"].items() if name not in {CURRENT, NEWEST}} | wanted
    if moved != head["metadata"]:
        await client.update_conversation(built.id, metadata=moved)


def _has_end(message: Message) -> bool:
    """Whether it says what `message.create` has no field for."""
    return message.usage is not None or message.error is not None


class _Sender:
    """Sends the messages of one conversation."""

    def __init__(self, client: Client, conversation: str, notes: Counter[str]) -> None:
        self.known: set[str] = set()
        self._connection = client.connection
        self._conversation = conversation
        self._notes = notes

    async def send(self, message: Message, *, fork: bool) -> str:
        """Send one: `added`, `present`, or `differs` where something else goes by its id."""
        if message.id in self.known:
            return "present"
        try:
            return await self._send(message, message.parts, fork=fork)
        except ConflictError as error:
            if error.reason != "upload_missing" or not any(part.get("type") == "blob" for part in message.parts):
                raise
        # The file stayed where the export comes from. What is known of it is kept.
        self._notes["files_missing"] += sum(part.get("type") == "blob" for part in message.parts)
        return await self._send(message, [_without_file(part) for part in message.parts], fork=fork)

    async def _send(self, message: Message, parts: list[Part], *, fork: bool) -> str:
        fields: JsonObject = {
            "conversation": self._conversation,
            "parent": message.parent,
            "role": message.role,
            "status": message.status,
            "metadata": message.metadata,
            **({} if message.model is None else {"model": message.model}),
        }
        if _has_end(message):
            return await self._close(message, parts, fields)
        try:
            # With its `status` it asks nobody for the answer that `reply` names.
            fields |= {} if message.reply is None else {"reply": message.reply}
            return await self._create(message, parts, fields | {"fork": fork})
        except ConflictError as error:
            if error.reason == "id_taken":
                return "differs"
            if error.reason != "stale_leaf" or fork:
                raise
        # The conversation went on here since the last import: what the export adds is a branch.
        return await self._create(message, parts, fields | {"fork": True})

    async def _create(self, message: Message, parts: list[Part], fields: JsonObject) -> str:
        fields = await self._with_parts("parts", parts, fields | {"message": message.id})
        reply = await self._connection.request("message.create", **fields)
        return "present" if reply.get("duplicate") is True else "added"

    async def _close(self, message: Message, parts: list[Part], fields: JsonObject) -> str:
        """Keep it as an answer whose stream nobody knows: only a close takes `usage` and `error`."""
        fields |= {"stream": message.id, "epoch": 1, "offset": 0}
        fields |= {} if message.usage is None else {"usage": message.usage}
        fields |= {} if message.error is None else {"error": message.error}
        fields = await self._with_parts("body", parts, fields)
        try:
            await self._connection.request("stream.close", **fields)
        except ClosedError:
            return "differs"
        return "added"

    async def _with_parts(self, name: str, parts: list[Part], fields: JsonObject) -> JsonObject:
        whole = fields | {name: parts}
        if fits_frame(whole):
            return whole
        return fields | {name: await upload_parts(self._connection, self._conversation, parts)}


def _without_file(part: Part) -> Part:
    if part.get("type") != "blob":
        return part
    return cast("Part", {"type": "data", "kind": "blob", "value": part})
