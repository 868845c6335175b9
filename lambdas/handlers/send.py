"""Sends: what a person's device writes."""

from __future__ import annotations

from typing import Any, Final

from handlers.serving import Routes, answer
from threadkeep.domain.commands import (
    CancelStream,
    CreateBlob,
    CreateConversation,
    CreateExport,
    CreateMessage,
    DeleteConversation,
    RespondMessage,
    UpdateConversation,
)
from threadkeep.telemetry import instrumented
from threadkeep.usecases import blobs, conversations, deletion, exports, messages, responding, stopping

ROUTES: Final[Routes] = {
    CreateConversation: conversations.create,
    UpdateConversation: conversations.update,
    DeleteConversation: deletion.delete,
    CreateMessage: messages.create,
    RespondMessage: responding.respond,
    CancelStream: stopping.cancel,
    CreateBlob: blobs.create,
    CreateExport: exports.create,
}


def _handle(event: dict[str, Any], _context: Any) -> dict[str, Any]:
    return answer(event, ROUTES)


handler = instrumented(_handle)
