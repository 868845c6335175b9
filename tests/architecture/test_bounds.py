"""The protocol's bounds are those of the code."""

from __future__ import annotations

import re
from collections import defaultdict
from pathlib import Path
from typing import Any, Final

from msgspec import NODEFAULT, inspect

from threadkeep.domain import bounds
from threadkeep.domain.commands import COMMANDS, Ref
from threadkeep.domain.rates import Rate, Rates

SECTION: Final = (
    (Path(__file__).parents[2] / "docs" / "protocol.md")
    .read_text()
    .partition("\n## 10. Bounds\n")[2]
    .partition("\n## ")[0]
)
KIB: Final = 1_024


def rows(head: str) -> list[list[str]]:
    """A table's cells, row by row."""
    table = SECTION.partition(f"| {head} |")[2].partition("\n\n")[0]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in table.splitlines()[2:]]


def number(value: int) -> str:
    for power in (52, 53):
        if value == 2**power - 1:
            return f"2^{power} - 1"
    return f"{value:,}"


def bound(kind: inspect.Type, default: Any = NODEFAULT) -> str | None:
    """A type's bound in words; None where it has none but its form."""
    match kind:
        case inspect.UnionType(types=types):
            return next((said for each in types if (said := bound(each)) is not None), None)
        case inspect.IntType(ge=int(least)):
            most = kind.le if kind.le is not None else (kind.lt or 0) - 1
            usual = f"; default {default}" if isinstance(default, int) else ""
            return f"{number(least)} to {number(most)}{usual}"
        case inspect.StrType(max_length=int(most), min_length=least):
            return f"{least} to {most} characters" if least else f"at most {most} characters"
        case inspect.ListType(max_length=int(most)):
            return f"at most {number(most)}"
    return None


def test_fields_have_the_bounds_that_the_page_says() -> None:
    enforced: dict[str, set[str]] = defaultdict(set)
    for command in (*COMMANDS, Ref):
        for field in inspect.type_info(command).fields:  # type: ignore[attr-defined]
            if (said := bound(field.type, field.default)) is not None:
                enforced[field.encode_name].add(said)
    told: dict[str, set[str]] = defaultdict(set)
    for names, said in rows("field | bound"):
        for name in re.findall(r"`([a-z_]+)`", names):
            told[name].add(said)
    assert told == enforced


def size(value: int) -> str:
    return f"{value // (KIB * KIB)} MiB" if value >= KIB * KIB else f"{value // KIB} KiB"


def rate(value: Rate) -> str:
    return f"{value.per_s:g} a second, {value.burst:,} at once (setting)"


def test_sizes_depth_and_numbers_are_those_that_the_page_says() -> None:
    usual = Rates()
    assert {what: most for what, most, _ in rows("what | at most | beyond it")} == {
        "a frame, either way": size(bounds.FRAME_BYTES_MAX),
        "nesting of JSON, in a frame and in uploaded parts": str(bounds.JSON_DEPTH_MAX),
        "the `ops` of one append": size(bounds.OPS_BYTES_MAX),
        "the ops of a whole answer": size(bounds.STREAM_BYTES_MAX),
        "`metadata`": size(bounds.METADATA_BYTES_MAX),
        "`usage`, `error`, each": size(bounds.END_BYTES_MAX),
        "the name of a part's field, as JSON": size(bounds.FIELD_NAME_BYTES_MAX),
        "uploads that one request names in parts": str(bounds.BLOBS_MAX),
        "an upload": size(bounds.UPLOAD_BYTES_MAX),
        "the fields of all uploaded parts together": number(bounds.UPLOAD_FIELDS_MAX),
        "a token": size(bounds.TOKEN_BYTES_MAX),
        "how far an id's time lies ahead of the server's clock": f"{bounds.ID_AHEAD_MS_MAX // 60_000} min",
        "live streams of a conversation": str(bounds.LIVE_STREAMS_MAX),
        "live streams of an owner, in a region": f"{usual.streams_max} (setting)",
        "viewers of a conversation, in a region": str(bounds.VIEWERS_MAX),
        "exports of a user under way": str(bounds.EXPORTS_RUNNING_MAX),
        "requests that write or cost, of a user in a region": rate(usual.user),
        "the same, of a tenant in a region": rate(usual.tenant),
    }
