"""Client of Threadkeep, the storage that keeps the conversations of LLM applications.

async with Client(url, token) as client:
    conversation = await client.create_conversation(title="Rivers")
    question = await client.create_message(conversation["id"], "What is the longest?", parent=None)
    async with client.produce(conversation["id"], parent=question["id"], model="m") as answer:
        await answer.text("The Nile, ")
"""

from __future__ import annotations

from threadkeep_client.answer import Answer
from threadkeep_client.client import Client, ConversationPage, MessagePage
from threadkeep_client.connection import Connection
from threadkeep_client.errors import (
    BadRequestError,
    ClosedError,
    ConflictError,
    ConnectionEndedError,
    ConnectionFailedError,
    FencedError,
    GapError,
    InternalError,
    NotFoundError,
    RateLimitedError,
    ThreadkeepError,
    TokenExpiredError,
    TokenRefusedError,
    TooLargeError,
    UnauthorizedError,
    UnavailableError,
    WireError,
)
from threadkeep_client.ids import new_id
from threadkeep_client.keeping import Context, Download, Erasure, Export, ExportFormat
from threadkeep_client.patience import ConnectionSettings
from threadkeep_client.producer import Producer, StreamEndedError
from threadkeep_client.updates import Update, ViewerSettings
from threadkeep_client.viewer import Viewer
from threadkeep_client.wire import Conversation, Message, Op, Part, Role, Status, text_of
from threadkeep_client.writing import Outcome, ProducerSettings, Window

__all__ = [
    "Answer",
    "BadRequestError",
    "Client",
    "ClosedError",
    "ConflictError",
    "Connection",
    "ConnectionEndedError",
    "ConnectionFailedError",
    "ConnectionSettings",
    "Context",
    "Conversation",
    "ConversationPage",
    "Download",
    "Erasure",
    "Export",
    "ExportFormat",
    "FencedError",
    "GapError",
    "InternalError",
    "Message",
    "MessagePage",
    "NotFoundError",
    "Op",
    "Outcome",
    "Part",
    "Producer",
    "ProducerSettings",
    "RateLimitedError",
    "Role",
    "Status",
    "StreamEndedError",
    "ThreadkeepError",
    "TokenExpiredError",
    "TokenRefusedError",
    "TooLargeError",
    "UnauthorizedError",
    "UnavailableError",
    "Update",
    "Viewer",
    "ViewerSettings",
    "Window",
    "WireError",
    "new_id",
    "text_of",
]
