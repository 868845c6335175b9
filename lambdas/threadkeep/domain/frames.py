"""Frames to viewers, and the fitting of messages into frames (docs/protocol.md, sections 4 and 6)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final

from msgspec import Raw

from threadkeep.domain.archive import Damaged
from threadkeep.domain.bounds import FRAME_BYTES_MAX
from threadkeep.domain.json_values import encode
from threadkeep.domain.model import Conversation, Message, Role

ENVELOPE_BYTES: Final = 2 * 1024
"""Room for what stands around a message in a frame: type, a `ref` of 256 characters, cursor, ids."""
MESSAGE_BYTES_MAX: Final = FRAME_BYTES_MAX - ENVELOPE_BYTES


def fit(message: Message, bytes_max: int = MESSAGE_BYTES_MAX) -> Raw:
    """The message as JSON; without its parts where they do not fit."""
    whole = encode(message)
    return Raw(whole if len(whole) <= bytes_max else encode(message.without_parts()))


def fit_page(messages: Iterable[Message]) -> list[Raw]:
    """As many of the messages, from the first, as one frame takes; at least one."""
    return _fill(fit(message) for message in messages)


def fit_together(messages: Sequence[Message]) -> list[Raw]:
    """All of the messages, each with its parts where its share of a frame takes them; as many as the frame takes."""
    share = MESSAGE_BYTES_MAX // max(1, len(messages))
    return _fill(fit(message, share) for message in messages)


def holds(messages: Iterable[Raw], damaged: Sequence[Damaged]) -> bool:
    """Whether a frame takes the messages and what is told of damage beside them."""
    return sum(len(bytes(message)) + 1 for message in messages) + len(encode(damaged)) <= MESSAGE_BYTES_MAX


def fit_conversations(conversations: Iterable[Conversation]) -> list[Raw]:
    """As many of the conversations, from the first, as one frame takes; at least one."""
    return _fill(Raw(encode(conversation)) for conversation in conversations)


def _fill(items: Iterable[Raw]) -> list[Raw]:
    page: list[Raw] = []
    room = MESSAGE_BYTES_MAX
    for item in items:
        room -= len(bytes(item)) + 1
        if page and room < 0:
            break
        page.append(item)
    return page


def message_created(message: Message) -> bytes:
    """A message stands in the table; ends its stream, for those who watch it."""
    return _event("message.created", conversation=message.conversation, message=fit(message))


def stream_opened(
    conversation: str, stream: str, *, epoch: int, parent: str | None, role: Role, region: str, endpoint: str = ""
) -> bytes:
    """A message begins to be written, or begins anew; in another region where there is an endpoint to follow it at."""
    return _event(
        "stream.opened",
        conversation=conversation,
        stream=stream,
        epoch=epoch,
        parent=parent,
        role=role,
        region=region,
        **({"endpoint": endpoint} if endpoint else {}),
    )


def stream_delta(conversation: str, stream: str, *, epoch: int, at: int, after: int, ops: bytes) -> bytes:
    """One accepted append; ``ops`` empty is a beat."""
    return _event(
        "stream.delta", conversation=conversation, stream=stream, epoch=epoch, at=at, next=after, ops=Raw(ops)
    )


def stream_lag(conversation: str, stream: str) -> bytes:
    """Frames were dropped for this viewer; it gets nothing more until it resumes."""
    return _event("stream.lag", conversation=conversation, stream=stream)


def conversation_updated(conversation: Conversation) -> bytes:
    """Title or metadata changed."""
    return _event("conversation.updated", conversation=conversation)


def conversation_deleted(conversation: str) -> bytes:
    """It is gone, for everybody and for good."""
    return _event("conversation.deleted", conversation=conversation)


def _event(kind: str, **fields: Any) -> bytes:
    return encode({"type": kind, **fields})
