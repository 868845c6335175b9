from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import Raw

from threadkeep.domain import ops
from threadkeep.domain.bounds import OPS_BYTES_MAX, STREAM_BYTES_MAX
from threadkeep.domain.json_values import encode
from threadkeep.domain.ops import BeginPart, GrowText
from threadkeep.responder.outbox import BEAT, AnswerTooLarge, Outbox

TEXT = BeginPart(0, {"type": Raw(b'"text"'), "text": Raw(b'""')})


def batches(outbox: Outbox) -> list[bytes]:
    """All that is to be sent, accepted one by one."""
    sent = []
    while outbox.has_unsent:
        sent.append(outbox.next_batch())
        outbox.accept()
    return sent


def text_of(sent: list[bytes], index: int = 0) -> str:
    return "".join(
        op.text for batch in sent for op in ops.decode(batch) if isinstance(op, GrowText) and op.index == index
    )


@pytest.mark.parametrize("character", ["a", "é", "界", "🎨", "\u0000", '"', "\\"])
def test_a_large_text_goes_in_full_batches_that_are_cut_between_characters(character: str) -> None:
    outbox = Outbox()
    text = character * 30_000
    outbox.grow(0, text)
    assert outbox.is_urgent
    sent = batches(outbox)
    assert all(len(batch) <= OPS_BYTES_MAX for batch in sent)
    assert text_of(sent) == text
    assert all(len(one) + len(other) > OPS_BYTES_MAX // 2 for one, other in pairwise(sent))


def test_pieces_of_one_text_are_joined_within_a_batch() -> None:
    outbox = Outbox()
    outbox.add(TEXT)
    for piece in ("a", "b", "c"):
        outbox.grow(0, piece)
    assert batches(outbox) == [b'[["part",0,{"type":"text","text":""}],["text",0,"abc"]]']


@settings(deadline=None)
@given(
    st.text(alphabet=st.characters(exclude_categories=["Cs"]), max_size=40), st.lists(st.integers(0, 90), max_size=8)
)
def test_text_cut_between_surrogate_halves_comes_out_whole(text: str, cuts: list[int]) -> None:
    data = text.encode("utf-16-le")
    units = [data[at : at + 2].decode("utf-16-le", "surrogatepass") for at in range(0, len(data), 2)]
    edges = sorted({0, len(units), *(min(cut, len(units)) for cut in cuts)})
    outbox = Outbox()
    for start, end in pairwise(edges):
        outbox.grow(0, "".join(units[start:end]))
    outbox.release_halves()
    assert text_of(batches(outbox)) == text


def test_a_half_waits_for_its_other_half_in_its_own_part_alone() -> None:
    outbox = Outbox()
    outbox.grow(0, "a\ud83d")
    outbox.grow(1, "\udc69b")
    assert batches(outbox) == [encode([["text", 0, "a"], ["text", 1, "\ufffdb"]])]
    outbox.grow(0, "\udc69")
    outbox.grow(1, "c\ud83d")
    outbox.release_halves()
    assert batches(outbox) == [encode([["text", 0, "👩"], ["text", 1, "c\ufffd"]])]


def test_what_was_sent_once_stays_as_it_was_sent() -> None:
    outbox = Outbox()
    outbox.grow(0, "a")
    first = outbox.next_batch()
    outbox.grow(0, "b")
    assert outbox.next_batch() == first
    outbox.accept()
    assert outbox.next_batch() == b'[["text",0,"b"]]'


def test_a_beat_is_a_batch_of_its_own_and_is_not_said_again_in_a_new_epoch() -> None:
    outbox = Outbox()
    outbox.grow(0, "a")
    for expected in (b'[["text",0,"a"]]', BEAT, BEAT):
        assert outbox.next_batch() == expected
        outbox.accept()
    assert outbox.offset == 3
    outbox.grow(0, "b")
    outbox.restart()
    assert outbox.offset == 0
    assert batches(outbox) == [b'[["text",0,"ab"]]']


def test_rewound_it_says_the_same_again_and_there_is_no_place_beyond_the_end() -> None:
    outbox = Outbox()
    for text in ("a", "b", "c"):
        outbox.grow(0, text)
        outbox.next_batch()
        outbox.accept()
    assert outbox.rewind(1)
    assert batches(outbox) == [b'[["text",0,"b"]]', b'[["text",0,"c"]]']
    assert not outbox.rewind(4)
    assert not outbox.rewind(-1)
    assert outbox.offset == 3


def test_the_whole_answer_is_sent_and_unsent_together() -> None:
    outbox = Outbox()
    outbox.add(TEXT)
    outbox.grow(0, "a")
    outbox.next_batch()
    outbox.accept()
    outbox.grow(0, "b")
    assert [bytes(part["text"]) for part in outbox.assembly().parts()] == [b'"ab"']
    assert outbox.end() == 2
    assert [bytes(part["text"]) for part in outbox.assembly().parts()] == [b'"ab"']


def test_it_takes_as_much_as_a_stream_may_hold_and_then_refuses() -> None:
    outbox = Outbox()
    room = STREAM_BYTES_MAX // 8_100
    for _ in range(room):
        outbox.grow(0, "x" * 8_000)
    with pytest.raises(AnswerTooLarge):
        outbox.grow(0, "x" * 200_000)
    sent = batches(outbox)
    assert STREAM_BYTES_MAX - 2 * OPS_BYTES_MAX < sum(map(len, sent)) <= STREAM_BYTES_MAX


def test_what_was_not_accepted_can_be_dropped() -> None:
    outbox = Outbox()
    outbox.grow(0, "a")
    outbox.next_batch()
    outbox.accept()
    outbox.grow(0, "b" * 40_000)
    outbox.next_batch()
    outbox.grow(0, "c\ud83d")
    outbox.drop_unsent()
    outbox.release_halves()
    assert not outbox.has_unsent
    assert outbox.end() == 1
