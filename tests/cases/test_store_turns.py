"""Faults that people met in writing together: order, races, stale devices, refused writes (table: README.md)."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
from typing import Any, Final, TypeVar

import pytest
from valkey import Valkey

from local.state import Address
from tests.support.conversations import conversation as a_conversation
from tests.support.conversations import message as a_message
from tests.support.hot import client_of, hot_valkey
from tests.support.house import FAR_S, LAPTOP, PHONE, WORKER, Frame, House, text_part
from tests.support.leftovers import keys_left_for_ever
from tests.support.moto_table import TABLE, moto_clients
from tests.support.transfers import read_all
from threadkeep.domain import ids
from threadkeep.domain.commands import CreateMessage
from threadkeep.domain.errors import Refused, WarmUnavailable
from threadkeep.domain.json_values import encode, read_object
from threadkeep.domain.model import Caller, ConversationKey, StoredMessage
from threadkeep.stores import batch_delete, batch_get
from threadkeep.stores.bodies_memory import BodiesMemory
from threadkeep.stores.hot_keys import DEADLINES, HotKeys
from threadkeep.stores.manifests_dynamodb import ManifestsDynamoDB
from threadkeep.stores.quotas_valkey import QuotasValkey
from threadkeep.stores.warm_dynamodb import WarmDynamoDB
from threadkeep.stores.warm_memory import WarmMemory
from threadkeep.usecases import messages
from threadkeep.usecases.services import Services

T = TypeVar("T")

ANN: Final = Caller(
    tenant="acme", user="ann", scopes=frozenset({"chat"}), expires_at_ms=FAR_S * 1_000, connection="phone="
)
TOOLS: Final = Caller(
    tenant="acme", user="worker", scopes=frozenset({"produce"}), expires_at_ms=FAR_S * 1_000, connection="worker="
)
SENDERS: Final = 8


class Sandboxes:
    """Functions that run at once, as Lambda runs them: each with a connection of its own to one Valkey."""

    def __init__(self, house: House, address: Address, count: int) -> None:
        self.clients = [client_of(address, is_cluster=True) for _ in range(count)]
        self.services = [dataclasses.replace(house.services, hot=hot_valkey(client)) for client in self.clients]
        self._pool = ThreadPoolExecutor(count)

    def at_once(self, do: Callable[[Services, int], T]) -> list[T]:
        """All of them do it, begun at one instant."""
        start = Barrier(len(self.services))

        def run(number: int) -> T:
            start.wait()
            return do(self.services[number], number)

        return list(self._pool.map(run, range(len(self.services))))

    def close(self) -> None:
        """End them."""
        self._pool.shutdown()
        for client in self.clients:
            client.close()


@pytest.fixture
def sandboxes(house: House, valkey_cluster: Address) -> Iterator[Callable[[int], Sandboxes]]:
    """So many sandboxes; the house's own handlers work with the same Valkey."""
    made: list[Sandboxes] = []

    def make(count: int) -> Sandboxes:
        made.append(Sandboxes(house, valkey_cluster, count))
        house.replace(hot=made[-1].services[0].hot)
        return made[-1]

    yield make
    for each in made:
        each.close()


def said(conversation: str, parent: str | None, text: str, **fields: Any) -> CreateMessage:
    """A message to send."""
    part = read_object(f'{{"type":"text","text":"{text}"}}'.encode())
    return CreateMessage(conversation=conversation, parent=parent, parts=[part], **{"role": "user"} | fields)


def send(services: Services, command: CreateMessage, caller: Caller = ANN) -> str | Refused:
    """Send it; the message's id, or why not."""
    try:
        return str(json.loads(encode(messages.create(services, caller, command)["message"]))["id"])
    except Refused as refused:
        return refused


# --- order ----------------------------------------------------------------------------------------------------


def test_a41_ten_written_in_one_millisecond_keep_their_order(house: House) -> None:
    """A41: items written in one millisecond come back in another order, and the provider rejects them."""
    conversation = house.conversation()
    chain: list[str] = []
    for number in range(10):
        parent = chain[-1] if chain else None
        fields = {"conversation": conversation, "parent": parent, "role": "tool", "parts": [text_part(str(number))]}
        chain.append(house.ok(WORKER, "message.create", **fields)["message"]["id"])
    listed = house.ok(PHONE, "message.list", conversation=conversation)["messages"]
    assert [message["id"] for message in listed] == chain[::-1]
    context = house.ok(PHONE, "context.read", conversation=conversation)["messages"]
    assert [message["parts"][0]["text"] for message in context] == [str(number) for number in range(10)]


