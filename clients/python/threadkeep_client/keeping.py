"""What is done with what is kept: reading a context, files, exports, and the end of a conversation."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, NotRequired, TypedDict, cast

from threadkeep_client.connection import Connection
from threadkeep_client.wire import JsonObject, Message

ExportFormat = Literal["jsonl", "chatgpt", "markdown"]


class Export(TypedDict):
    """An export of conversations; `url` is there once it is `done`, and `error`, a code, where it has `failed`."""

    id: str
    state: Literal["running", "done", "failed"]
    format: ExportFormat
    created_at: str
    expires_at: str
    conversation: NotRequired[str]
    conversations: NotRequired[int]
    messages: NotRequired[int]
    bytes: NotRequired[int]
    skipped: NotRequired[int]
    url: NotRequired[str]
    url_expires_at: NotRequired[str]
    error: NotRequired[str]


class Erasure(TypedDict):
    """The end of a conversation: a line for every store of every region, and what stays for a while by nature."""

    id: str
    conversation: str
    reason: Literal["owner", "produce", "retention"]
    state: Literal["running", "done"]
    requested_at: str
    lines: list[JsonObject]
    stays: list[JsonObject]


class Download(TypedDict):
    """Where a file lies, until when."""

    url: str
    expires_at: str


@dataclass(frozen=True, slots=True)
class Context:
    """The end of a path, for a model: `for message in context.messages`.

    Attributes:
        messages: oldest first, each with `role`, `parts`, `tokens` and what else a message has; those larger than a
            frame come without `parts`: see `Client.whole`.
        truncated: whether the path goes on towards the root, or something was left out.
        cursor: where older messages go on; None at the root.
        tier: the coldest that was read.
        damaged: stretches of the history that no region can give just now: `first`, `last`, `count`.
        incomplete: whether it ends before a message that has not come here from another region yet.
    """

    messages: list[Message]
    truncated: bool
    cursor: str | None
    tier: str
    damaged: list[JsonObject] = field(default_factory=list)
    incomplete: bool = False


class KeepingMethods:
    """The part of `Client` that deals with what is kept. Every method raises the errors of `Connection.request`."""

    connection: Connection

    async def read_context(
        self,
        conversation: str,
        *,
        leaf: str | None = None,
        max_messages: int | None = None,
        max_tokens: int | None = None,
        cursor: str | None = None,
    ) -> Context:
        """The newest messages of the path to a leaf, within bounds of count and of estimated tokens.

        Args:
            conversation: its id.
            leaf: where the path ends (absent: the present leaf); scope `produce` has to say it, else `bad_request`.
            max_messages: at most so many.
            max_tokens: at most so many tokens in all; the newest message comes in any case.
            cursor: of a page before.
        """
        reply = await self.connection.request(
            "context.read",
            conversation=conversation,
            **given(leaf=leaf, max_messages=max_messages, max_tokens=max_tokens, cursor=cursor),
        )
        return Context(
            messages=reply["messages"],
            truncated=reply.get("truncated") is True,
            cursor=reply.get("cursor"),
            tier=reply.get("tier", ""),
            damaged=reply.get("damaged") or [],
            incomplete=reply.get("incomplete") is True,
        )

    async def get_blob(self, conversation: str, blob: str) -> Download:
        """Where to download a file that the conversation's messages name by that `ref`."""
        reply = await self.connection.request("blob.get", conversation=conversation, blob=blob)
        return cast("Download", reply["download"])

    async def create_export(self, conversation: str | None = None, *, form: ExportFormat = "jsonl") -> Export:
        """Begin an export of one conversation, or of all that are the user's. Repeated, it may begin another one."""
        reply = await self.connection.request("export.create", format=form, **given(conversation=conversation))
        return cast("Export", reply["export"])

    async def get_export(self, export: str) -> Export:
        """How far an export is; once it is `done`, with the link to its file."""
        return cast("Export", (await self.connection.request("export.get", export=export))["export"])

    async def delete_conversation(self, conversation: str) -> Erasure:
        """Delete a conversation for good: from now on it is `not_found`, and it is erased from every store."""
        reply = await self.connection.request("conversation.delete", conversation=conversation)
        return cast("Erasure", reply["erasure"])

    async def get_erasure(self, erasure: str) -> Erasure:
        """How far the erasure of a conversation is; it goes by the conversation's id."""
        return cast("Erasure", (await self.connection.request("erasure.get", erasure=erasure))["erasure"])


def given(**fields: object) -> JsonObject:
    """The fields that are not None."""
    return {name: value for name, value in fields.items() if value is not None}
