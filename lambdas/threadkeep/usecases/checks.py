"""Checks of what a request brings along that its form alone cannot show. None reads a store."""

from __future__ import annotations

from threadkeep.domain import ids
from threadkeep.domain.bounds import METADATA_BYTES_MAX
from threadkeep.domain.errors import Refused
from threadkeep.domain.json_values import JsonObject, encode


def mint_or_check(given: str | None, now_ms: int, *, parent: str | None = None) -> str:
    """The client's id, or a new one where it gave none; a message's sorts after its parent.

    Raises:
        Refused: ``bad_request`` if its time lies too far ahead, or it does not sort after the parent.
    """
    if given is None:
        return ids.mint(now_ms, after=parent)
    if ids.is_ahead(given, now_ms):
        raise Refused("bad_request", "The id's time lies ahead of the server's clock; ask `ping` and mint a new one.")
    if parent is not None and given <= parent:
        raise Refused("bad_request", "A message's id must be greater than its parent's: mint it later.")
    return given


def check_metadata(metadata: JsonObject) -> None:
    """Metadata stays small: it travels with every list.

    Raises:
        Refused: ``too_large``.
    """
    if len(encode(metadata)) > METADATA_BYTES_MAX:
        raise Refused("too_large", f"`metadata` takes at most {METADATA_BYTES_MAX} bytes; parts may take more.")
