"""What the hot tier leaves in Valkey, and what it asks of it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from valkey import Valkey

from local.state import Address
from tests.support.hot import ANN, COMPLETE, ROOT, SystemClock, Talk, client_of, hot_valkey, new_id, older_id, stored
from threadkeep.domain.bounds import DUE_SHARDS, LEAF_MS, LEASE_MS, SETTLED_STATE_MS
from threadkeep.domain.streams import Due, Sealed, Writer
from threadkeep.stores.hot_keys import HotKeys
from threadkeep.stores.hot_valkey import HotValkey

SLACK_MS = 5_000
"""For a machine that is busy: a moment that was just now may lie so far back."""
NO_TTL, NO_KEY = -1, -2


@pytest.fixture
def server(valkey_cluster: Address) -> Iterator[Any]:
    """The server, past the code under test (Any: the library types it for async use too)."""
    with Valkey(host=valkey_cluster.host, port=valkey_cluster.port) as client:
        yield client


@pytest.fixture
def hot(valkey_cluster: Address) -> Iterator[HotValkey]:
    client = client_of(valkey_cluster, is_cluster=True)
    yield hot_valkey(client)
    client.close()


@pytest.fixture
def talk(hot: HotValkey) -> Talk:
    return Talk(hot)


# --- what is kept, and for how long ---------------------------------------------------------------------------


def test_a_live_streams_keys_have_no_ttl_and_a_settled_ones_state_does(server: Any, talk: Talk) -> None:
    keys = HotKeys(talk.key)
    state, log = keys.state(talk.stream), keys.log(talk.stream)
    epoch = talk.written(b"[1]", b"[2]")
    talk.open(writer=Writer("bob", "run-2"), takeover=True)
    epoch = talk.opened(takeover=True)
    for name in (state, log, keys.live):
        assert server.pttl(name) == NO_TTL
    talk.seal(epoch, 2)
    for name in (state, log, keys.live):
        assert server.pttl(name) == NO_TTL
    talk.settle()
    assert SETTLED_STATE_MS - SLACK_MS < server.pttl(state) <= SETTLED_STATE_MS
    assert (server.pttl(log), server.pttl(keys.live)) == (NO_KEY, NO_KEY)


def test_nothing_of_a_conversation_stays_for_ever_once_its_streams_have_settled(server: Any, talk: Talk) -> None:
    newer, forgotten = talk.other(), talk.other().other()
    talk.watch("c1")
    for each in (talk, newer):
        each.closed(b"[1]", fork=True)
        each.settle()
    forgotten.written(b"[1]", fork=True)
    forgotten.settle()
    talk.hot.claim(talk.key, new_id(), parent=None, fork=True)  # and is never put
    talk.hot.stop(talk.key, new_id(), COMPLETE)  # and is never opened
    talk.watch("c2")
    talk.hot.mark_lagging(talk.key, ["c2"])
    tag = HotKeys(talk.key).live.removesuffix(":live")
    names = [name for name in server.scan_iter(count=10_000) if name.decode().startswith(tag)]
    assert len(names) == 7  # three states, the leaf, the tail, the viewers, those that lag
    assert all(server.pttl(name) > 0 for name in names)


def test_the_viewers_go_with_their_longest_lease(server: Any, talk: Talk) -> None:
    name = HotKeys(talk.key).viewers
    talk.watch("c1", lease_ms=60_000)
    assert 60_000 - SLACK_MS < server.pttl(name) <= 60_000
    talk.watch("c2", lease_ms=20_000)
    assert 60_000 - SLACK_MS < server.pttl(name) <= 60_000
    talk.watch("c1", lease_ms=10_000)  # renewed by a token that ends sooner
    assert 20_000 - SLACK_MS < server.pttl(name) <= 20_000


def test_those_that_lag_go_with_their_longest_lease_too(server: Any, talk: Talk) -> None:
    keys = HotKeys(talk.key)
    talk.watch("c1", lease_ms=60_000)
    talk.watch("c2", lease_ms=20_000)
    talk.lag("c1")
    assert 60_000 - SLACK_MS < server.pttl(keys.lagging) <= 60_000
    assert 20_000 - SLACK_MS < server.pttl(keys.viewers) <= 20_000
    talk.resume(connection="c1")
    assert server.pttl(keys.lagging) == NO_KEY
    assert 60_000 - SLACK_MS < server.pttl(keys.viewers) <= 60_000


def test_a_conversations_leaf_stays_a_while_and_not_for_ever(server: Any, talk: Talk) -> None:
    """Claimed or not: whoever claimed may be gone, and no sweeper looks here."""
    name = HotKeys(talk.key).register

    def assert_stays(step: Callable[[], Any]) -> None:
        server.pexpire(name, 1_000)
        step()
        assert LEAF_MS - SLACK_MS < server.pttl(name) <= LEAF_MS

    assert_stays(lambda: talk.claim(new_id(), None, confirmed=None))
    assert_stays(lambda: talk.claim(new_id(), None, fork=True))
    assert_stays(lambda: talk.fill(new_id()))
    assert_stays(lambda: talk.opened(fork=True))
    assert_stays(talk.settle)


def test_a_stop_before_the_opening_waits_a_while_and_not_for_ever(server: Any, talk: Talk) -> None:
    talk.stop(COMPLETE)
    assert SETTLED_STATE_MS - SLACK_MS < server.pttl(HotKeys(talk.key).state(talk.stream)) <= SETTLED_STATE_MS


def test_a_stopped_streams_keys_have_no_ttl_until_it_settles(server: Any, talk: Talk) -> None:
    keys = HotKeys(talk.key)
    talk.written(b"[1]")
    talk.stop(COMPLETE)
    for name in (keys.state(talk.stream), keys.log(talk.stream), keys.live):
        assert server.pttl(name) == NO_TTL


def test_every_sign_of_life_renews_the_streams_lease(server: Any, talk: Talk) -> None:
    name = HotKeys(talk.key).state(talk.stream)

    def assert_renewed_by(step: Callable[[], Any]) -> None:
        server.hset(name, "lease", "0")
        step()
        ends_in_ms = int(server.hget(name, "lease") or 0) - SystemClock().now_ms()
        assert LEASE_MS - SLACK_MS < ends_in_ms <= LEASE_MS

    epoch = talk.opened()
    assert_renewed_by(talk.open)
    assert_renewed_by(lambda: talk.append(epoch, 0, b"[1]"))
    assert_renewed_by(lambda: talk.append(epoch, 0, b"[1]"))  # a duplicate
    assert_renewed_by(lambda: talk.append(epoch, 1, b"[]"))
    assert_renewed_by(lambda: talk.open(held=epoch))
    assert_renewed_by(lambda: talk.open(writer=Writer("bob", "run-2"), takeover=True))


@pytest.mark.parametrize("refused", ["append", "open", "seal"])
def test_what_is_refused_renews_nothing(server: Any, talk: Talk, refused: str) -> None:
    name = HotKeys(talk.key).state(talk.stream)
    epoch = talk.written(b"[1]")
    before = server.hgetall(name)
    if refused == "append":
        for asked in ((epoch, 2, b"[]"), (epoch, 0, b"[2]"), (epoch - 1, 1, b"[]"), (epoch + 1, 1, b"[]")):
            talk.append(*asked)
        talk.append(epoch, 1, principal="bob")
    elif refused == "open":
        talk.open(writer=Writer("bob", "run-2"))
        talk.open(writer=Writer("bob", "run-2"), held=epoch - 1)
    else:
        for place in ((epoch, 0), (epoch, 2), (epoch - 1, 1), (epoch + 1, 1)):
            assert not isinstance(talk.seal(*place), Sealed)
    assert server.hgetall(name) == before


def test_a_live_stream_takes_little_more_than_its_text(server: Any, talk: Talk) -> None:
    """At most twice, at the window of 40 characters a batch that producers begin with."""
    batch = b'[["text",0,"%s"]]' % (b"x" * 40)
    count = 500
    talk.written(*[batch] * count)
    keys = HotKeys(talk.key)
    names = (keys.state(talk.stream), keys.log(talk.stream), keys.live, keys.register)
    taken = sum(server.memory_usage(name, samples=0) or 0 for name in names)
    assert taken <= 2 * count * len(batch)


# --- what is asked for ----------------------------------------------------------------------------------------


VERBS: dict[str, tuple[int, Callable[[Talk, int], Any]]] = {
    # the commands that it takes, the call
    "open": (1, lambda talk, epoch: talk.open(held=epoch)),
    "open, refused": (1, lambda talk, _: talk.other().open()),
    "open, another": (1, lambda talk, _: talk.other().opened(fork=True)),
    "append": (1, lambda talk, epoch: talk.append(epoch, 1)),
    "resume": (1, lambda talk, _: talk.resume()),
    "subscribe": (1, lambda talk, _: talk.watch("c2")),
    "viewers": (1, lambda talk, _: talk.hot.viewers(talk.key)),
    "resume, lagging": (1, lambda talk, _: talk.resume(connection="c1")),
    "mark_lagging": (1, lambda talk, _: talk.lag("c1", "c2")),
    "mark_lagging nobody": (0, lambda talk, _: talk.lag()),
    "unsubscribe": (1, lambda talk, _: talk.hot.unsubscribe(talk.key, ["c1", "c2"])),
    "unsubscribe nobody": (0, lambda talk, _: talk.hot.unsubscribe(talk.key, [])),
    "live": (2, lambda talk, _: talk.hot.live(talk.key)),
    "live, nothing": (1, lambda talk, _: talk.hot.live(Talk(talk.hot).key)),
    "claim": (1, lambda talk, _: talk.claim(new_id(), None, fork=True)),
    "claim, confirmed": (1, lambda talk, _: talk.claim(new_id(), None, fork=True, confirmed=new_id())),
    "claim, refused": (1, lambda talk, _: talk.claim(new_id(), None)),
    "fill": (1, lambda talk, _: talk.fill(new_id())),
    "fill, an older one": (1, lambda talk, _: talk.fill(older_id())),
    "read_tail": (1, lambda talk, _: talk.tail()),
    "read_tail, of a leaf": (1, lambda talk, _: talk.tail(talk.stream)),
    "read_tail, missing": (1, lambda talk, _: talk.tail(new_id(), reader="r")),
    "read_tail, with the first message": (1, lambda talk, _: talk.tail(wants_first=True)),
    "load, with the first message": (
        1,
        lambda talk, _: talk.hot.load(talk.key, (), owner="o", first=stored(talk.key, older_id(), role="system")),
    ),
    "load": (1, lambda talk, _: talk.hot.load(talk.key, [stored(talk.key, older_id())], owner="o", newest=new_id())),
    "load, nothing": (1, lambda talk, _: talk.hot.load(talk.key, (), owner="o", reader="r")),
    "bury": (2, lambda talk, _: talk.hot.bury(talk.key)),
    "release": (1, lambda talk, _: talk.hot.release(talk.key, new_id())),
    "file": (1, lambda talk, _: talk.file()),
    "refile": (1, lambda talk, _: talk.hot.refile(Due(talk.key, talk.stream, 1), 2)),
    "unfile": (1, lambda talk, _: talk.hot.unfile(Due(talk.key, talk.stream, 1))),
    "due": (DUE_SHARDS, lambda talk, _: talk.hot.due(10)),
    "expire": (1, lambda talk, _: talk.expire()),
    "stop": (1, lambda talk, _: talk.stop(COMPLETE)),
    "stop, unopened": (1, lambda talk, _: talk.other().stop(COMPLETE)),
    "seal": (1, lambda talk, epoch: talk.seal(epoch, 1)),
    "settle": (1, lambda talk, _: talk.settle()),
}


@pytest.mark.parametrize("verb", VERBS)
def test_a_verb_is_one_command_and_touches_only_the_keys_it_declares(server: Any, talk: Talk, verb: str) -> None:
    expected, call = VERBS[verb]
    other = Talk(talk.hot)
    call(other, other.opened())  # so that the script is known
    talk.watch("c1")
    talk.said(2)
    epoch = talk.written(b"[1]", fork=True)
    talk.other().opened(fork=True)
    with server.monitor() as monitor:
        server.echo(MARK)
        _until_mark(monitor)
        call(talk, epoch)
        server.echo(MARK)
        seen = _until_mark(monitor)
    sent = [words for is_inner, words in seen if not is_inner]
    assert len(sent) == expected
    declared: set[str] = set()
    touched = 0
    for is_inner, words in seen:
        if not is_inner:
            declared = set(words[3 : 3 + int(words[2])]) if words[0] == "EVALSHA" else {words[1]}
        elif words[0] != "TIME":
            assert words[1] in declared
            touched += 1
    assert touched or not any(words[0] == "EVALSHA" for words in sent)


MARK = "mark"


def _until_mark(monitor: Any) -> list[tuple[bool, list[str]]]:
    """What the server ran: whether a script called it, and its words (none of the tests' has a space)."""
    seen: list[tuple[bool, list[str]]] = []
    while True:
        entry = monitor.next_command()
        words = entry["command"].split(" ")
        if words == ["ECHO", MARK]:
            return seen
        seen.append((entry["client_type"] == "lua", words))


def test_facts_and_ops_never_pass_through_the_scripts_decoder(server: Any, talk: Talk) -> None:
    """`cjson` would change numbers and empty lists."""
    facts = b'{"parent":null,"role":"assistant"}'
    epoch = talk.opened(writer=ANN, facts=ROOT)
    talk.append(epoch, 0, b'[ 1.0, 9007199254740993, {} ,"\\u0000"]')
    keys = HotKeys(talk.key)
    assert server.hget(keys.state(talk.stream), "facts") == facts
    assert server.lrange(keys.log(talk.stream), 0, -1) == [b'[ 1.0, 9007199254740993, {} ,"\\u0000"]']


def test_a_stream_that_settles_between_the_two_commands_of_live_is_left_out(
    talk: Talk, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert isinstance(talk.hot, HotValkey)
    newer = talk.other()
    talk.closed(b"[1]")
    newer.opened(fork=True)
    client = talk.hot._client
    command = client.command

    def settle_after_the_first(*words: str | bytes | int) -> Any:
        reply = command(*words)
        if words[0] == "HKEYS":
            talk.settle()
        return reply

    monkeypatch.setattr(client, "command", settle_after_the_first)
    assert [live.stream for live in talk.hot.live(talk.key)] == [newer.stream]
