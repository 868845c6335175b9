"""What of an export has no place of its own in Threadkeep, and is kept beside: metadata, and parts of unknown kinds."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any, Final

from threadkeep_client.frames import holds_halves, json_bytes
from threadkeep_client.importing.draft import ROLES, Content, Draft, Form, Node, model_of, title_of
from threadkeep_client.importing.times import to_ms
from threadkeep_client.importing.values import TOO_DEEP
from threadkeep_client.wire import JsonObject, Part, Role, Status

METADATA_BYTES_MAX: Final = 16 * 1024
"""The metadata of a message, and of a conversation (protocol, section 5)."""
PARTS_BYTES_MAX: Final = 8 * 1024 * 1024
"""The parts of a message as JSON (section 6)."""
PARTS_MAX: Final = 1_000
"""The service takes no more parts in one message."""
JSON_DEPTH_MAX: Final = 64
"""How deep the service reads JSON, with all that stands around a value."""
_VALUE_DEPTH_MAX: Final = 40
_PARTS_DEPTH_MAX: Final = 50
"""There is more around a value than around parts."""
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


def drafted(
    form: Form,
    source: str,
    fields: Mapping[str, Any],
    notes: Counter[str],
    *,
    title: str,
    created: str,
    current: str,
    read: frozenset[str],
    nodes: list[Node],
    content_of: Callable[[Node], Content],
) -> Draft:
    """What a conversation of another service comes to.

    Args:
        form: the export's.
        source: the conversation's id there.
        fields: of the conversation, without its messages.
        notes: counts what had to be repaired or left out.
        title: how the field is called that holds its title,
        created: the time of its beginning,
        current: the message at which its reader left it.
        read: fields that are read otherwise, or not kept.
        nodes: as `Draft` has them.
        content_of: likewise.
    """
    left_at = fields.get(current)
    rest = {name: field for name, field in fields.items() if name not in read | {title, created, current}}
    told, metadata = title_of(fields.get(title), notes), imported(form, {"id": source}, rest, notes)
    notes["halves_replaced"] += holds_halves([told, metadata])
    return Draft(
        form=form,
        source=source,
        title=told,
        created_ms=to_ms(fields.get(created)),
        nodes=nodes,
        content_of=content_of,
        current=left_at if isinstance(left_at, str) else None,
        metadata=metadata,
        notes=notes,
    )


def said_by(
    form: Form,
    author: Any,
    parts: list[Part],
    notes: Counter[str],
    *,
    name: str,
    facts: Mapping[str, Any],
    source: Mapping[str, Any],
    hides: bool = False,
    model: Any = None,
    status: Status = "complete",
) -> Content:
    """What a message of another service comes to.

    Args:
        form: the export's.
        author: whom it names, in its own words.
        parts: what was read of the message.
        notes: counts what had to be repaired or left out.
        name: the message's id there.
        facts: as `imported` takes them.
        source: likewise.
        hides: whether the service never showed it; it shows no system's message in any case.
        model: an answer's, if it is said.
        status: how it ended.
    """
    role = role_of(author)
    if role is None:
        notes["roles_unknown"] += 1
    hides = hides or role == "system"
    kept = bounded(parts, notes)
    if not kept and not hides:
        notes["empty_messages"] += 1
    unknown = {"role_unknown": True, "role": author} if role is None else {}
    metadata = imported(form, {"id": name, **unknown, **facts}, source, notes, is_hidden=hides)
    notes["halves_replaced"] += holds_halves([kept, metadata])
    return Content(
        # Nobody said who wrote it. As a user's or the system's it would carry weight that it may not have.
        role=role or "assistant",
        parts=kept,
        status=status,
        model=model_of(model) if role == "assistant" else None,
        metadata=metadata,
    )


def role_of(author: Any) -> Role | None:
    """The role that an author has; None for one that is not known."""
    return ROLES.get(author) if isinstance(author, str) else None


def data_part(form: Form, kind: str, value: Any, notes: Counter[str]) -> Part:
    """A part of a kind that Threadkeep has no own part for, as the export has it."""
    part: Part = {"type": "data", "source": form, "kind": kind}
    reason = _reason_against(value, _VALUE_DEPTH_MAX)
    if reason is None:
        return part | {"value": value}
    notes["contents_dropped"] += 1
    return part | {"omitted": reason}


def bounded(parts: list[Part], notes: Counter[str]) -> list[Part]:
    """The parts of a message, or one that says what was left out: a message of 8 MiB and more is not kept."""
    if len(parts) > PARTS_MAX:
        # As one part they are still all there.
        parts = [*parts[: PARTS_MAX - 1], {"type": "data", "kind": "parts", "value": parts[PARTS_MAX - 1 :]}]
    reason = _reason_against(parts, _PARTS_DEPTH_MAX)
    if reason is None:
        return parts
    notes["contents_dropped"] += 1
    return [{"type": "data", "kind": "parts", "omitted": reason}]


def _reason_against(value: Any, depth_max: int) -> str | None:
    """Why the service would not keep it; None where it would."""
    if is_deep(value, depth_max):
        return "it is nested too deeply"
    try:
        is_large = json_bytes(value) > PARTS_BYTES_MAX
    except ValueError:
        return "it holds a number that JSON has no word for"
    except TypeError:  # something of it was left out when it was read
        is_large = True
    return f"it takes more than {PARTS_BYTES_MAX:,} bytes" if is_large else None


def is_deep(value: Any, depth_max: int) -> bool:
    """Whether a value is nested deeper than that, as far as it was read."""
    level = [value]
    for _ in range(depth_max):
        if any(inner is TOO_DEEP for inner in level):
            return True
        level = [inner for outer in level if isinstance(outer, (dict, list)) for inner in _inside(outer)]
        if not level:
            return False
    return True


def _inside(outer: dict[str, Any] | list[Any]) -> list[Any]:
    return list(outer.values()) if isinstance(outer, dict) else outer
