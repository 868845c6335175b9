"""History: everything that only reads, apart from the writers so that heavy reads slow no stream."""

from __future__ import annotations

from typing import Any, Final

from handlers.serving import Routes, answer
from threadkeep.domain.commands import (
    GetBlob,
    GetConversation,
    GetErasure,
    GetExport,
    ListConversations,
    ListMessages,
    ReadContext,
    ResumeStream,
)
from threadkeep.telemetry import instrumented
from threadkeep.usecases import blobs, context, conversations, deletion, exports, listing, resuming

ROUTES: Final[Routes] = {
    GetConversation: conversations.get,
    ListConversations: conversations.list_own,
    ListMessages: listing.list_messages,
    ReadContext: context.read,
    ResumeStream: resuming.resume,
    GetErasure: deletion.get,
    GetBlob: blobs.get,
    GetExport: exports.get,
}


def _handle(event: dict[str, Any], _context: Any) -> dict[str, Any]:
    return answer(event, ROUTES)


handler = instrumented(_handle)
