from __future__ import annotations

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from threadkeep_client.importing.draft import Node
from threadkeep_client.importing.tree import sound

NAMES = "abcdefgh"


def node(name: str, parent: str | None, *, is_message: bool = True, time_ms: int | None = None) -> Node:
    return Node(source=name, parent=parent, is_message=is_message, time_ms=time_ms)


def shape(nodes: list[Node]) -> tuple[dict[str, str | None], Counter[str]]:
    notes: Counter[str] = Counter()
    ordered, _ = sound(nodes, notes)
    return {each.source: above for each, above in ordered}, +notes


def test_nodes_without_a_message_are_passed_over() -> None:
    nodes = [node("r", None, is_message=False), node("a", "r"), node("p", "a", is_message=False), node("b", "p")]
    assert shape(nodes) == ({"a": None, "b": "a"}, {})


def test_what_stands_under_nothing_is_a_root_and_counted() -> None:
    assert shape([node("a", None), node("b", "gone")]) == ({"a": None, "b": None}, {"orphans": 1})


def test_what_comes_first_may_name_a_parent_that_is_not_exported() -> None:
    assert shape([node("a", "client-created-root"), node("b", "a")]) == ({"a": None, "b": "a"}, {})


def test_a_ring_is_cut_at_what_was_written_first() -> None:
    ring = [node("a", "c", time_ms=3), node("b", "a", time_ms=1), node("c", "b", time_ms=2), node("d", "a", time_ms=4)]
    assert shape(ring) == ({"b": None, "c": "b", "a": "c", "d": "a"}, {"rings_cut": 1})


def test_a_node_that_is_its_own_parent_is_a_root() -> None:
    assert shape([node("a", "a")]) == ({"a": None}, {"rings_cut": 1})


def test_a_long_chain_is_no_matter_of_depth() -> None:
    nodes = [node(str(number), str(number - 1) if number else None) for number in range(20_000)]
    assert len(shape(nodes[::-1])[0]) == 20_000


@given(
    parents=st.lists(st.none() | st.sampled_from(NAMES + "z"), min_size=len(NAMES), max_size=len(NAMES)),
    kinds=st.lists(st.booleans(), min_size=len(NAMES), max_size=len(NAMES)),
)
def test_whatever_parents_say_each_message_stands_once_behind_its_parent(
    parents: list[str | None], kinds: list[bool]
) -> None:
    nodes = [node(name, parent, is_message=kind) for name, parent, kind in zip(NAMES, parents, kinds, strict=True)]
    ordered, nearest = sound(nodes, Counter())
    names = [each.source for each, _ in ordered]
    assert sorted(names) == [name for name, kind in zip(NAMES, kinds, strict=True) if kind]
    assert set(nearest) == set(NAMES)
    for number, (_, above) in enumerate(ordered):
        assert above is None or above in names[:number]
