"""Where a conversation opens: at its present leaf, or where the reader of an export had left it."""

from __future__ import annotations

from threadkeep_client.client import Client
from threadkeep_client.errors import NotFoundError
from threadkeep_client.importing.building import CURRENT, NEWEST
from threadkeep_client.wire import JsonObject


async def leaf_to_open(client: Client, conversation: str) -> str | None:
    """The leaf at which an import says that its reader left the conversation; None: open the present leaf.

    What the import says holds until something newer than it stands there.

    Raises:
        WireError: As any request.
    """
    metadata: JsonObject = (await client.get_conversation(conversation))["metadata"]
    current, newest = metadata.get(CURRENT), metadata.get(NEWEST)
    if not isinstance(current, str) or not isinstance(newest, str):
        return None
    page = await client.list_messages(conversation, limit=1)
    known = [message["id"] for message in page.messages] + [str(stretch["last"]) for stretch in page.damaged]
    if not known or max(known) > newest:
        return None
    try:
        await client.list_messages(conversation, leaf=current, limit=1)
    except NotFoundError:
        return None  # an import that was cut off has not come so far
    return current
