"""What the tail takes in Valkey, and what it asks of it: measured and counted on a real one."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest
from valkey import Valkey

from local.state import Address
from tests.support.conversations import text_parts
from tests.support.hot import Talk, client_of, hot_valkey, new_id, older_id, stored
from threadkeep.domain.bounds import GRAVESTONE_MS, LEAF_MS, TAIL_BYTES_MAX, TAIL_LOAD_MS, TAIL_MS
from threadkeep.domain.model import StoredMessage
from threadkeep.domain.tail import SEVERAL, Tail
from threadkeep.stores.hot_keys import HotKeys
from threadkeep.stores.packing import pack
from threadkeep.stores.tail_elements import to_element
from threadkeep.stores.valkey_client import MemoryFull, ValkeyClient

SLACK_MS: Final = 5_000
CHATS: Final = Path(__file__).parents[1] / "data" / "chats-demo.jsonl"
WORDS: Final = [
    word
    for line in CHATS.read_text(encoding="utf-8").splitlines()
    for message in json.loads(line)["messages"]
    for word in message["text"].split()
]
FILL_UP: Final = "for i = 1, 100000 do server.call('SET', '{others}:' .. i, i, 'PX', 600000) end"
EMPTY: Final = "for i = 1, 100000 do server.call('UNLINK', '{others}:' .. i) end"


@pytest.fixture
def server(valkey_cluster: Address) -> Iterator[Any]:
    """The server, past the code under test (Any: the library types it for async use too)."""
    with Valkey(host=valkey_cluster.host, port=valkey_cluster.port, socket_timeout=60) as client:
        yield client


@pytest.fixture
def client(valkey_cluster: Address) -> Iterator[ValkeyClient]:
    client = client_of(valkey_cluster, is_cluster=True)
    yield client
    client.close()


@pytest.fixture
def talk(client: ValkeyClient) -> Talk:
    return Talk(hot_valkey(client))


def talked(talk: Talk, count: int, *, words: tuple[int, ...]) -> list[StoredMessage]:
    """So many messages by turns of user and assistant, of so many words, put and filled; the oldest first."""
    source = random.Random(1)  # noqa: S311 -- nothing secret
    talk.hot.load(talk.key, (), owner="ann", newest=None)
    path: list[StoredMessage] = []
    for turn in range(count):
        text = " ".join(source.choices(WORDS, k=words[turn % len(words)]))
        message = stored(
            talk.key,
            new_id(),
            parent=path[-1].message.id if path else None,
            role="assistant" if turn % 2 else "user",
            parts=text_parts(text),
            epoch=1_795_981_771_616 if turn % 2 else 0,
        )
        talk.hot.fill(talk.key, message)
        path.append(message)
    return path


@pytest.mark.parametrize("words", [(1,), (5, 20), (12, 150), (300, 700), (1_500, 2_500)])
@pytest.mark.parametrize("count", [4, 20, 64])
def test_a_tail_takes_little_more_than_its_elements(
    server: Any, talk: Talk, count: int, words: tuple[int, ...]
) -> None:
    """Of one word or of pages of text: at most 1.2 times what is packed in it, and 200 bytes."""
    path = talked(talk, count, words=words)
    kept = server.llen(HotKeys(talk.key).tail)
    packed = sum(len(to_element(message)) for message in path[-kept:])
    assert kept == count or packed > TAIL_BYTES_MAX - 16_000
    assert server.memory_usage(HotKeys(talk.key).tail, samples=0) <= 1.2 * packed + 200


@pytest.mark.parametrize("words", [(12, 150), (300, 700), (1_500, 2_500)])
@pytest.mark.parametrize("count", [4, 20])
def test_with_links_and_facts_it_takes_little_more_than_the_bodies_in_the_table(
    server: Any, talk: Talk, count: int, words: tuple[int, ...]
) -> None:
    """Questions and answers of an ordinary length: of a few words each, the ids alone take more than the text."""
    path = talked(talk, count, words=words)
    bodies = sum(len(pack(message.message)) for message in path)
    assert server.memory_usage(HotKeys(talk.key).tail, samples=0) <= 1.2 * bodies + 200


def test_the_newest_twenty_are_one_command_however_much_else_is_kept(
    server: Any, client: ValkeyClient, talk: Talk, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = talked(talk, 40, words=(5, 20))
    talk.tail()  # so that the script is known
    server.eval(FILL_UP, 1, "{others}:1")
    try:
        assert server.dbsize() > 100_000
        sent: list[tuple[str | bytes | int, ...]] = []
        command = client.command

        def count(*words: str | bytes | int) -> Any:
            sent.append(words)
            return command(*words)

        monkeypatch.setattr(client, "command", count)
        tail = talk.tail(limit=20, reader="r")
    finally:
        server.eval(EMPTY, 1, "{others}:1")
    assert tail == Tail(
        owner="ann",
        leaf=path[-1].message.id,
        messages=tuple(reversed(path[-20:])),
        following=path[-21].message.id,
    )
    assert [words[0] for words in sent] == ["EVALSHA"]


def test_a_read_calls_the_server_as_often_however_long_the_conversation_is(server: Any, talk: Talk) -> None:
    """What the script itself does is bounded too: a few calls for each sixteen messages of the path."""

    def calls() -> int:
        server.config_resetstat()
        talk.tail(limit=20, reader="r")
        return sum(stats["calls"] for name, stats in server.info("commandstats").items() if "config" not in name)

    talked(talk, 25, words=(5,))
    first = calls()
    for _ in range(5):
        talked(talk, 20, words=(5,))
    assert calls() <= first <= 12


def test_every_key_goes_by_itself(server: Any, talk: Talk) -> None:
    keys = HotKeys(talk.key)
    [message] = talk.said(1, parent=older_id())
    talk.hot.load(talk.key, (), owner="ann", first=stored(talk.key, older_id(), role="system"))
    talk.tail(reader="r")
    assert TAIL_MS - SLACK_MS < server.pttl(keys.first) <= TAIL_MS
    server.pexpire(keys.first, 1_000)
    talk.fill(new_id(), parent=message.message.id)
    assert TAIL_MS - SLACK_MS < server.pttl(keys.first) <= TAIL_MS
    assert TAIL_MS - SLACK_MS < server.pttl(keys.tail) <= TAIL_MS
    assert 0 < server.pttl(keys.loading) <= TAIL_LOAD_MS
    server.pexpire(keys.tail, 1_000)
    server.pexpire(keys.register, 1_000)
    talk.hot.load(talk.key, [stored(talk.key, older_id())], owner="ann")
    assert TAIL_MS - SLACK_MS < server.pttl(keys.tail) <= TAIL_MS
    assert LEAF_MS - SLACK_MS < server.pttl(keys.register) <= LEAF_MS
    talk.hot.load(talk.key, [stored(talk.key, older_id())], owner="ann", lives_ms=60_000)
    assert 60_000 - SLACK_MS < server.pttl(keys.tail) <= 60_000
    assert 60_000 - SLACK_MS < server.pttl(keys.first) <= 60_000
    assert 60_000 - SLACK_MS < server.pttl(keys.register) <= 60_000
    talk.hot.bury(talk.key)
    assert GRAVESTONE_MS - SLACK_MS < server.pttl(keys.gravestone) <= GRAVESTONE_MS


def test_of_a_deleted_conversation_only_the_gravestone_is_left(server: Any, talk: Talk) -> None:
    leaf = talk.said(3, role="system")[-1].message.id
    settled, answer, live = talk.other(), talk.other(), talk.other()
    for ended in (settled, answer):  # the newest of them is the leaf, which is known besides
        ended.closed(b"[1]", fork=True)
        talk.hot.settle(talk.key, stored(talk.key, ended.stream, parent=leaf))
    live.written(b"[1]", fork=True)
    talk.watch("c1")
    talk.watch("c2")
    talk.lag("c2")
    talk.tail(new_id(), reader="r")
    tag = HotKeys(talk.key).live.removesuffix(":live")

    def left() -> set[str]:
        return {name.decode() for name in server.scan_iter(count=10_000) if name.decode().startswith(tag)}

    before = left()
    assert HotKeys(talk.key).first in before
    count, _ = talk.hot.bury(talk.key)
    assert left() == {HotKeys(talk.key).gravestone}
    assert count == len(before)


def test_a_burial_that_broke_off_is_ended_by_the_next(
    server: Any, client: ValkeyClient, talk: Talk, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between its two commands nothing comes that the second would not know of."""
    talk.said(3)
    talk.written(b"[1]", fork=True)
    run = client.run

    def break_off(script: Any, keys: Any, args: Any = ()) -> Any:
        if script.name == "bury":
            raise ConnectionError
        return run(script, keys, args)

    with monkeypatch.context() as patch:
        patch.setattr(client, "run", break_off)
        with pytest.raises(ConnectionError):
            talk.hot.bury(talk.key)
    talk.other().open(fork=True)
    count, _ = talk.hot.bury(talk.key)
    assert count == 5  # the register, the live streams, the tail, the state and its log
    assert not [name for name in server.scan_iter(count=10_000) if talk.stream in name.decode()]


