from __future__ import annotations

import pytest

from threadkeep_client import outbox
from threadkeep_client.errors import TooLargeError
from threadkeep_client.ops import fold
from threadkeep_client.outbox import Outbox
from threadkeep_client.wire import Op


def drain(box: Outbox) -> list[list[Op]]:
    batches = []
    while box.has_unsent:
        batches.append(box.next_batch())
        box.accept()
    return batches


def test_a_batch_stays_the_same_until_it_is_accepted() -> None:
    box = Outbox()
    box.add_text(0, "a")
    first = box.next_batch()
    box.add_text(0, "b")
    assert box.next_batch() is first == [["text", 0, "a"]]
    box.accept()
    assert box.next_batch() == [["text", 0, "b"]]


def test_a_beat_is_an_empty_batch_with_a_place_of_its_own() -> None:
    box = Outbox()
    assert box.next_batch() == []
    box.add_text(0, "a")
    assert box.next_batch() == []
    box.accept()
    assert box.next_batch() == [["text", 0, "a"]]
    assert box.offset == 1


def test_rewinding_says_the_same_again() -> None:
    box = Outbox()
    said = []
    for letter in "abc":
        box.add_text(0, letter)
        said += drain(box)
    assert box.rewind(1)
    assert drain(box) == said[1:]
    assert not box.rewind(4)
    assert not box.rewind(-1)
    assert box.offset == 3


def test_restarting_says_everything_in_few_batches_and_without_beats() -> None:
    box = Outbox()
    for letter in "abc":
        box.add_text(0, letter)
        box.next_batch()
        box.accept()
    box.next_batch()
    box.accept()
    box.add_text(0, "d")
    box.restart()
    assert box.offset == 0
    assert drain(box) == [[["text", 0, "abcd"]]]


@pytest.mark.parametrize(
    ("pieces", "text"),
    [
        (["\ud83d", "\ude00"], "😀"),
        (["a\ud83d", "", "\ude00b"], "a😀b"),
        (["\ud83d", "\ud83d", "\ude00"], "\ufffd😀"),
        (["\ud83d", "x"], "\ufffdx"),
        (["x\ud83d"], "x\ufffd"),
        (["\ude00"], "\ufffd"),
    ],
)
def test_half_surrogates_wait_for_their_other_half(pieces: list[str], text: str) -> None:
    box = Outbox()
    sent = []
    for piece in pieces:
        box.add_text(0, piece)
        sent += drain(box)
    box.release_halves()
    sent += drain(box)
    assert "".join(op[2] for batch in sent for op in batch) == text


def test_halves_of_several_parts_do_not_meet() -> None:
    box = Outbox()
    box.add_text(0, "\ud83d")
    box.add_text(1, "\ude00")
    box.add_text(0, "\ude00")
    box.set_fields(1, {"done": True})
    assert fold(op for batch in drain(box) for op in batch) == [
        {"type": "text", "text": "😀"},
        {"type": "text", "text": "\ufffd", "done": True},
    ]


def test_what_was_said_does_not_change_with_the_callers_objects() -> None:
    box, part = Outbox(), {"type": "data", "list": [1]}
    box.begin_part(0, part)
    part["list"] = []
    assert box.next_batch() == [["part", 0, {"type": "data", "list": [1]}]]


def test_an_answer_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(outbox, "ANSWER_BYTES_MAX", 40)
    box = Outbox()
    box.add_text(0, "x" * 20)
    with pytest.raises(TooLargeError, match="at most 40 bytes"):
        box.add_text(0, "x" * 20)
    assert drain(box) == [[["text", 0, "x" * 20]]]


def test_what_no_append_can_carry_is_refused_when_it_is_said() -> None:
    with pytest.raises(TooLargeError, match="piece by piece"):
        Outbox().begin_part(0, {"type": "tool_result", "output": "x" * 17_000})
