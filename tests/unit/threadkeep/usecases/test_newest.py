"""The newest page of a path: from the hot tier, filled by one of its readers."""

from __future__ import annotations

import dataclasses
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from tests.support.conversations import noise
from tests.support.gates import Gated, Loading
from tests.support.house import LAPTOP, PHONE, WORKER, Device, Frame, House
from tests.support.tiers import Calls, Tale
from threadkeep.domain.bounds import TAIL_LOAD_MS, TAIL_MESSAGES_MAX, TAIL_POLL_MS, TAIL_WAIT_MS
from threadkeep.domain.errors import HotUnavailable, WarmUnavailable
from threadkeep.domain.model import Caller
from threadkeep.domain.tail import Tail
from threadkeep.usecases.newest import Wanted, open_newest

CAROL = Device(connection="carol=", user="carol")
ANN = Caller(tenant="acme", user="ann", scopes=frozenset({"chat"}), expires_at_ms=2**50, connection="c")


@pytest.fixture
def tale(house: House) -> Tale:
    return Tale(house)


def newest(tale: Tale, device: Device = PHONE, **fields: Any) -> Frame:
    return tale.house.ok(device, "message.list", conversation=tale.conversation, **({"limit": 20} | fields))


def ids_of(reply: Frame) -> list[str]:
    return [message["id"] for message in reply["messages"]]


# --- hot ------------------------------------------------------------------------------------------------------


def test_the_newest_20_are_one_call_of_the_hot_tier_and_none_of_the_table_in_any_sandbox(tale: Tale) -> None:
    chain = tale.chain(500)
    newest(tale)
    calls = Calls(tale.house)
    for device in (PHONE, LAPTOP, WORKER):
        calls.forget()
        reply = newest(tale, device)
        assert (ids_of(reply), reply["cursor"], reply["tier"]) == (chain[-20:][::-1], chain[-21], "hot")
        assert calls.counted == {"hot.read_tail": 1}


def test_of_500_warm_ones_the_newest_20_are_one_query_after_two_small_ones(tale: Tale) -> None:
    chain = tale.chain(500)
    tale.house.hot.unavailable = True
    calls = Calls(tale.house)
    reply = newest(tale)
    assert (ids_of(reply), reply["tier"]) == (chain[-20:][::-1], "warm")
    assert [call for call in calls.made if call[0] != "hot"] == [
        ("warm", "read_head", {}),
        ("manifests", "read", {}),
        ("warm", "read_messages", {"before": None, "after": None, "limit": 20}),
    ]


def test_who_the_conversation_belongs_to_is_asked_once_where_sends_have_filled_the_tail(house: House) -> None:
    tale = Tale(house)
    parent = None
    for _ in range(5):
        parent = house.message(tale.conversation, parent)
    calls = Calls(house)
    for heads in (1, 0):
        calls.forget()
        assert newest(tale)["tier"] == "hot"
        assert calls.counted["warm.read_head"] == heads


def test_a_tail_that_is_shorter_than_what_is_asked_is_read_on_and_filled(tale: Tale) -> None:
    chain = tale.chain(200)
    newest(tale, limit=5)
    calls = Calls(tale.house)
    reply = newest(tale, limit=50)
    assert (ids_of(reply), reply["tier"]) == (chain[-50:][::-1], "warm")
    assert len(calls.of("warm", "read_messages")) == 1
    assert newest(tale, limit=50)["tier"] == "hot"
    more = ids_of(newest(tale, limit=100))
    assert more == chain[-len(more) :][::-1]
    assert len(more) > TAIL_MESSAGES_MAX, "more than the hot tier ever holds, as far as a frame takes it"


def test_messages_beyond_what_a_frame_takes_are_not_waited_for(tale: Tale) -> None:
    """The tail is full of large messages: it holds fewer than were asked for, and more than a page shows."""
    tale.chain(30, text=noise(20_000))
    first = newest(tale)
    calls = Calls(tale.house)
    assert newest(tale) == first | {"tier": "hot"}
    assert calls.counted == {"hot.read_tail": 1}


def test_a_bound_that_lies_in_the_tail_is_served_from_it(tale: Tale) -> None:
    chain = tale.chain(100)
    newest(tale)
    reply = newest(tale, after=chain[-6], limit=100)
    assert (ids_of(reply), reply["cursor"], reply["tier"]) == (chain[-5:][::-1], None, "hot")


def test_a_named_leaf_is_served_from_the_tail_and_one_that_is_not_here_is_not_found(tale: Tale) -> None:
    chain = tale.chain(10)
    newest(tale)
    reply = newest(tale, leaf=chain[4])
    assert (ids_of(reply), reply["tier"]) == (chain[4::-1], "hot")
    reply = tale.house.say(PHONE, "message.list", conversation=tale.conversation, leaf=tale.house.new_id())
    assert reply["code"] == "not_found"


