"""The client: a connection, and a typed method for each action of the protocol."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Any, Final, Self, cast

from threadkeep_client.cancelling import cancel
from threadkeep_client.connection import Connection, Observer
from threadkeep_client.ids import new_id
from threadkeep_client.keeping import KeepingMethods, given
from threadkeep_client.patience import ConnectionSettings
from threadkeep_client.producer import Producer
from threadkeep_client.reading import read_path, with_parts
from threadkeep_client.regions import Regions
from threadkeep_client.tokens import TokenSource
from threadkeep_client.updates import ViewerSettings
from threadkeep_client.uploading import fits_frame, upload, upload_parts
from threadkeep_client.viewer import Viewer
from threadkeep_client.wire import Conversation, JsonObject, Message, Part, Role, Status
from threadkeep_client.writing import ProducerSettings

_UNSET: Final[Any] = object()


@dataclass(frozen=True, slots=True)
class ConversationPage:
    """A page of conversations.

    Attributes:
        items: newest activity first, each `{id, owner, title?, metadata, retention_days?, created_at, active_at}`.
        cursor: gives the next page; None at the end.
    """

    items: list[Conversation]
    cursor: str | None


@dataclass(frozen=True, slots=True)
class MessagePage:
    """Messages; `cursor` is None at the end, `tier` says where they came from (`hot`, `warm`, `cold`).

    `damaged` tells of stretches that no region can give just now (`first`, `last`, `count`): they are not among the
    messages. `incomplete`: the page ends before a message that has not come here from another region yet; the cursor
    goes on with it.
    """

    messages: list[Message]
    cursor: str | None
    tier: str
    damaged: list[JsonObject] = field(default_factory=list)
    incomplete: bool = False


class Client(KeepingMethods):
    """A client of one deployment, for one user or one worker.

    Every method raises the errors of `Connection.request`. Ids are minted here where none are given, so that repeats
    are the same request.

    Args:
        url: `wss://…/{stage}`.
        token: a token, or a function (plain or async) that gives one.
        settings: of the connection.
        observe: told how long requests took.
    """

    def __init__(
        self,
        url: str,
        token: TokenSource,
        *,
        settings: ConnectionSettings | None = None,
        observe: Observer | None = None,
    ) -> None:
        self.connection = Connection(url, token, settings=settings, observe=observe)
        self.regions = Regions(self.connection)

    async def __aenter__(self) -> Self:
        """Connect.

        Raises:
            ConnectionFailedError: Nobody answers at the address.
            TokenRefusedError: The token was refused.
        """
        await self.connection.open()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.connection.close()

    async def ping(self) -> str:
        """The server's clock, RFC 3339."""
        return cast("str", (await self.connection.request("ping"))["now"])

    # --- conversations -----------------------------------------------------------------------------------------------

    async def create_conversation(
        self,
        conversation: str | None = None,
        *,
        title: str | None = None,
        metadata: JsonObject | None = None,
        retention_days: int | None = None,
    ) -> Conversation:
        """Create a conversation of the token's user."""
        reply = await self.connection.request(
            "conversation.create",
            conversation=conversation or new_id(),
            **given(title=title, metadata=metadata, retention_days=retention_days),
        )
        return cast("Conversation", reply["conversation"])

    async def get_conversation(self, conversation: str) -> Conversation:
        """Read a conversation's head."""
        reply = await self.connection.request("conversation.get", conversation=conversation)
        return cast("Conversation", reply["conversation"])

    async def update_conversation(
        self, conversation: str, *, title: str | None = _UNSET, metadata: JsonObject = _UNSET
    ) -> Conversation:
        """Change title or metadata as a whole; `title=None` takes it away, what is not given stays."""
        fields: JsonObject = {
            name: value for name, value in (("title", title), ("metadata", metadata)) if value is not _UNSET
        }
        reply = await self.connection.request("conversation.update", conversation=conversation, **fields)
        return cast("Conversation", reply["conversation"])

    async def list_conversations(self, *, limit: int = 50, cursor: str | None = None) -> ConversationPage:
        """The user's conversations, 1 to 100 a page, newest activity first."""
        reply = await self.connection.request("conversation.list", limit=limit, **given(cursor=cursor))
        return ConversationPage(items=reply["items"], cursor=reply.get("cursor"))

    # --- messages ----------------------------------------------------------------------------------------------------

    async def create_message(
        self,
        conversation: str,
        parts: list[Part] | str,
        *,
        parent: str | None,
        role: Role = "user",
        message: str | None = None,
        metadata: JsonObject | None = None,
        fork: bool = False,
        model: str | None = None,
        status: Status | None = None,
        reply: str | None = None,
    ) -> Message:
        """Store a message; it is durable on return. Parts that do not fit a frame are uploaded first.

        Args:
            conversation: its id.
            parts: or a text, which becomes one text part.
            parent: the present leaf, or with `fork` another message; None makes a root.
            role: `user` with scope `chat`, any with `produce`.
            message: its id, greater than the parent's; minted if absent.
            metadata: any JSON.
            fork: a branch is meant.
            model: with scope `produce`.
            status: with scope `produce`.
            reply: id of the answer wanted, minted by the caller.

        Raises:
            ConflictError: `stale_leaf`: the parent is not the leaf; `detail["leaf"]` is.
            TooLargeError: The parts take more than 8 MiB, or all else does not fit a frame of 24 KiB.
            UnavailableError: `upload`: the store did not take the parts.
        """
        said = [{"type": "text", "text": parts}] if isinstance(parts, str) else parts
        fields: JsonObject = {
            "conversation": conversation,
            "message": message or new_id(after=parent),
            "parent": parent,
            "role": role,
            "parts": said,
            **given(metadata=metadata, fork=fork or None, model=model, status=status, reply=reply),
        }
        if not fits_frame(fields):
            fields["parts"] = await upload_parts(self.connection, conversation, said)
        answer = await self.connection.request("message.create", **fields)
        return cast("Message", answer["message"])

    async def upload(self, conversation: str, content: bytes, *, media_type: str | None = None) -> str:
        """Upload at most 8 MiB for the conversation; the `ref` by which a message's part may name them.

        Raises:
            TooLargeError: There are more bytes than that.
            UnavailableError: `upload`: the store did not take them.
        """
        return await upload(self.connection, conversation, content, media_type=media_type)

    async def list_messages(
        self,
        conversation: str,
        *,
        leaf: str | None = None,
        before: str | None = None,
        after: str | None = None,
        limit: int = 50,
        cursor: str | None = None,
    ) -> MessagePage:
        """A page of the path to a leaf (absent: the present one), or of every branch (`leaf="all"`).

        Messages larger than a frame come without `parts`: see `whole`.
        """
        reply = await self.connection.request(
            "message.list",
            conversation=conversation,
            limit=limit,
            **given(leaf=leaf, before=before, after=after, cursor=cursor),
        )
        return MessagePage(
            messages=reply["messages"],
            cursor=reply.get("cursor"),
            tier=reply.get("tier", ""),
            damaged=reply.get("damaged") or [],
            incomplete=reply.get("incomplete") is True,
        )

    async def messages(
        self, conversation: str, *, leaf: str | None = None, after: str | None = None
    ) -> AsyncIterator[Message]:
        """All messages of the path to a leaf, or of every branch (`leaf="all"`), whole, newest first."""
        async for message in read_path(self.connection, conversation, leaf, after):
            yield await with_parts(self.connection, message)

    async def history(self, conversation: str, *, leaf: str | None = None) -> list[Message]:
        """All messages of the path to a leaf, or of every branch (`leaf="all"`), whole, in order."""
        found = [message async for message in self.messages(conversation, leaf=leaf)]
        return sorted(found, key=lambda message: message["id"])

    async def whole(self, message: Message) -> Message:
        """The message with its parts, read page by page where it came without them."""
        return await with_parts(self.connection, message)

    # --- answers -----------------------------------------------------------------------------------------------------

    async def respond(self, conversation: str, *, parent: str, reply: str, fork: bool = False) -> None:
        """Ask the deployment's responder for an answer; with the same ids it is asked again for the same one.

        Args:
            conversation: its id.
            parent: the message to be answered.
            reply: id of the answer, minted by the caller, greater than the parent's.
            fork: a branch is meant: another answer to the same message.

        Raises:
            ConflictError: `no_responder`: none is deployed, so a worker has to answer.
        """
        await self.connection.request(
            "message.respond", conversation=conversation, parent=parent, reply=reply, **given(fork=fork or None)
        )

    def produce(
        self,
        conversation: str,
        *,
        parent: str | None,
        message: str | None = None,
        role: Role = "assistant",
        model: str | None = None,
        metadata: JsonObject | None = None,
        fork: bool = False,
        settings: ProducerSettings | None = None,
    ) -> Producer:
        """Write an answer: `async with client.produce(…) as answer: await answer.text("…")`. See `Producer`."""
        return Producer(
            self.connection,
            conversation,
            message=message or new_id(after=parent),
            parent=parent,
            role=role,
            model=model,
            metadata=metadata,
            fork=fork,
            settings=settings,
            regions=self.regions,
        )

    async def cancel(self, conversation: str, *, stream: str | None = None) -> list[Message]:
        """Stop an answer (absent: all that are live), in whichever region it is streamed; it is kept as `stopped`.

        Returns:
            The stopped messages, as many as fit a frame of each region.

        Raises:
            UnavailableError: `away`: a region that streams one cannot be reached; the others' are stopped.
        """
        return await cancel(self.regions, conversation, stream)

    def watch(
        self,
        conversation: str,
        *,
        stream: str | None = None,
        since: str | None = None,
        settings: ViewerSettings | None = None,
    ) -> Viewer:
        """Watch a conversation, or one answer: `async with client.watch(…) as viewer: async for update in viewer`."""
        return Viewer(
            self.connection,
            conversation,
            stream=stream,
            since=since,
            settings=settings,
            regions=self.regions,
        )
