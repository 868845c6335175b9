from __future__ import annotations

import signal

import pytest

from local.interrupts import SIGNALS, Interrupted, interruptible, shielded


@pytest.mark.parametrize("number", SIGNALS)
def test_each_signal_raises_and_gives_the_exit_code_of_the_shell(number: signal.Signals) -> None:
    with pytest.raises(Interrupted) as caught, interruptible():
        signal.raise_signal(number)
    assert caught.value.exit_code == 128 + number


def test_handlers_are_as_before_after_the_block() -> None:
    before = [signal.getsignal(number) for number in SIGNALS]
    with interruptible(), shielded():
        pass
    assert [signal.getsignal(number) for number in SIGNALS] == before


def test_a_shield_puts_an_interrupt_off_until_its_block_is_done() -> None:
    done = []

    def work() -> None:
        with shielded():
            signal.raise_signal(signal.SIGTERM)
            signal.raise_signal(signal.SIGINT)
            done.append("in the shield")
        done.append("never")

    with pytest.raises(Interrupted), interruptible():
        work()
    assert done == ["in the shield"]


def test_shields_nest() -> None:
    done = []

    def work() -> None:
        with shielded():
            with shielded():
                signal.raise_signal(signal.SIGINT)
            done.append("still shielded by the outer one")
        done.append("never")

    with pytest.raises(Interrupted), interruptible():
        work()
    assert done == ["still shielded by the outer one"]
