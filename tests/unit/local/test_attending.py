from __future__ import annotations

import asyncio
import signal

import pytest

from local.attending import attended
from local.errors import LocalCloudError
from local.interrupts import SIGNALS, Interrupted
from threadkeep_client import UnavailableError


def alive() -> None:
    """Nothing is dead."""


def dead() -> None:
    raise LocalCloudError("Valkey is gone")


async def forever() -> None:
    await asyncio.get_running_loop().create_future()


async def test_it_returns_what_the_work_returns() -> None:
    async def work() -> int:
        return 7

    assert await attended("work", work(), check=alive, timeout_s=5) == 7


async def test_a_death_ends_work_that_waits() -> None:
    with pytest.raises(LocalCloudError, match=r"^Valkey is gone$"):
        await attended("work", forever(), check=dead, timeout_s=5)


async def test_work_that_takes_too_long_is_named() -> None:
    with pytest.raises(LocalCloudError, match=r"^work took longer than 0 s$"):
        await attended("work", forever(), check=alive, timeout_s=0.05)


async def fail() -> None:
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(refused())


async def refused() -> None:
    raise UnavailableError("no reply to ping in time")


async def test_the_error_of_a_deployment_becomes_one_line() -> None:
    with pytest.raises(LocalCloudError, match=r"^work failed: unavailable: no reply to ping in time$"):
        await attended("work", fail(), check=alive, timeout_s=5)


async def test_but_if_something_died_that_is_the_reason() -> None:
    looks = iter((alive,))

    def alive_once() -> None:
        next(looks, dead)()

    with pytest.raises(LocalCloudError, match=r"^Valkey is gone$"):
        await attended("work", fail(), check=alive_once, timeout_s=5)


async def test_a_signal_ends_it_and_handlers_are_as_before() -> None:
    before = [signal.getsignal(number) for number in SIGNALS]
    asyncio.get_running_loop().call_later(0.05, signal.raise_signal, signal.SIGTERM)
    with pytest.raises(Interrupted) as caught:
        await attended("work", forever(), check=alive, timeout_s=5)
    assert caught.value.exit_code == 128 + signal.SIGTERM
    assert [signal.getsignal(number) for number in SIGNALS] == before


async def test_connections_are_released_before_work_is_cancelled() -> None:
    told: list[str] = []

    async def work() -> None:
        try:
            await forever()
        finally:
            told.append("cancelled")

    async def release() -> None:
        told.append("released")

    with pytest.raises(LocalCloudError):
        await attended("work", work(), check=alive, timeout_s=0.05, release=release)
    assert told == ["released", "cancelled"]
