from __future__ import annotations

import pytest

from tests.support.conversations import NOW_MS, message, noise, text_parts
from tests.support.hot import new_key
from threadkeep.domain import ids
from threadkeep.domain.model import Message, StoredMessage
from threadkeep.responder.context import read_context
from threadkeep.stores.warm_memory import WarmMemory

KEY = new_key()
WHOLE = {"messages_max": 1_000, "tokens_max": 1_000_000}


class Tree:
    """A conversation whose messages a test hangs in."""

    def __init__(self) -> None:
        self.warm = WarmMemory()
        self._ms = NOW_MS

    def add(self, parent: str | None, text: str = "hello", role: str = "user") -> str:
        self._ms += 1
        added = message(KEY, text_parts(text), parent=parent, role=role, id=ids.mint(self._ms))
        assert self.warm.put_message(KEY.tenant, StoredMessage(added)) is None
        return added.id

    def path(self, length: int, parent: str | None = None) -> list[str]:
        made: list[str] = []
        for _ in range(length):
            parent = self.add(parent)
            made.append(parent)
        return made

    def read(self, leaf: str, **bounds: int) -> tuple[Message, ...]:
        return read_context(self.warm, KEY, leaf, **(WHOLE | bounds))

    def ids(self, leaf: str, **bounds: int) -> list[str]:
        return [found.id for found in self.read(leaf, **bounds)]


@pytest.mark.parametrize("length", [1, 49, 50, 51, 120])
def test_the_path_comes_oldest_first_over_as_many_pages_as_it_takes(length: int) -> None:
    tree = Tree()
    path = tree.path(length)
    assert tree.ids(path[-1]) == path


def test_of_several_branches_the_leafs_is_read() -> None:
    tree = Tree()
    stem = tree.path(3)
    one = tree.path(60, stem[-1])
    other = tree.path(60, stem[-1])
    between = [tree.add(one[10]), tree.add(other[10])]
    assert tree.ids(one[-1]) == stem + one
    assert tree.ids(other[20]) == stem + other[:21]
    assert tree.ids(between[0]) == [*stem, *one[:11], between[0]]


def test_the_newest_messages_are_read_and_no_more_than_that() -> None:
    tree = Tree()
    path = tree.path(120)
    assert tree.ids(path[-1], messages_max=7) == path[-7:]


def test_as_many_are_read_as_fit_the_tokens_and_the_question_always() -> None:
    tree = Tree()
    path = [tree.add(None, "x" * 400)]
    for _ in range(9):
        path.append(tree.add(path[-1], "x" * 400))
    tokens = tree.read(path[-1])[0].tokens.count
    assert tree.ids(path[-1], tokens_max=3 * tokens) == path[-3:]
    assert tree.ids(path[-1], tokens_max=1) == path[-1:]


def test_no_older_message_comes_in_past_one_that_did_not_fit() -> None:
    tree = Tree()
    small = tree.add(None)
    large = tree.add(small, "x" * 4_000)
    leaf = tree.add(large)
    assert tree.ids(leaf, tokens_max=500) == [leaf]


def test_system_messages_are_kept_however_many_tokens_the_others_take() -> None:
    tree = Tree()
    system = tree.add(None, "Be kind.", role="system")
    path = tree.path(20, system)
    assert tree.ids(path[-1], tokens_max=1) == [system, path[-1]]


def test_a_large_message_comes_with_its_parts() -> None:
    tree = Tree()
    text = noise(100_000)
    root = tree.add(None, text)
    leaf = tree.add(root)
    assert tree.read(leaf)[0].parts == text_parts(text)


def test_the_path_ends_where_a_message_is_missing() -> None:
    tree = Tree()
    path = tree.path(60)
    del tree.warm._messages[KEY][path[30]]
    assert tree.ids(path[-1]) == path[31:]
    del tree.warm._messages[KEY][path[-1]]
    assert tree.ids(path[-1]) == []