def test_what_nobody_has_written_is_asked_of_the_table_every_time(house: House) -> None:
    """The hot tier knows of no message: in another region there may be some."""
    tale = Tale(house)
    assert ids_of(newest(tale)) == []
    message = tale.put(None)
    assert ids_of(newest(tale)) == [message]


def test_a_live_stream_is_not_on_the_page_but_its_path_is(tale: Tale) -> None:
    house = tale.house
    question = house.message(tale.conversation)
    stream = house.stream(tale.conversation, question)["stream"]
    for leaf in (None, stream):
        assert ids_of(newest(tale, leaf=leaf)) == [question]
    house.hot.unavailable = True
    assert ids_of(newest(tale)) == [question]


@pytest.mark.parametrize("nth", [0, 2, 4])
def test_what_has_changed_in_the_cache_is_read_from_the_table(tale: Tale, nth: int) -> None:
    """It failed the newest page and every context, for as long as it was in the tail; or gave another text."""
    chain = tale.chain(5)
    expected = newest(tale)["messages"]
    assert newest(tale)["tier"] == "hot"
    elements = tale.house.hot._conversations[tale.key].tail
    element = elements[chain[nth]]
    for at in range(36, len(element)):
        elements[chain[nth]] = element[:at] + bytes([element[at] ^ 1]) + element[at + 1 :]
        reply = newest(tale)
        assert (reply["messages"], reply["tier"]) == (expected, "warm")
        context = tale.house.ok(PHONE, "context.read", conversation=tale.conversation)
        assert context["messages"] == expected[::-1]


def test_a_deleted_conversation_is_not_found_however_hot_it_is(tale: Tale) -> None:
    house = tale.house
    tale.chain(5)
    newest(tale)
    house.ok(PHONE, "conversation.delete", conversation=tale.conversation)
    assert house.say(PHONE, "message.list", conversation=tale.conversation)["code"] == "not_found"
    house.hot.unavailable = True
    assert house.say(PHONE, "message.list", conversation=tale.conversation)["code"] == "not_found"


# --- the lease ------------------------------------------------------------------------------------------------


class Sleeps:
    """Pauses of the readers: each moves the clock, and may have something happen."""

    def __init__(self, house: House, then: Callable[[], None] = lambda: None) -> None:
        self.made: list[float] = []
        self._house = house
        self._then = then
        house.replace(sleep=self)

    def __call__(self, seconds: float) -> None:
        self.made.append(seconds)
        self._house.clock.ms += round(seconds * 1_000)
        self._then()


def lease(tale: Tale, reader: str = "somebody") -> None:
    """Somebody else is loading."""
    tail = tale.house.hot.read_tail(tale.key, limit=20, reader=reader)
    assert isinstance(tail, Tail)
    assert not tail.is_loading


def test_who_finds_another_loading_waits_and_is_served_what_that_one_loaded(tale: Tale) -> None:
    house = tale.house
    chain = tale.chain(50)
    lease(tale)
    held = house.warm.read_messages(tale.key, limit=30).messages

    def load() -> None:
        house.hot.load(tale.key, held, owner="ann", newest=chain[-1], reader="somebody")

    sleeps = Sleeps(house, load)
    calls = Calls(house)
    reply = newest(tale)
    assert (ids_of(reply), reply["tier"]) == (chain[-20:][::-1], "hot")
    assert sleeps.made == [TAIL_POLL_MS / 1_000]
    assert calls.counted["warm.read_messages"] == 0


def test_who_has_waited_long_enough_reads_for_itself_and_loads_nothing(tale: Tale) -> None:
    chain = tale.chain(50)
    lease(tale)
    sleeps = Sleeps(tale.house)
    calls = Calls(tale.house)
    reply = newest(tale)
    assert (ids_of(reply), reply["tier"]) == (chain[-20:][::-1], "warm")
    assert sum(sleeps.made) == pytest.approx(TAIL_WAIT_MS / 1_000)
    assert calls.counted["hot.load"] == 0


def test_of_a_loader_that_died_another_takes_the_lease(tale: Tale) -> None:
    chain = tale.chain(50)
    lease(tale)
    tale.house.clock.ms += TAIL_LOAD_MS
    sleeps = Sleeps(tale.house)
    assert ids_of(newest(tale)) == chain[-20:][::-1]
    assert sleeps.made == []
    assert newest(tale)["tier"] == "hot"


def test_who_may_not_read_it_takes_no_lease(tale: Tale) -> None:
    tale.chain(50)
    asked = {"conversation": tale.conversation, "limit": 20}
    reply = tale.house.say(CAROL, "message.list", **asked)
    assert reply["code"] == "not_found"
    newest(tale)
    assert tale.house.say(CAROL, "message.list", **asked) == reply, "though all that was asked for is in the tail"
    tale.chain(1, tale.ids[-1])
    tale.house.lose_hot()
    tale.house.say(CAROL, "message.list", **asked)
    sleeps = Sleeps(tale.house)
    newest(tale)
    assert sleeps.made == []