def test_a42_fifty_sent_in_one_millisecond_are_fifty(house: House, sandboxes: Callable[[int], Sandboxes]) -> None:
    """A42: two senders of one instant, and one message overwrites the other."""
    conversation = house.conversation()
    at_once = sandboxes(SENDERS).at_once
    texts = [str(number) for number in range(50)]

    def send_some(services: Services, sender: int) -> list[str | Refused]:
        commands = [said(conversation, None, text, fork=True) for text in texts[sender::SENDERS]]
        return [send(services, command) for command in commands]

    sent = [identifier for some in at_once(send_some) for identifier in some]
    assert len({str(identifier) for identifier in sent}) == 50
    assert sorted(message["parts"][0]["text"] for message in read_all(house, conversation)) == sorted(texts)


def test_a43_eight_writers_of_one_conversation_leave_every_entry_once(
    house: House, valkey_cluster: Address, sandboxes: Callable[[int], Sandboxes]
) -> None:
    """A43: parallel tool results are lost in Valkey, where all are one value that each reads, changes and writes."""
    rounds = 100
    conversation = house.conversation()
    at_once = sandboxes(SENDERS).at_once
    question = house.message(conversation)
    names = [[ids.mint(house.clock.ms + 1 + number) for number in range(rounds)] for _ in range(SENDERS)]

    def write(services: Services, writer: int) -> None:
        for number, name in enumerate(names[writer]):
            command = said(conversation, question, f"{writer}/{number}", role="tool", fork=True, message=name)
            assert send(services, command, TOOLS) == name
            assert messages.create(services, TOOLS, command)["duplicate"]

    at_once(write)
    kept = {message["id"]: message["parts"][0]["text"] for message in read_all(house, conversation)[1:]}
    assert len(kept) == rounds * SENDERS
    assert kept == {name: f"{writer}/{number}" for writer, own in enumerate(names) for number, name in enumerate(own)}
    # So does the cache, as far as it keeps them.
    newest = sorted(kept)[-SENDERS:]
    for name in newest:
        page = house.ok(PHONE, "context.read", conversation=conversation, leaf=name)["messages"]
        assert [message["id"] for message in page] == [question, name]
    with Valkey(host=valkey_cluster.host, port=valkey_cluster.port) as untyped:
        server: Any = untyped
        elements = server.lrange(HotKeys(house.key(conversation)).tail, 0, -1)
    assert len(elements) == len(set(elements)) > 0


# --- turns ----------------------------------------------------------------------------------------------------


def test_a44_a_device_that_knows_two_of_twenty_messages_adds_one_and_replaces_none(house: House) -> None:
    """A44: a stale tab overwrites the whole chat with what it knows of it."""
    conversation = house.conversation()
    path: list[str] = []
    for _ in range(20):
        path.append(house.message(conversation, path[-1] if path else None))
    before = read_all(house, conversation)
    reply = house.new_id()
    house.ok(LAPTOP, "message.respond", conversation=conversation, parent=path[0], reply=reply, fork=True)
    place = house.stream(conversation, path[0], message=reply, fork=True)
    house.ok(WORKER, "stream.close", **place, status="complete")
    after = read_all(house, conversation)
    assert [message["id"] for message in before] == path
    assert after == [*before, after[-1]]
    assert (after[-1]["id"], after[-1]["parent"]) == (reply, path[0])
    shown = house.ok(LAPTOP, "message.list", conversation=conversation, leaf=path[-1])["messages"]
    assert [message["id"] for message in shown] == path[::-1]


def test_a45_of_two_sends_at_one_instant_one_is_told_that_it_came_second(
    house: House, sandboxes: Callable[[int], Sandboxes]
) -> None:
    """A45: two tabs send at once, and answers stand under the wrong questions."""
    rounds = 200
    conversation = house.conversation()
    at_once = sandboxes(2).at_once
    leaf = house.message(conversation)
    path = [leaf]
    for number in range(rounds):
        house.clock.ms += 1

        def take_turn(services: Services, tab: int, number: int = number, leaf: str = leaf) -> str | Refused:
            return send(services, said(conversation, leaf, f"{number}/{tab}"))

        outcomes = at_once(take_turn)
        (first,) = [outcome for outcome in outcomes if isinstance(outcome, str)]
        (second,) = [outcome for outcome in outcomes if isinstance(outcome, Refused)]
        assert (second.code, second.reason) == ("conflict", "stale_leaf")
        assert second.detail == {"leaf": first}
        leaf = first
        path.append(first)
    listed = read_all(house, conversation)
    assert [message["id"] for message in listed] == path
    assert [message["parent"] for message in listed] == [None, *path[:-1]]


