"""The whole answer in its close: what makes it durable where the hot tier is away (protocol, section 3.3)."""

from __future__ import annotations

from threadkeep_client.connection import Connection
from threadkeep_client.errors import WireError
from threadkeep_client.outbox import Outbox
from threadkeep_client.uploading import fits_frame, upload_parts
from threadkeep_client.wire import JsonObject, Part


class WholeAnswer:
    """Says everything again, as the close may say it: that needs the table alone.

    Args:
        opening: the fields of `stream.open`, which the close says again.
        outbox: what was said.
    """

    def __init__(self, opening: JsonObject, outbox: Outbox) -> None:
        self._opening = opening
        self._outbox = outbox
        self._uploaded: JsonObject | None = None

    async def closing(self, connection: Connection, closing: JsonObject) -> JsonObject | None:
        """The fields of a close with everything in it; None where it fits no frame and cannot be uploaded just now."""
        whole = closing | self._body()
        if fits_frame(whole):
            return whole
        try:
            whole["body"] = await self._upload(connection, whole["body"])
        except WireError as error:
            if not error.retryable:
                raise
            return None  # then by way of the hot tier, which may be back
        return whole

    async def _upload(self, connection: Connection, parts: list[Part]) -> JsonObject:
        """Put the parts where the table's side can read them, once, and name them."""
        if self._uploaded is None:
            conversation = self._opening["conversation"]
            self._uploaded = await upload_parts(connection, conversation, parts)
        return self._uploaded

    def _body(self) -> JsonObject:
        """The fields that a close has besides where the hot tier is away.

        At the place after everything said: if the hot tier is back meanwhile, it answers `gap` and is told the rest,
        instead of taking what it has for all.
        """
        assembly = self._outbox.assembly()
        metadata = {**self._opening.get("metadata", {}), **assembly.metadata}
        body: JsonObject = {name: self._opening[name] for name in ("parent", "role", "model") if name in self._opening}
        body |= {"offset": self._outbox.end(), "body": assembly.parts}
        return body | ({"metadata": metadata} if metadata else {})