def test_that_there_are_several_roots_is_known_no_longer_than_whose_the_conversation_is(
    server: Any, talk: Talk
) -> None:
    """What a retention ends is not to be known beyond that; a register that there was not has an end too."""
    register = HotKeys(talk.key).register
    talk.hot.note_several(talk.key)
    assert LEAF_MS - SLACK_MS < server.pttl(register) <= LEAF_MS
    talk.hot.load(talk.key, (), owner="ann", lives_ms=60_000)
    talk.hot.note_several(talk.key)
    assert 60_000 - SLACK_MS < server.pttl(register) <= 60_000


@pytest.mark.parametrize(("before", "role"), [("system", "user"), ("user", "system")])
def test_a_second_root_that_full_memory_does_not_take_leaves_no_first_message(
    client: ValkeyClient, talk: Talk, monkeypatch: pytest.MonkeyPatch, before: str, role: str
) -> None:
    """Memory is said to be full: where it is, what there is of the conversation may be evicted meanwhile."""
    leaf = talk.said(3, role=before)[-1].message.id
    run = client.run

    def refuse(script: Any, keys: Any, args: Any = ()) -> Any:
        if script.name == "fill":
            raise MemoryFull
        return run(script, keys, args)

    with monkeypatch.context() as patch:
        patch.setattr(client, "run", refuse)
        talk.fill(new_id(), role=role, parent=leaf)
        assert talk.tail(leaf, limit=1, wants_first=True).first != SEVERAL
        talk.fill(new_id(), role=role)
    assert talk.tail(leaf, limit=1, wants_first=True).first == SEVERAL


def test_that_a_conversation_has_no_system_message_is_known_for_a_few_bytes(server: Any, talk: Talk) -> None:
    register = HotKeys(talk.key).register
    talk.said(3)
    server.hdel(register, "first")
    before = server.memory_usage(register, samples=0)
    talk.hot.load(talk.key, (), owner="ann", first=stored(talk.key, older_id()))
    assert talk.tail(limit=1, wants_first=True).first is None
    assert not server.exists(HotKeys(talk.key).first)
    assert server.memory_usage(register, samples=0) - before <= 32