def test_a46_a_send_during_an_answer_is_refused_and_told_what_it_waits_for(house: House) -> None:
    """A46: a message sent in the middle of a turn starts a second, blind one."""
    conversation = house.conversation()
    question = house.message(conversation)
    place = house.stream(conversation, question)
    for parent in (question, place["stream"]):
        fields = {"conversation": conversation, "parent": parent, "role": "user", "parts": [text_part("more")]}
        refused = house.say(PHONE, "message.create", message=house.new_id(), **fields)
        reason = "stale_leaf" if parent == question else "parent_open"
        assert (refused["code"], refused["reason"]) == ("conflict", reason)
        assert parent != question or refused["detail"] == {"leaf": place["stream"]}
    assert [message["id"] for message in read_all(house, conversation)] == [question]
    house.ok(WORKER, "stream.close", **place, status="complete")
    follow_up = house.message(conversation, place["stream"])
    assert [message["id"] for message in read_all(house, conversation)] == [question, place["stream"], follow_up]


def test_a47_a_conversation_keeps_the_id_that_its_client_gave_it(house: House) -> None:
    """A47: a follow-up before the title is there, or a retry after an error, opens a new conversation."""
    conversation = house.conversation()
    question = house.message(conversation)
    failed = house.stream(conversation, question)
    error = {"code": "overloaded", "message": "The model is overloaded."}
    house.ok(WORKER, "stream.close", **failed, status="failed", error=error)
    again = house.stream(conversation, question, fork=True)
    house.ok(WORKER, "stream.close", **again, status="complete")
    house.message(conversation, again["stream"])  # there is no title yet
    house.ok(PHONE, "conversation.update", conversation=conversation, title="At last")
    repeated = house.ok(PHONE, "conversation.create", conversation=conversation)
    assert (repeated["conversation"]["id"], repeated["duplicate"]) == (conversation, True)
    (listed,) = house.ok(PHONE, "conversation.list")["items"]
    assert (listed["id"], listed["title"]) == (conversation, "At last")
    assert {message["conversation"] for message in read_all(house, conversation)} == {conversation}
    assert [message["status"] for message in read_all(house, conversation)][1:3] == ["failed", "complete"]


# --- writes that do not arrive --------------------------------------------------------------------------------


class Half:
    """A table that leaves 3 of a batch undone, as DynamoDB may, with an answer of 200; so many times."""

    def __init__(self, client: Any, times: int) -> None:
        self._client = client
        self.times = times

    def __getattr__(self, name: str) -> Any:
        return getattr(self._client, name)

    def _left(self, requests: list[Any]) -> int:
        self.times -= 1
        return len(requests) - 3 if self.times >= 0 else len(requests)

    def batch_write_item(self, **request: Any) -> Any:
        wanted = request["RequestItems"][TABLE]
        done = self._left(wanted)
        if wanted[:done]:
            self._client.batch_write_item(RequestItems={TABLE: wanted[:done]})
        return {"UnprocessedItems": {TABLE: wanted[done:]} if wanted[done:] else {}}

    def batch_get_item(self, **request: Any) -> Any:
        asked = request["RequestItems"][TABLE]
        done = self._left(asked["Keys"])
        answer: dict[str, Any] = {"Responses": {}}
        if asked["Keys"][:done]:
            answer = self._client.batch_get_item(RequestItems={TABLE: asked | {"Keys": asked["Keys"][:done]}})
        left = asked["Keys"][done:]
        return answer | {"UnprocessedKeys": {TABLE: asked | {"Keys": left}} if left else {}}


