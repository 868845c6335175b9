"""Checks of what a request brings along that its form alone cannot show. None reads a store."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import UNSET, UnsetType

from threadkeep.domain import ids
from threadkeep.domain.bounds import END_BYTES_MAX, FIELD_NAME_BYTES_MAX, METADATA_BYTES_MAX
from threadkeep.domain.commands import Ref
from threadkeep.domain.errors import Refused
from threadkeep.domain.json_values import JsonObject, encode


def mint_or_check(given: str | None, now_ms: int, *, parent: str | None = None) -> str:
    """The client's id, or a new one where it gave none; a message's sorts after its parent.

    Raises:
        Refused: ``bad_request`` if its time lies too far ahead, or the parent's does, or it does not sort after the
            parent.
    """
    if given is None:
        if parent is not None and ids.is_ahead(parent, now_ms):
            raise Refused("bad_request", "The parent's time lies ahead of the server's clock: no message goes by it.")
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
    _check_bytes("metadata", metadata, METADATA_BYTES_MAX)


def check_end(usage: JsonObject | UnsetType, error: JsonObject | UnsetType) -> None:
    """So do usage and error.

    Raises:
        Refused: ``too_large``.
    """
    for name, value in (("usage", usage), ("error", error)):
        if value is not UNSET:
            _check_bytes(name, value, END_BYTES_MAX)


def check_parts(parts: Sequence[JsonObject] | Ref) -> None:
    """Every part can be read again in pieces, whatever its size, if the names of its fields are short.

    What lies in an upload is checked when it is read from there.

    Raises:
        Refused: ``too_large``.
    """
    if isinstance(parts, Ref):
        return
    for part in parts:
        for name in part:
            if len(encode(name)) > FIELD_NAME_BYTES_MAX:
                raise Refused("too_large", f"The name of a part's field takes at most {FIELD_NAME_BYTES_MAX} bytes.")


def _check_bytes(name: str, value: JsonObject, bytes_max: int) -> None:
    if len(encode(value)) > bytes_max:
        raise Refused("too_large", f"`{name}` takes at most {bytes_max} bytes; parts may take more.")
