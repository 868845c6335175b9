"""The connection to Valkey when things go wrong: what breaks, what is retried, what nobody may ever read."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

import pytest
from msgspec import UNSET
from valkey import Valkey
from valkey.exceptions import ResponseError

from local.ports import free_port
from local.state import Address
from tests.support.hot import COMPLETE, Talk, client_of, hot_valkey, new_id, older_id
from tests.support.relay import HOST, Relay
from threadkeep.domain.errors import HotUnavailable
from threadkeep.domain.streams import Accepted, Alive, Due, Duplicate, Opened, Resumed, Sealed
from threadkeep.stores import valkey_client
from threadkeep.stores.hot_keys import HotKeys
from threadkeep.stores.lua import Script, script


@pytest.fixture
def single(valkey_single: Address) -> Iterator[Any]:
    """The single server, past the code under test (Any: the library types it for async use too)."""
    with Valkey(host=valkey_single.host, port=valkey_single.port) as server:
        yield server


@pytest.fixture
def cluster(valkey_cluster: Address) -> Iterator[Any]:
    """The same of the one in cluster mode."""
    with Valkey(host=valkey_cluster.host, port=valkey_cluster.port) as server:
        yield server


@pytest.fixture
def relay(valkey_single: Address) -> Iterator[Relay]:
    with Relay(valkey_single) as relay:
        yield relay


@contextmanager
def talking(address: Address, *, is_cluster: bool = False) -> Iterator[Talk]:
    client = client_of(address, is_cluster=is_cluster)
    yield Talk(hot_valkey(client))
    client.close()


# --- connections ----------------------------------------------------------------------------------------------


def test_nothing_is_connected_before_the_first_command(relay: Relay) -> None:
    with talking(relay.address) as talk:
        assert relay.accepted == 0
        talk.opened()
        assert relay.accepted == 1


@pytest.mark.parametrize("is_cluster", [False, True])
def test_a_connection_that_the_server_closed_is_replaced_unnoticed(
    single: Any, cluster: Any, valkey_single: Address, valkey_cluster: Address, *, is_cluster: bool
) -> None:
    server = cluster if is_cluster else single
    with talking(valkey_cluster if is_cluster else valkey_single, is_cluster=is_cluster) as talk:
        epoch = talk.written(b"[1]")
        for offset in range(1, 4):
            server.client_kill_filter(_type="normal", skipme=True)
            assert talk.append(epoch, offset) == Accepted(offset + 1)


def test_a_connection_that_breaks_under_a_command_is_replaced_and_the_command_repeated(relay: Relay) -> None:
    with talking(relay.address) as talk:
        epoch = talk.written(b"[1]")
        with _cut_once_sent(relay):
            verdict = talk.append(epoch, 1)
        assert verdict == Duplicate(2)  # it had gone through: the repeat finds it there
        assert relay.accepted == 2


def test_a_server_that_falls_silent_costs_bounded_time(relay: Relay, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(valkey_client, "READ_TIMEOUT_S", 0.05)
    with talking(relay.address) as talk:
        epoch = talk.written(b"[1]")
        relay.silent = True
        started = time.monotonic()
        with pytest.raises(HotUnavailable, match="cannot be reached"):
            talk.append(epoch, 1)
        assert time.monotonic() - started < 1.0
        assert relay.accepted == 2  # once more on a fresh connection, then no more
        with pytest.raises(HotUnavailable):
            talk.append(epoch, 1)
        assert relay.accepted == 3  # no repeat where none had served
        relay.silent = False
        assert isinstance(talk.resume(epoch), Resumed)


@pytest.mark.parametrize("is_cluster", [False, True])
def test_nobody_there_and_then_somebody(valkey_single: Address, valkey_cluster: Address, *, is_cluster: bool) -> None:
    address = Address(host=HOST, port=free_port())
    with talking(address, is_cluster=is_cluster) as talk:
        for _ in range(2):
            with pytest.raises(HotUnavailable, match="cannot be reached"):
                talk.open()
        there = valkey_cluster if is_cluster else valkey_single
        client: Any = talk.hot
        client._client._connect = client_of(there, is_cluster=is_cluster)._connect
        assert isinstance(talk.open(), Opened)


def test_the_wrong_kind_of_server_is_named(valkey_single: Address) -> None:
    with talking(valkey_single, is_cluster=True) as talk, pytest.raises(HotUnavailable, match="Cluster mode"):
        talk.open()


def test_many_calls_share_few_connections(single: Any, valkey_single: Address) -> None:
    before = int(single.info("clients")["connected_clients"])
    with talking(valkey_single) as talk:
        for _ in range(200):
            other = Talk(talk.hot)
            other.closed(b"[1]")
            other.settle()
        assert int(single.info("clients")["connected_clients"]) <= before + 2


# --- going through all keys -----------------------------------------------------------------------------------


@pytest.mark.parametrize("is_cluster", [False, True])
def test_all_keys_are_gone_through_however_many(
    single: Any, cluster: Any, valkey_single: Address, valkey_cluster: Address, *, is_cluster: bool
) -> None:
    server = cluster if is_cluster else single
    tag = new_id()
    expected = {f"{{{tag}}}:{number}" for number in range(2_500)}
    server.mset(dict.fromkeys(expected, "1"))
    client = client_of(valkey_cluster if is_cluster else valkey_single, is_cluster=is_cluster)
    for _ in range(2):
        assert set(client.scan(f"{{{tag}}}:*")) == expected
        server.client_kill_filter(_type="normal", skipme=True)  # replaced unnoticed
    server.delete(*expected)
    client.close()


def test_a_server_that_goes_away_between_keys_is_told(single: Any, valkey_single: Address) -> None:
    tag = new_id()
    names = [f"{{{tag}}}:{number}" for number in range(2_500)]
    single.mset(dict.fromkeys(names, "1"))
    with Relay(valkey_single) as relay:
        client = client_of(relay.address, is_cluster=False)
        keys = client.scan("*")
        next(keys)
    with pytest.raises(HotUnavailable, match="cannot be reached"):
        list(keys)
    with pytest.raises(HotUnavailable, match="cannot be reached"):
        next(client.scan("*"))
    single.delete(*names)


# --- what the server says -------------------------------------------------------------------------------------


def test_a_server_that_lost_its_scripts_is_given_them_again(single: Any, valkey_single: Address) -> None:
    with talking(valkey_single) as talk:
        epoch = talk.opened()
        for offset in range(3):
            single.script_flush()
            assert talk.append(epoch, offset) == Accepted(offset + 1)


def test_a_first_message_that_full_memory_does_not_take_is_not_known(single: Any, valkey_single: Address) -> None:
    """Else a later one would be taken for it."""
    older = older_id()
    with talking(valkey_single) as talk:
        talk.said(2)
        talk.fill(new_id(), parent=talk.tail().leaf)
        assert talk.tail(limit=1, wants_first=True).first is None
        memory = single.config_get("maxmemory")["maxmemory"]
        single.config_set("maxmemory", "1mb")
        try:
            talk.fill(older, role="system")
        finally:
            single.config_set("maxmemory", memory)
        assert talk.tail(limit=1, wants_first=True).first is UNSET


def test_full_memory_refuses_what_fills_it_whole_and_lets_through_what_empties_it(
    single: Any, valkey_single: Address
) -> None:
    with talking(valkey_single) as talk:
        other = talk.other()
        other.opened(fork=True)
        epoch = talk.written(b"[1]", fork=True)
        state = single.hgetall(HotKeys(talk.key).state(talk.stream))
        memory = single.config_get("maxmemory")["maxmemory"]
        single.config_set("maxmemory", "1mb")
        try:
            for refused in (
                lambda: talk.append(epoch, 1),
                lambda: talk.open(held=epoch),
                lambda: talk.other().open(fork=True),
                lambda: talk.watch("c1"),
                lambda: talk.claim(new_id(), None, confirmed=None),
                talk.file,
            ):
                with pytest.raises(HotUnavailable, match="not able to serve"):
                    refused()
            assert single.hgetall(HotKeys(talk.key).state(talk.stream)) == state
            assert talk.resume(epoch) == Resumed(epoch=epoch, at=0, log=(b"[1]",), offset=1, more=False, sealed=False)
            assert len(talk.hot.live(talk.key)) == 2
            assert isinstance(talk.expire(), Alive)
            assert isinstance(other.stop(COMPLETE), Sealed)
            filled = new_id()
            talk.fill(filled)
            assert talk.tail(filled).messages == ()
            talk.hot.release(talk.key, new_id())
            talk.lag("c1")
            talk.hot.unsubscribe(talk.key, ["c1"])
            talk.hot.due(1)
            talk.hot.unfile(Due(talk.key, talk.stream, 1))
            assert isinstance(talk.seal(epoch, 1), Sealed)
            assert talk.settle() == ()
            assert talk.hot.viewers(talk.key) == ()
        finally:
            single.config_set("maxmemory", memory)
        assert isinstance(talk.other().open(fork=True), Opened)


def test_a_demoted_server_is_asked_once_more_on_a_fresh_connection(single: Any, relay: Relay) -> None:
    with talking(relay.address) as talk:
        epoch = talk.opened()
        single.replicaof(HOST, free_port())
        try:
            with pytest.raises(HotUnavailable, match="cannot be reached"):
                talk.append(epoch, 0)
            assert relay.accepted == 2
        finally:
            single.replicaof("NO", "ONE")
        assert talk.append(epoch, 0) == Accepted(1)


def test_a_cluster_without_that_slot_is_unavailable(cluster: Any, valkey_cluster: Address) -> None:
    with talking(valkey_cluster, is_cluster=True) as talk:
        epoch = talk.opened()
        slot = cluster.execute_command("CLUSTER KEYSLOT", HotKeys(talk.key).live)
        cluster.config_set("cluster-require-full-coverage", "no")
        cluster.execute_command("CLUSTER DELSLOTS", slot)
        try:
            with pytest.raises(HotUnavailable):
                talk.append(epoch, 0)
        finally:
            cluster.execute_command("CLUSTER ADDSLOTS", slot)
            cluster.config_set("cluster-require-full-coverage", "yes")
        assert isinstance(talk.open(), Opened)


@pytest.mark.usefixtures("keys_of_no_tenant")
@pytest.mark.parametrize("fault", ["return server.call('GET')", "return nil + 1", "return server.call('GET', 'x{y}')"])
@pytest.mark.parametrize("is_cluster", [False, True])
def test_a_fault_in_a_script_stays_an_error(
    valkey_single: Address, valkey_cluster: Address, fault: str, *, is_cluster: bool
) -> None:
    client = client_of(valkey_cluster if is_cluster else valkey_single, is_cluster=is_cluster)
    wrong = Script("wrong", f"#!lua\n{fault}", "0" * 40)
    if not is_cluster and "x{y}" in fault:
        assert client.run(wrong, ["{a}b"]) is None  # only a cluster minds
    else:
        with pytest.raises(ResponseError):
            client.run(wrong, ["{a}b"])
    client.close()


def test_a_script_is_its_flags_the_prelude_and_its_body() -> None:
    text = script("append").text
    assert text.startswith("#!lua\n-- Shared by all scripts")
    assert text.index("local function refuse_writer") < text.index("server.call('RPUSH', log, ops)")


# --- interrupted calls ----------------------------------------------------------------------------------------


class Interrupt(BaseException):
    """Raised where nothing expects it, as a signal or a cancelled thread is."""


POOL = {"get_connection", "make_connection", "release"}


class Tripwire:
    """Interrupts the code under test and the library when they have run so many lines."""

    def __init__(self, lines: int) -> None:
        self.left = lines

    def __enter__(self) -> None:
        sys.settrace(self._trace)

    def __exit__(self, *_: object) -> None:
        sys.settrace(None)

    def _trace(self, frame: FrameType, event: str, _: object) -> Callable[..., Any] | None:
        code = frame.f_code
        # The pool's own lock would stay locked by an interrupt in its frame: a fault of the library, of another kind.
        if "valkey" not in code.co_filename or code.co_name in POOL:
            return None
        if event == "line":
            self.left -= 1
            if self.left < 0:
                sys.settrace(None)
                raise Interrupt
        return self._trace


SLOW = "#!lua\nlocal i = 0\nwhile i < 40000 do i = i + 1 end\nreturn {'foreign'}"
"""Its reply is not there yet when the next call begins."""


@pytest.mark.usefixtures("keys_of_no_tenant")
@pytest.mark.parametrize("is_cluster", [False, True])
def test_no_interrupted_call_leaves_its_reply_to_the_next(
    valkey_single: Address, valkey_cluster: Address, *, is_cluster: bool
) -> None:
    """Two tenants share a client; one's calls are interrupted at every line in turn, the other's must be its own."""
    client = client_of(valkey_cluster if is_cluster else valkey_single, is_cluster=is_cluster)
    talk = Talk(hot_valkey(client))
    epoch = talk.written(b"[1]")
    mine = Resumed(epoch=epoch, at=0, log=(b"[1]",), offset=1, more=False, sealed=False)
    other = f"{{{new_id()}}}"
    interrupted = 0
    for lines in range(2_000):
        try:
            with Tripwire(lines):
                reply = client.command("EVAL", SLOW, 1, other)
        except Interrupt:
            interrupted += 1
        else:
            assert reply == [b"foreign"]
            break
        assert talk.resume() == mine
    assert interrupted > 100
    client.close()


@contextmanager
def _cut_once_sent(relay: Relay) -> Iterator[None]:
    """Cut the connections when the server has had what the block sends, before its answer is through."""
    before = len(relay.received)

    def cut() -> None:
        while len(relay.received) == before:
            time.sleep(0.001)
        time.sleep(0.02)
        relay.silent = False
        relay.cut()

    relay.silent = True
    cutter = threading.Thread(target=cut)
    cutter.start()
    yield
    cutter.join()
