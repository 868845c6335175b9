from __future__ import annotations

import pytest

from threadkeep_client.answer import Answer, Verdict


def held(epoch: int, offset: int) -> Answer:
    answer = Answer("s", heard_at=0.0)
    if epoch:
        answer.take([["text", 0, "x"]], epoch=epoch, following=offset)
    return answer


@pytest.mark.parametrize(
    ("place", "frame", "verdict"),
    [
        ((0, 0), (7, 0), Verdict.APPLY),
        ((0, 0), (7, 3), Verdict.RESUME),
        ((7, 3), (7, 3), Verdict.APPLY),
        ((7, 3), (7, 2), Verdict.IGNORE),
        ((7, 3), (7, 4), Verdict.RESUME),
        ((7, 3), (6, 3), Verdict.IGNORE),
        ((7, 3), (6, 9), Verdict.IGNORE),
        ((7, 3), (8, 0), Verdict.RESUME),
        ((7, 3), (8, 3), Verdict.RESUME),
    ],
)
def test_a_frame_is_judged_by_epoch_and_offset(
    place: tuple[int, int], frame: tuple[int, int], verdict: Verdict
) -> None:
    assert held(*place).judge(*frame) is verdict


def test_a_restart_drops_what_was_held() -> None:
    answer = held(7, 3)
    assert (answer.text, answer.is_empty) == ("x", False)
    answer.restart(8)
    assert (answer.text, answer.parts, answer.epoch, answer.offset, answer.is_empty) == ("", [], 8, 0, True)
