"""Whatever stands in an export, reading it ends in a conversation or in a reason: nothing else is raised."""

from __future__ import annotations

import copy
import json
import tempfile
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.support.exports import DATA, Whole, listed, read, write
from threadkeep_client.frames import FRAME_BYTES_MAX, json_bytes, to_json

SEEDS = [
    value
    for name in ("import-multipart-mixed", "import-branches", "import-bad-pointers", "claude-export-same-timestamps")
    for value in json.loads((DATA / f"{name}.json").read_text())
]
ODD = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(),
    st.text(max_size=5),
    st.sampled_from([[], {}, [None], {"parts": [None]}, [[["x"]]], "\ud800", 10**400, -0.0, "u1", "r"]),
)


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """All places in a value."""
    found = [path] if path else []
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in items:
        found += places(inner, (*path, key))
    return found


def change(value: Any, path: tuple[Any, ...], odd: Any, *, is_removed: bool) -> None:
    for key in path[:-1]:
        value = value[key]
    if is_removed:
        del value[path[-1]]
    else:
        value[path[-1]] = copy.deepcopy(odd)  # strategies hand out the same object again


@settings(suppress_health_check=[HealthCheck.too_slow], deadline=None, max_examples=200)
@given(data=st.data())
def test_a_changed_export_is_a_sound_conversation_or_is_refused(data: st.DataObject) -> None:
    value = json.loads(json.dumps(data.draw(st.sampled_from(SEEDS))))
    for _ in range(data.draw(st.integers(1, 4))):
        path = data.draw(st.sampled_from(places(value)))
        change(value, path, data.draw(ODD), is_removed=data.draw(st.booleans()))
        if not places(value):
            break
    with tempfile.TemporaryDirectory() as folder:
        path = write(Path(folder) / "f", [value])
        found = list(read(path).values())
        catalog = listed(path)
        assert len(found) + len(catalog.passed_over) + len(catalog.refusals) == 1
    for built in found:
        if isinstance(built, Whole):
            check(built)


def check(built: Whole) -> None:
    ids = [one.id for one in built.messages]
    assert ids == sorted(set(ids))
    for one in built.messages:
        assert one.parent is None or one.parent in ids[: ids.index(one.id)]
        assert json_bytes(one.metadata) <= 16 * 1024
        assert all(isinstance(part, dict) and isinstance(part["type"], str) for part in one.parts)
        to_json(one.parts)
        assert one.model is None or len(one.model) <= 256
    assert json_bytes(built.metadata) <= 16 * 1024
    assert json_bytes({"title": built.title, "metadata": built.metadata}) < FRAME_BYTES_MAX


def test_the_seeds_are_sound(tmp_path: Path) -> None:
    found = read(write(tmp_path / "f", SEEDS))
    assert len(found) == len(SEEDS)
    for built in found.values():
        assert isinstance(built, Whole), built
        check(built)
