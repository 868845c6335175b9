"""Which messages of a path are selected: the newest within bounds, tools' uses whole, system messages kept."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from types import FrameType
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import UNSET, Raw

from tests.support.conversations import message
from tests.support.hot import new_key
from threadkeep.domain import ids
from threadkeep.domain.json_values import encode
from threadkeep.domain.model import Message
from threadkeep.usecases import pairs, selecting
from threadkeep.usecases.pairs import Pairs
from threadkeep.usecases.selecting import Bounds, Selection, select

KEY = new_key()
START_MS = 1_790_000_000_000


class Path:
    """A path that a test writes down, oldest message first.

    ``u`` is the user's, ``a`` the model's, ``s`` a system message, ``cX`` a call, ``rX`` a tool's result, ``cX+cY``
    both in one message; ``?a`` and ``?t`` are the model's and a tool's without their parts.
    """

    def __init__(self, *said: str, tokens: int = 1) -> None:
        self.messages: list[Message] = []
        for number, each in enumerate(said):
            self.messages.append(_message(each, number, self.messages[-1].id if self.messages else None, tokens))
        self.names = {made.id: f"{number}" for number, made in enumerate(self.messages)}
        self.read = 0

    def __iter__(self) -> Iterator[Message]:
        for made in reversed(self.messages):
            self.read += 1
            yield made

    def select(self, messages_max: int = 1_000, **bounds: Any) -> Selection:
        return select(iter(self), Bounds(messages_max=messages_max, **bounds))

    def selected(self, messages_max: int = 1_000, **bounds: Any) -> list[int]:
        """Numbers of the messages selected, oldest first."""
        return [int(self.names[one.id]) for one in reversed(self.select(messages_max, **bounds).newest_first)]


def _message(said: str, number: int, parent: str | None, tokens: int) -> Message:
    role = {"u": "user", "a": "assistant", "s": "system", "c": "assistant", "r": "tool"}.get(said[0], "")
    if said[0] == "?":
        role = {"a": "assistant", "t": "tool"}[said[1]]
    parts: list[dict[str, Raw]] = []
    for each in said.split("+"):
        kind = {"c": "tool_call", "r": "tool_result"}.get(each[0], "text")
        parts.append({"type": Raw(encode(kind)), "call_id": Raw(encode(each[1:])), "text": Raw(b'"x"')})
    usage = {"output_tokens": Raw(str(tokens).encode())}
    made = message(KEY, tuple(parts), id=ids.mint(START_MS + number), parent=parent, role=role, usage=usage)
    return made.without_parts() if said[0] == "?" else made


# --- bounds ---------------------------------------------------------------------------------------------------


def test_the_newest_messages_are_selected_and_no_more_is_read_than_that() -> None:
    path = Path(*"uauauauaua")
    selection = path.select(4)
    assert [one.id for one in selection.newest_first] == [one.id for one in path.messages[:-5:-1]]
    assert selection.following == path.messages[-5].id
    assert path.read == 4


def test_a_whole_path_is_not_truncated() -> None:
    for messages_max in (4, 5, 1_000):
        selection = Path(*"uaua").select(messages_max)
        assert (len(selection.newest_first), selection.following) == (4, None)


def test_an_empty_path_is_an_empty_selection() -> None:
    assert Path().select() == Selection(newest_first=(), near=0, following=None)


def test_as_many_fit_as_their_tokens_and_the_newest_always() -> None:
    path = Path(*"uauaua", tokens=100)
    assert path.selected(tokens_max=300) == [3, 4, 5]
    assert path.selected(tokens_max=399) == [3, 4, 5]
    assert path.selected(tokens_max=1) == [5]


def test_as_many_fit_as_there_is_room() -> None:
    path = Path(*"uauaua")
    assert path.selected(size_max=30, size=lambda _: 10) == [3, 4, 5]
    assert path.selected(size_max=5, size=lambda _: 10) == [5]
    assert path.read <= 4 + 2


def test_system_messages_of_the_newest_are_kept_and_count_first() -> None:
    path = Path("s", "u", "a", "u", "a", tokens=100)
    assert path.selected(tokens_max=300) == [0, 3, 4]
    assert path.selected(tokens_max=1) == [0, 4]
    assert path.selected(tokens_max=500) == [0, 1, 2, 3, 4]
    assert path.select(tokens_max=300).following == path.messages[2].id


def test_a_system_message_beyond_the_newest_is_not_looked_for() -> None:
    path = Path("s", *"uaua", tokens=100)
    assert path.selected(3, tokens_max=1_000) == [2, 3, 4]
    assert path.read == 3


# --- pairs ----------------------------------------------------------------------------------------------------


def test_a_result_whose_call_would_be_cut_off_is_left_out_with_its_siblings() -> None:
    path = Path("u", "ca+cb", "ra", "rb", "a", "u")
    assert path.selected(3) == [4, 5]
    assert path.selected(4) == [4, 5]
    assert path.selected(5) == [1, 2, 3, 4, 5]


def test_what_is_left_out_at_the_edge_comes_next() -> None:
    path = Path("u", "ca+cb", "ra", "rb", "a", "u")
    assert path.select(4).following == path.messages[3].id


def test_a_pair_that_fits_the_tokens_is_taken_whole() -> None:
    path = Path("u", "ca", "ra", "a", tokens=10)
    assert path.selected(tokens_max=30) == [1, 2, 3]
    assert path.selected(tokens_max=20) == [3]


def test_the_newest_message_brings_its_call_whatever_the_bounds() -> None:
    path = Path("u", "ca+cb", "ra", "rb", tokens=100)
    assert path.selected(1, tokens_max=1) == [1, 2, 3]
    assert path.selected(2) == [1, 2, 3]


def test_a_selection_ends_before_a_result_far_from_its_call() -> None:
    path = Path("ca", "u", "a", "ra", "u")
    assert path.selected(4) == [4]
    assert path.select(4).following == path.messages[3].id


def test_a_selection_ends_before_a_result_of_which_one_call_is_cut_off() -> None:
    """One message answers a call that is cut off and one that is not: the second call would have no result."""
    path = Path("ca", "u", "cb", "ra+rb", "u")
    assert path.selected(4) == [4]


def test_a_call_that_was_never_answered_and_a_result_without_a_call_stand_as_they_are() -> None:
    assert Path("u", "ca", "u").selected() == [0, 1, 2]
    assert Path("u", "ca", "u").selected(2) == [1, 2]
    assert Path("u", "rx", "u").selected() == [0, 1, 2]
    assert Path("u", "u", "rx").selected(1) == [2]


def test_calls_that_are_numbered_anew_in_every_answer_belong_to_their_own_results() -> None:
    path = Path("u", "c0", "r0", "a", "u", "c0", "r0", "a")
    assert path.selected(3) == [5, 6, 7]
    assert path.selected(2) == [7]
    assert path.selected(6) == [3, 4, 5, 6, 7]


def test_a_tool_without_its_parts_answers_the_models_message_before_it() -> None:
    path = Path("u", "?a", "?t", "?t", "a")
    assert path.selected(3) == [4]
    assert path.selected(4) == [1, 2, 3, 4]
    assert Path("u", "?a", "ra", "a").selected(2) == [3]


def test_a_selection_ends_before_a_result_whose_call_is_not_found_within_reach() -> None:
    path = Path("ca", *"ua" * 80, "ra", "u")
    assert path.selected(50) == [162]
    assert path.select(50).following == path.messages[161].id
    path.read = 0
    path.select(50)
    assert path.read < 200


def test_the_newest_message_brings_its_call_from_far_back() -> None:
    assert Path("u", "ca", *"ua" * 200, "ra").selected(1) == [1, 402]
    path = Path("u", "ca", *"ua" * 2_000, "ra")
    assert path.selected(1) == [4_002]
    assert path.read < 1_100


SAID = st.lists(
    st.sampled_from(["u", "a", "s", "ca", "cb", "ca+cb", "ra", "rb", "ra+rb", "c0", "r0", "?a", "?t"]), max_size=14
)


@given(SAID, st.integers(1, 15), st.one_of(st.none(), st.integers(1, 15)))
def test_whatever_the_path_no_half_of_a_pair_is_selected(
    said: Sequence[str], messages_max: int, tokens_max: int | None
) -> None:
    path = Path(*said)
    selection = path.select(messages_max, tokens_max=tokens_max)
    chosen = {one.id for one in selection.newest_first}
    newest_first = path.messages[::-1]
    assert [one.id for one in newest_first if one.id in chosen] == [one.id for one in selection.newest_first]
    assert not said or newest_first[0].id in chosen
    for call, result in Pairs(newest_first).links:
        assert (call in chosen) == (result in chosen), (path.names[call], path.names[result])
    assert [one.id for one in newest_first[: selection.near]] == [
        one.id for one in selection.newest_first[: selection.near]
    ]
    assert selection.following == next((one.id for one in newest_first[selection.near :]), None)
    if tokens_max is not None:
        systems = [one for one in newest_first[:messages_max] if one.role == "system"]
        assert all(one.id in chosen for one in systems)
    assert (selection.following is None) == (len(chosen) == len(path.messages))


@given(SAID, st.integers(1, 15), st.one_of(st.none(), st.integers(1, 15)), st.integers(1, 5))
def test_whatever_the_path_its_conversations_prompt_goes_ahead_where_its_root_is_not_reached(
    said: Sequence[str], messages_max: int, tokens_max: int | None, tokens: int
) -> None:
    path, asked = Path(*said), 0
    prompt = Path("s", tokens=tokens).messages[0]

    def find(oldest: Message) -> Message:
        nonlocal asked
        asked += 1
        assert oldest == path.messages[-path.read]
        return prompt

    bounds = Bounds(messages_max=messages_max, tokens_max=tokens_max)
    selection = select(iter(path), bounds, find)
    assert asked == (selection.ahead is not None)
    if selection.ahead is None:
        assert path.read == len(path.messages)
        assert selection == path.select(messages_max, tokens_max=tokens_max)
        return
    assert selection.ahead == prompt
    less = None if tokens_max is None else tokens_max - tokens
    assert selection == msgspec.structs.replace(path.select(max(1, messages_max - 1), tokens_max=less), ahead=prompt)


def calls(count: int) -> str:
    return "+".join(f"c{number}" for number in range(count))


def results(count: int) -> list[str]:
    return [f"r{number}" for number in range(count)]


PATHS: dict[str, Callable[[int], Sequence[str]]] = {
    "a call with many results": lambda count: ["u", calls(count), *results(count)],
    "one whose parts are not known": lambda count: ["u", "?a", *["?t"] * count],
    "calls that lead to calls": lambda count: ["u", "c0", *(f"r{number}+c{number + 1}" for number in range(count))],
    "turns with a call": lambda count: ["u", "c0", "r0"] * (count // 3),
    "results without a call": lambda count: ["u", *results(count)],
    "one message with many results": lambda count: ["u", calls(count), "+".join(results(count)), "u"],
    "a call from before many others": lambda count: ["cx", *["c0", "r0"] * (count // 2), "rx"],
    "results that wait, and end at the newest": lambda count: ["c0", *results(count), *["cy", "ry"] * 40],
}


def steps(said: Sequence[str], messages_max: int) -> int:
    """How many lines of the two modules run to select of such a path."""
    path, count = Path(*said), 0
    files = {pairs.__file__, selecting.__file__}

    def note(frame: FrameType, event: str, _: object) -> Any:
        nonlocal count
        count += event == "line"
        return note if frame.f_code.co_filename in files else None

    before = sys.gettrace()
    sys.settrace(note)
    try:
        path.select(messages_max, tokens_max=10_000)
    finally:
        sys.settrace(before)
    return count


@pytest.mark.parametrize("messages_max", [5, 1_000])
@pytest.mark.parametrize("kind", PATHS)
def test_twice_as_many_calls_and_results_take_twice_as_many_steps(kind: str, messages_max: int) -> None:
    some, twice = (steps(PATHS[kind](count), messages_max) for count in (240, 480))
    assert 0 < twice <= 2.2 * some
    assert twice <= 100 * sum(len(each.split("+")) for each in PATHS[kind](480))


def test_messages_without_parts_are_told_apart_by_their_role() -> None:
    bare = Path("?t").messages[0]
    assert bare.parts is UNSET
    assert set(Pairs([bare]).open) == {bare.id}


@pytest.mark.parametrize("said", [("u",), ("ca", "ra"), ("ca+ra",)])
def test_a_stretch_that_is_whole_has_nothing_open(said: Sequence[str]) -> None:
    assert not Pairs(Path(*said).messages[::-1]).open