def test_who_asked_for_a_leaf_that_is_not_here_keeps_nobody_waiting(tale: Tale) -> None:
    chain = tale.chain(50)
    sleeps = Sleeps(tale.house)
    asked = {"conversation": tale.conversation, "limit": 20, "leaf": tale.house.new_id()}
    assert tale.house.say(PHONE, "message.list", **asked)["code"] == "not_found"
    assert ids_of(newest(tale)) == chain[-20:][::-1]
    assert sleeps.made == []


@pytest.mark.parametrize("failing", ["read_tail", "load", "live"])
def test_with_the_hot_tier_away_at_any_call_the_page_is_read_all_the_same(
    tale: Tale, monkeypatch: pytest.MonkeyPatch, failing: str
) -> None:
    chain = tale.chain(50)

    def fail(*_: Any, **__: Any) -> None:
        raise HotUnavailable("told to fail")

    monkeypatch.setattr(tale.house.hot, failing, fail)
    assert ids_of(newest(tale)) == chain[-20:][::-1]


def test_with_the_hot_tier_away_a_cold_conversation_is_read_all_the_same(tale: Tale) -> None:
    chain = tale.chain(50)
    tale.rest()
    tale.archive(chain[:45])
    tale.house.hot.unavailable = True
    reply = newest(tale)
    assert (ids_of(reply), reply["tier"]) == (chain[-20:][::-1], "cold")
    context = tale.house.ok(PHONE, "context.read", conversation=tale.conversation, max_messages=20)
    assert ([message["id"] for message in context["messages"]], context["tier"]) == (chain[-20:], "cold")
    for message in (chain[0], chain[-1]):
        asked = {"conversation": tale.conversation, "stream": message, "epoch": 0, "offset": 0}
        assert tale.house.ok(PHONE, "stream.resume", **asked)["message"]["id"] == message


def test_a_reader_that_could_not_read_leaves_no_more_than_its_lease(tale: Tale) -> None:
    chain = tale.chain(50)
    tale.house.replace(warm=_Failing(tale.house.warm))
    assert tale.house.say(PHONE, "message.list", conversation=tale.conversation)["code"] == "unavailable"
    tale.house.replace(warm=tale.house.warm)
    Sleeps(tale.house)
    assert ids_of(newest(tale)) == chain[-20:][::-1]


class _Failing:
    def __init__(self, store: Any) -> None:
        self._store = store

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    def read_messages(self, *_: Any, **__: Any) -> Any:
        raise WarmUnavailable("told to fail")


def test_the_retention_of_a_conversation_bounds_what_the_tail_keeps(house: House) -> None:
    tale = Tale(house, conversation=house.conversation(retention_days=1))
    tale.chain(3)
    newest(tale)
    calls = Calls(house)
    newest(tale)
    assert calls.counted == {"hot.read_tail": 1}
    house.lose_hot()
    newest(tale)
    (loaded,) = calls.of("hot", "load")
    assert 0 < loaded["lives_ms"] <= 25 * 60 * 60_000


class Serialized:
    """The hot tier as Valkey is: one command at a time."""

    def __init__(self, store: Any) -> None:
        self._store = store
        self._lock = threading.Lock()

    def __getattr__(self, name: str) -> Any:
        call = getattr(self._store, name)

        def serialized(*args: Any, **kwargs: Any) -> Any:
            with self._lock:
                return call(*args, **kwargs)

        return serialized


def test_of_200_who_open_a_cold_conversation_at_once_one_reads_it_and_199_wait(tale: Tale) -> None:
    chain = tale.chain(300)
    tale.rest()
    tale.archive(chain)
    house = tale.house
    readers = 200
    waiting = threading.Semaphore(0)
    first_sleeps = threading.local()

    def sleep(_seconds: float) -> None:
        if not hasattr(first_sleeps, "done"):
            first_sleeps.done = True
            waiting.release()
        assert loaded.wait(timeout=20)

    loaded = threading.Event()
    cold = Gated(house.cold)
    hot = Serialized(house.hot)
    services = dataclasses.replace(house.services, cold=cold, hot=Loading(hot, loaded), sleep=sleep)

    def read() -> tuple[list[str], str]:
        opened = open_newest(services, ANN, tale.conversation, Wanted(leaf=None, limit=20, is_enough=lambda _: False))
        messages = [stored.message.id for _, stored in zip(range(20), opened.messages, strict=False)]
        return messages, opened.history.tier

    with ThreadPoolExecutor(readers) as pool:
        reading = [pool.submit(read) for _ in range(readers)]
        for _ in range(readers - 1):
            assert waiting.acquire(timeout=20)
        cold.gate.set()
        replies = [future.result(timeout=20) for future in reading]
    assert [messages for messages, _ in replies] == [chain[-20:][::-1]] * readers
    assert sorted(tier for _, tier in replies) == ["cold", *["hot"] * (readers - 1)]
    assert cold.reads == 1
    assert len(tale.house.hot.read_tail(tale.key, limit=100).messages) == TAIL_MESSAGES_MAX  # type: ignore[union-attr]
