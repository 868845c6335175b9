"""What of an export has no place of its own in Threadkeep, and is kept beside: metadata, and parts of unknown kinds."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any, Final

from threadkeep_client.frames import json_bytes, to_json
from threadkeep_client.importing.draft import Form
from threadkeep_client.wire import JsonObject, Part

METADATA_BYTES_MAX: Final = 16 * 1024
"""The metadata of a message, and of a conversation (protocol, section 5)."""
PARTS_BYTES_MAX: Final = 8 * 1024 * 1024
"""The parts of a message as JSON (section 6)."""
PARTS_MAX: Final = 1_000
"""The service takes no more parts in one message."""
_VALUE_DEPTH_MAX: Final = 40
_PARTS_DEPTH_MAX: Final = 50
"""The service reads JSON 64 deep, with all that stands around parts; and there is more around a value."""
_RESERVED_BYTES: Final = 256
"""Of a conversation's metadata, for what is found out later: its flags, and where its reader left it."""


def imported(
    form: Form, facts: Mapping[str, Any], source: Mapping[str, Any], notes: Counter[str], *, is_hidden: bool = False
) -> JsonObject:
    """Metadata for what comes from an export: `imported` holds where from, and what the export said, as far as it fits.

    Args:
        form: the export's.
        facts: what it says outside its own metadata; those that are None are left out.
        source: its own metadata, kept under `imported.metadata`.
        notes: counts in `metadata_dropped` the fields that were left out.
        is_hidden: adds `hidden: true`.
    """
    said: JsonObject = {"from": form}
    metadata: JsonObject = ({"hidden": True} if is_hidden else {}) | {"imported": said}
    left = METADATA_BYTES_MAX - json_bytes(metadata) - len(',"metadata":{}') - _RESERVED_BYTES
    left = _fill(said, {name: value for name, value in facts.items() if value is not None}, left, notes)
    kept: JsonObject = {}
    _fill(kept, source, left, notes)
    if kept:
        said["metadata"] = kept
    return metadata


def _fill(into: JsonObject, fields: Mapping[str, Any], left: int, notes: Counter[str]) -> int:
    """Take over what fits, in its order; the bytes that are left."""
    for name, value in fields.items():
        size = _size(name, value)
        if size is None or size > left:
            notes["metadata_dropped"] += 1
            continue
        into[name] = value
        left -= size
    return left


def _size(name: str, value: Any) -> int | None:
    if is_deep(value, _VALUE_DEPTH_MAX):
        return None
    try:
        return json_bytes(name) + json_bytes(value) + len(":,")
    except (ValueError, TypeError):
        return None  # infinite, or not a number: JSON has no word for it


def data_part(form: Form, kind: str, value: Any, notes: Counter[str]) -> Part:
    """A part of a kind that Threadkeep has no own part for, as the export has it."""
    part: Part = {"type": "data", "source": form, "kind": kind}
    try:
        text = to_json(value) if not is_deep(value, _VALUE_DEPTH_MAX) else None
    except (ValueError, TypeError):
        text = None
    if text is None:
        notes["contents_dropped"] += 1
        return part | {"omitted": "it is nested too deeply, or holds a number that JSON has no word for"}
    return part | {"value": value}


def bounded(parts: list[Part], notes: Counter[str]) -> list[Part]:
    """The parts of a message, or one that says what was left out: a message of 8 MiB and more is not kept."""
    if len(parts) > PARTS_MAX:
        # As one part they are still all there.
        parts = [*parts[: PARTS_MAX - 1], {"type": "data", "kind": "parts", "value": parts[PARTS_MAX - 1 :]}]
    try:
        reason = f"its parts take more than {PARTS_BYTES_MAX} bytes" if json_bytes(parts) > PARTS_BYTES_MAX else None
    except (ValueError, TypeError):
        reason = "they hold a number that JSON has no word for"
    if reason is None and is_deep(parts, _PARTS_DEPTH_MAX):
        reason = "they are nested too deeply"
    if reason is None:
        return parts
    notes["contents_dropped"] += 1
    return [{"type": "data", "kind": "parts", "omitted": reason}]


def is_deep(value: Any, depth_max: int) -> bool:
    """Whether a value is nested deeper than that."""
    level = [value]
    for _ in range(depth_max):
        level = [inner for outer in level if isinstance(outer, (dict, list)) for inner in _inside(outer)]
        if not level:
            return False
    return True


def _inside(outer: dict[str, Any] | list[Any]) -> list[Any]:
    return list(outer.values()) if isinstance(outer, dict) else outer