@pytest.mark.parametrize(("times", "is_whole"), [(2, True), (100, False)])
def test_a49_what_a_batch_left_undone_is_done_or_said_aloud(*, times: int, is_whole: bool) -> None:
    """A49: a batch reports success, and some of it was not done."""
    with moto_clients() as (client, _):
        whole = WarmDynamoDB(client, TABLE, BodiesMemory())
        owned = [a_conversation() for _ in range(25)]
        for each in owned:
            whole.create_conversation("acme", each)
        key = ConversationKey("acme", owned[0].id)
        sent = [a_message(key) for _ in range(25)]
        for message in sent:
            whole.put_message("acme", StoredMessage(message))
        pauses: list[float] = []
        reading = WarmDynamoDB(Half(client, times), TABLE, BodiesMemory(), sleep=pauses.append)  # type: ignore[arg-type]
        writing = ManifestsDynamoDB(Half(client, times), TABLE, sleep=pauses.append)  # type: ignore[arg-type]
        if is_whole:
            page = reading.list_conversations("acme", owned[0].owner, limit=25, cursor=None)
            assert {each.id for each in page.conversations} == {each.id for each in owned}
            writing.remove_messages(key, [message.id for message in sent])
            assert whole.read_messages(key, limit=25).messages == ()
            assert len(pauses) == 4
            return
        with pytest.raises(WarmUnavailable, match="left unprocessed"):
            reading.list_conversations("acme", owned[0].owner, limit=25, cursor=None)
        with pytest.raises(WarmUnavailable, match="left unprocessed"):
            writing.remove_messages(key, [message.id for message in sent])
        assert len(pauses) == batch_get.ATTEMPTS_MAX + batch_delete.ATTEMPTS_MAX - 2


class Refusing(WarmMemory):
    """Takes no message while it is told so."""

    refuses = False

    def put_message(self, tenant: str, stored: StoredMessage) -> StoredMessage | None:
        if self.refuses:
            raise WarmUnavailable("the table refuses the write")
        return super().put_message(tenant, stored)


def test_a50_a_write_that_the_store_refuses_is_no_message_for_anybody(house: House) -> None:
    """A50: an error in writing the history is logged, and the message shown as sent."""
    warm = Refusing()
    house.replace(warm=warm)
    conversation = house.conversation()
    house.ok(LAPTOP, "conversation.subscribe", conversation=conversation)
    question = house.message(conversation)
    place = house.stream(conversation, question)
    shown = len(house.frames(LAPTOP))
    warm.refuses = True
    close = {"status": "complete"} | place
    refused = house.say(WORKER, "stream.close", **close)
    assert (refused["code"], refused["retryable"]) == ("unavailable", True)
    sent: Frame = {"conversation": conversation, "message": house.new_id(), "parent": question, "fork": True}
    sent |= {"role": "user", "parts": [text_part("hello")]}
    refused = house.say(PHONE, "message.create", **sent)
    assert (refused["code"], refused["retryable"]) == ("unavailable", True)
    assert len(house.frames(LAPTOP)) == shown
    assert [message["id"] for message in read_all(house, conversation)] == [question]
    warm.refuses = False
    house.ok(WORKER, "stream.close", **close)
    house.ok(PHONE, "message.create", **sent)
    told = [frame["message"]["id"] for frame in house.frames(LAPTOP)[shown:]]
    assert told == [place["stream"], sent["message"]]


def test_a52_after_twenty_turns_every_key_in_valkey_ends_by_itself(
    house: House, valkey_cluster: Address, sandboxes: Callable[[int], Sandboxes]
) -> None:
    """A52: some keys never expire. But of the index of deadlines: eight keys, whose entries the sweeper removes."""
    client = sandboxes(1).clients[0]
    house.replace(quotas=QuotasValkey(client))
    conversation = house.conversation()
    house.ok(LAPTOP, "conversation.subscribe", conversation=conversation)
    leaf: str | None = None
    for number in range(20):
        question = house.message(conversation, leaf, text=str(number))
        place = house.stream(conversation, question)
        place["offset"] = house.ok(WORKER, "stream.append", **place, ops=[["text", 0, "answer"]])["offset"]
        leaf = str(house.ok(WORKER, "stream.close", **place, status="complete")["message"]["id"])
        house.ok(LAPTOP, "context.read", conversation=conversation)
    house.ok(LAPTOP, "stream.cancel", conversation=conversation, stream=house.new_id())  # one that never comes
    with Valkey(host=valkey_cluster.host, port=valkey_cluster.port) as untyped:
        server: Any = untyped
        own = [name for name in server.scan_iter(count=10_000) if conversation.encode() in name or b"acme" in name]
        assert len(own) >= 20
        endless = {name.decode() for name in own if server.pttl(name) < 0}
    assert endless <= set(DEADLINES)
    assert keys_left_for_ever(valkey_cluster) == []
