"""Ctrl-C, SIGTERM and a closed terminal all end a command the same way: what it started is stopped first."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import TYPE_CHECKING, Final, NoReturn

if TYPE_CHECKING:
    import asyncio

SIGNALS: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Interrupted(KeyboardInterrupt):
    """One of `SIGNALS` arrived. A KeyboardInterrupt, so that it passes through asyncio and libraries as Ctrl-C does."""

    def __init__(self, signal_number: int) -> None:
        super().__init__(signal.strsignal(signal_number))
        self.exit_code = 128 + signal_number


@contextmanager
def interruptible() -> Iterator[None]:
    """Within the block each of `SIGNALS` raises `Interrupted` in the main thread.

    Set for SIGINT too: a shell starts background jobs with SIGINT ignored, and Python then leaves it so.
    """

    def interrupt(number: int, _frame: FrameType | None) -> NoReturn:
        raise Interrupted(number)

    previous = {number: signal.signal(number, interrupt) for number in SIGNALS}
    try:
        yield
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)


@contextmanager
def shielded() -> Iterator[None]:
    """Put `SIGNALS` off until the block is done: between a start and its record, and while stopping.

    Outside the main thread, which alone hears signals, it does nothing.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    heard: list[int] = []
    previous = {number: signal.signal(number, lambda n, _: heard.append(n)) for number in SIGNALS}
    try:
        yield
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)
        if heard:
            signal.raise_signal(heard[0])


@contextmanager
def awaitable() -> Iterator[asyncio.Future[Interrupted]]:
    """Within an event loop: a future that the first of `SIGNALS` sets, in place of an exception at any instruction."""
    import asyncio  # noqa: PLC0415 -- half of what loading this module would take, before any signal is heard

    loop = asyncio.get_running_loop()
    heard: asyncio.Future[Interrupted] = loop.create_future()

    def hear(number: int) -> None:
        if not heard.done():
            heard.set_result(Interrupted(number))

    previous = {number: signal.getsignal(number) for number in SIGNALS}
    for number in SIGNALS:
        loop.add_signal_handler(number, hear, number)
    try:
        yield heard
    finally:
        for number, handler in previous.items():
            loop.remove_signal_handler(number)
            signal.signal(number, handler)
        heard.cancel()
