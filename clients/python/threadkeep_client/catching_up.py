"""The settled messages of a viewer's path, none of which is missed (protocol, section 4)."""

from __future__ import annotations

from threadkeep_client.connection import Connection
from threadkeep_client.errors import NotFoundError, WireError
from threadkeep_client.held import Held
from threadkeep_client.reading import read_path, with_parts
from threadkeep_client.wire import Frame


class CatchingUp:
    """Knows up to where nothing on the path was missed, and reads what was.

    Args:
        connection: to the viewer's own region: what is told can be read there.
        conversation: its id.
        held: takes the messages.
        since: newest message that is known already; None: the leaf at the first subscribe.
    """

    def __init__(self, connection: Connection, conversation: str, held: Held, since: str | None) -> None:
        self._connection = connection
        self._conversation = conversation
        self._held = held
        self._begun = since is not None
        self._caught_up = since

    def begin(self, frame: Frame) -> None:
        """A reply to a subscribe: the first says where watching begins."""
        if not self._begun:
            self._begun, self._caught_up = True, _settled_leaf(frame)

    def misses(self, parent: str | None) -> bool:
        """Whether a message was missed: something stands under it, and it was never seen."""
        if parent is None or self._held.knows(parent):
            return False
        return self._caught_up is None or parent > self._caught_up

    async def read(self, frame: Frame) -> bool:
        """Tell the messages up to the leaf that a reply to a subscribe names; False if that is to be tried again."""
        leaf = _settled_leaf(frame)
        if leaf is None or (self._caught_up is not None and leaf <= self._caught_up):
            return True
        try:
            missed = [
                message async for message in read_path(self._connection, self._conversation, leaf, self._caught_up)
            ]
            for message in sorted(missed, key=lambda message: message["id"]):
                if self._held.watches(message["id"]):
                    self._held.settle(await with_parts(self._connection, message))
        except NotFoundError:
            return True  # the next renewal looks again
        except WireError as error:
            if not error.retryable:
                raise
            return False
        self._caught_up = leaf
        return True


def _settled_leaf(frame: Frame) -> str | None:
    """The newest settled message on the path to the leaf that a reply to a subscribe tells."""
    parents = {told["stream"]: told.get("parent") for told in frame.get("live") or ()}
    leaf: str | None = frame.get("leaf")
    while leaf in parents:
        leaf = parents.pop(leaf)  # each once: parents that went round in a circle would be followed for ever
    return leaf
