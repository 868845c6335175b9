"""A handler in a process of its own: it shares with this one the hot tier and the table, and no memory."""

from __future__ import annotations

import multiprocessing
from multiprocessing.connection import Connection
from typing import Any

from local.state import Address
from tests.support.hot import client_of, hot_valkey
from tests.support.house import House, serving
from threadkeep.stores.warm_memory import WarmMemory


class Remote:
    """A store at the other end of a pipe."""

    def __init__(self, pipe: Connection) -> None:
        self._pipe = pipe

    def __getattr__(self, name: str) -> Any:
        def call(*args: Any, **kwargs: Any) -> Any:
            self._pipe.send((name, args, kwargs))
            return self._pipe.recv()

        return call


def invoke_elsewhere(address: Address, warm: WarmMemory, event: dict[str, Any]) -> tuple[int, dict[str, Any]]:
    """Have a new process serve an event, with that Valkey and this table; its id, and what it answers.

    Raises:
        EOFError: it died.
    """
    here, there = multiprocessing.Pipe()
    context = multiprocessing.get_context("spawn")  # a fork would share what this process has in memory
    process = context.Process(target=_serve, args=(there, address, event), daemon=True)
    process.start()
    there.close()
    try:
        while True:
            name, args, kwargs = here.recv()
            if name == "":
                answered: tuple[int, dict[str, Any]] = args
                return answered
            here.send(getattr(warm, name)(*args, **kwargs))
    finally:
        here.close()
        process.join(10)
        process.kill()
        process.join()
        process.close()


def _serve(pipe: Connection, address: Address, event: dict[str, Any]) -> None:
    client = client_of(address, is_cluster=False)
    house = House()
    house.replace(hot=hot_valkey(client), warm=Remote(pipe))
    with serving(house):
        answer = house.invoke(event)
    client.close()
    pipe.send(("", (multiprocessing.current_process().pid, answer), {}))
