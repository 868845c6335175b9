"""Sending a conversation: its head, then its messages in id order, each once its parent is durable.

What is there already is met, not doubled, so an import that was cut off is completed by the next one.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from threadkeep_client.client import Client
from threadkeep_client.errors import ClosedError, ConflictError, NotFoundError
from threadkeep_client.importing.building import CURRENT, NEWEST, Built, Message
from threadkeep_client.importing.draft import Content, RefusedError, refusal_of
from threadkeep_client.importing.meeting import differences, head_differences, why_refused, without_file
from threadkeep_client.reading import read_page, read_path, with_parts
from threadkeep_client.uploading import fits_frame, upload_parts
from threadkeep_client.wire import Conversation, Frame, JsonObject, Part

_TAKEN: Final = (
    "its id is another user's here, or that of a conversation that was deleted: `--new-ids` imports it under another"
)


REFUSALS_MAX: Final = 100
"""How many messages of one conversation are told word for word; more are counted."""


@dataclass(slots=True)
class Sent:
    """How far a conversation came; counts go on while it is sent.

    Attributes:
        is_begun: whether there is a conversation.
        is_new: whether the conversation was not there before.
        added: messages that were not there before.
        present: messages that were, and say the same.
        refused: messages under whose id something else stands, which stays as it is.
        refusals: the first of these: the message's id in the export, and why.
        kept: what of the conversation itself says something else here, and stays; nothing where all is the same.
    """

    is_begun: bool = False
    is_new: bool = False
    added: int = 0
    present: int = 0
    refused: int = 0
    refusals: list[tuple[str, str]] = field(default_factory=list)
    kept: str = ""

    def count(self, message: Message, reason: str | None, *, is_new: bool) -> None:
        """What came of a message; a reason where it was refused."""
        if reason is None:
            self.added += is_new
            self.present += not is_new
            return
        self.refused += 1
        if len(self.refusals) < REFUSALS_MAX:
            self.refusals.append((message.node.source, reason))


async def send(client: Client, built: Built, sent: Sent) -> None:
    """Send a conversation.

    Args:
        client: with a token of scope `chat produce`.
        built: the conversation; its notes count `files_missing`, files that messages name and that are not here, and
            `heads_kept`.
        sent: how far it comes is told here, also where it does not come to its end.

    Raises:
        RefusedError: Its id is not to be had, or its file has changed meanwhile.
        ThreadkeepError: As any request; everything that `sent` counts is durable.
    """
    head = await _send_head(client, built)
    sent.is_begun = True
    sent.is_new = "duplicate" not in head
    if not sent.is_new:
        sent.kept = head_differences(head["conversation"], built)
    if sent.kept:
        built.notes["heads_kept"] += 1
    sender = _Sender(client, built)
    if not sent.is_new:
        await sender.meet()
    before: str | None = None
    for message in built.messages:
        await sender.send(message, sent, fork=message.parent != before)
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


class _Sender:
    """Sends the messages of one conversation, each read when its turn comes."""

    def __init__(self, client: Client, built: Built) -> None:
        self._connection = client.connection
        self._built = built
        self._met: dict[str, str | None] = {}

    async def meet(self) -> None:
        """Look at what stands here already of the messages with an end.

        These go by `stream.close`, whose answer does not tell whether the message had been there.
        """
        ended = {message.id: message for message in self._built.messages if message.node.has_end}
        if not ended:
            return
        async for stored in read_path(self._connection, self._built.id, "all"):
            message = ended.get(stored["id"])
            if message is not None:
                whole = await with_parts(self._connection, stored)
                self._met[message.id] = why_refused(differences(whole, message, self._content(message)), message)

    async def send(self, message: Message, sent: Sent, *, fork: bool) -> None:
        """Send one, and count what came of it."""
        if message.id in self._met:
            sent.count(message, self._met[message.id], is_new=False)
            return
        content = self._content(message)
        try:
            is_new = await self._send(message, content, content.parts, fork=fork)
        except ConflictError as error:
            files = sum(part.get("type") == "blob" for part in content.parts)
            if error.reason != "upload_missing" or not files:
                raise
            # The file stayed where the export comes from. What is known of it is kept.
            self._built.notes["files_missing"] += files
            is_new = await self._send(message, content, [without_file(part) for part in content.parts], fork=fork)
        reason = await self._why_refused(message, content) if is_new is None else None
        sent.count(message, reason, is_new=is_new is True)

    def _content(self, message: Message) -> Content:
        try:
            return self._built.content_of(message.node)
        except Exception as error:
            raise RefusedError(refusal_of(error)) from error

    async def _why_refused(self, message: Message, content: Content) -> str:
        page = await read_page(self._connection, self._built.id, message.id, epoch=0, offset=0)
        found: list[str] = []
        if page.message is not None:
            found = differences(await with_parts(self._connection, page.message), message, content)
        return why_refused(found or ["its content is another"], message) or ""

    async def _send(self, message: Message, content: Content, parts: list[Part], *, fork: bool) -> bool | None:
        """Whether it is new; None where something else stands under its id."""
        fields: JsonObject = {
            "conversation": self._built.id,
            "parent": message.parent,
            "role": content.role,
            "status": content.status,
            "metadata": content.metadata,
            **({} if content.model is None else {"model": content.model}),
        }
        if message.node.has_end:
            return await self._close(message, content, parts, fields)
        try:
            # With its `status` it asks nobody for the answer that `reply` names.
            fields |= {} if message.reply is None else {"reply": message.reply}
            return await self._create(message, parts, fields | {"fork": fork})
        except ConflictError as error:
            if error.reason == "id_taken":
                return None
            if error.reason != "stale_leaf" or fork:
                raise
        # The conversation went on here since the last import: what the export adds is a branch.
        return await self._create(message, parts, fields | {"fork": True})

    async def _create(self, message: Message, parts: list[Part], fields: JsonObject) -> bool:
        fields = await self._with_parts("parts", parts, fields | {"message": message.id})
        reply = await self._connection.request("message.create", **fields)
        return reply.get("duplicate") is not True

    async def _close(self, message: Message, content: Content, parts: list[Part], fields: JsonObject) -> bool | None:
        """Keep it as an answer whose stream nobody knows: only a close takes `usage` and `error`."""
        fields |= {"stream": message.id, "epoch": 1, "offset": 0}
        fields |= {} if content.usage is None else {"usage": content.usage}
        fields |= {} if content.error is None else {"error": content.error}
        fields = await self._with_parts("body", parts, fields)
        try:
            await self._connection.request("stream.close", **fields)
        except ClosedError:
            return None
        return True

    async def _with_parts(self, name: str, parts: list[Part], fields: JsonObject) -> JsonObject:
        whole = fields | {name: parts}
        if fits_frame(whole):
            return whole
        return fields | {name: await upload_parts(self._connection, self._built.id, parts)}
