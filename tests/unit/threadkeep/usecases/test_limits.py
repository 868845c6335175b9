"""How often somebody may ask, through the real handlers."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from tests.support.house import LAPTOP, PHONE, UNLIMITED, WORKER, Answer, Device, House
from threadkeep.domain.bounds import LEASE_MS, STREAM_MS_MAX, STREAMS_AGAIN_MS
from threadkeep.domain.commands import COMMANDS
from threadkeep.domain.errors import HotUnavailable
from threadkeep.domain.rates import Rate, Rates
from threadkeep.stores.quotas_memory import QuotasMemory
from threadkeep.usecases.sweeping import sweep

LIMITS = Rates(user=Rate(per_s=1.0, burst=3), tenant=Rate(per_s=10.0, burst=6), streams_max=20)
UMBRELLA = Device(connection="umbrella=", tenant="umbrella")


class NoQuotas(QuotasMemory):
    """Valkey is away."""

    def take(self, tenant: str, user: str | None) -> int:  # noqa: ARG002 -- whoever asks
        raise HotUnavailable("away")

    def lease_stream(self, tenant: str, user: str, stream: str) -> bool:  # noqa: ARG002 -- as above
        raise HotUnavailable("away")

    def release_stream(self, tenant: str, user: str, stream: str) -> None:  # noqa: ARG002 -- as above
        raise HotUnavailable("away")


@pytest.fixture
def strict(house: House) -> House:
    house.replace(quotas=QuotasMemory(house.clock, LIMITS), own_quotas=QuotasMemory(house.clock, LIMITS))
    return house


def codes(house: House, device: Device, times: int) -> list[str]:
    """Create conversations, one after the other."""
    return [house.say(device, "conversation.create").get("code", "ok") for _ in range(times)]


def test_beyond_the_burst_a_user_is_told_when_to_ask_again_and_is_then_served(strict: House) -> None:
    assert codes(strict, PHONE, 3) == ["ok"] * 3
    refused = strict.say(LAPTOP, "conversation.create")
    assert (refused["code"], refused["retryable"], refused["retry_after_ms"]) == ("rate_limited", True, 1_000)
    strict.clock.ms += 999
    assert codes(strict, PHONE, 1) == ["rate_limited"]
    strict.clock.ms += 1
    assert codes(strict, PHONE, 1) == ["ok"]


def test_a_tenant_at_its_limit_leaves_the_others_untouched(strict: House) -> None:
    for user in ("ann", "bob", "cy", "di"):
        codes(strict, msgspec.structs.replace(PHONE, user=user), 3)
    assert codes(strict, msgspec.structs.replace(PHONE, user="eve"), 1) == ["rate_limited"]
    assert codes(strict, UMBRELLA, 3) == ["ok"] * 3


def test_a_worker_is_bounded_by_its_tenant_alone(strict: House) -> None:
    assert codes(strict, WORKER, 7) == ["ok"] * 6 + ["rate_limited"]


def test_a_flood_of_random_ids_reads_no_table(strict: House) -> None:
    codes(strict, PHONE, 3)
    strict.warm.unavailable = True
    reply = strict.say(PHONE, "message.create", conversation=strict.new_id(), parent=None, role="user", parts=[])
    assert reply["code"] == "rate_limited"


def test_while_valkey_is_away_each_sandbox_counts_for_itself(strict: House) -> None:
    strict.replace(quotas=NoQuotas(strict.clock))
    assert codes(strict, PHONE, 4) == ["ok"] * 3 + ["rate_limited"]
    assert codes(strict, UMBRELLA, 1) == ["ok"]


def test_what_writes_or_costs_is_metered_and_appends_and_reads_are_not() -> None:
    metered = {str(command.__struct_config__.tag) for command in COMMANDS if command.metered}
    assert metered == {
        "blob.create",
        "conversation.create",
        "conversation.delete",
        "conversation.update",
        "export.create",
        "message.create",
        "message.respond",
        "stream.cancel",
        "stream.open",
    }


def test_a_close_is_metered_when_it_brings_the_message_itself(strict: House) -> None:
    answer = Answer(strict)
    opened = answer.open()
    while codes(strict, WORKER, 1) == ["ok"]:
        pass
    said: dict[str, Any] = {"body": [{"type": "text", "text": "a"}], "parent": answer.question, "role": "user"}
    never: dict[str, Any] = {"stream": strict.new_id(), "epoch": 1}
    assert answer.close(opened, 0, **never, **said)["code"] == "rate_limited"
    assert answer.close(opened, 0)["type"] == "stream.close.ok", "its opening was metered"


def test_stops_of_what_never_was_are_metered_and_one_of_an_answer_is_taken(strict: House) -> None:
    answer = Answer(strict)
    answer.open()
    strict.clock.ms += 10_000
    assert strict.say(PHONE, "stream.cancel", conversation=answer.conversation)["type"] == "stream.cancel.ok"
    stops = [
        strict.say(PHONE, "stream.cancel", conversation=answer.conversation, stream=strict.new_id()) for _ in range(3)
    ]
    assert [stop.get("code", "ok") for stop in stops] == ["ok", "ok", "rate_limited"]


# --- live streams of one owner --------------------------------------------------------------------------------

TWO = msgspec.structs.replace(UNLIMITED, streams_max=2)


@pytest.fixture
def two(house: House) -> House:
    """An owner may have two live streams."""
    house.replace(quotas=QuotasMemory(house.clock, TWO), own_quotas=QuotasMemory(house.clock, TWO))
    return house


def answers(house: House, number: int = 2) -> list[Answer]:
    """Conversations of one owner, each with an answer under way."""
    begun = [Answer(house) for _ in range(number)]
    for answer in begun:
        assert answer.written("so far")["type"] == "stream.open.ok"
    return begun


def has_room(house: House) -> bool:
    """Whether the owner may have one more; it is ended again."""
    answer = Answer(house)
    opened = answer.open()
    if opened["type"] == "error":
        assert (opened["code"], opened["retryable"]) == ("rate_limited", True)
        assert opened["retry_after_ms"] == STREAMS_AGAIN_MS
        return False
    assert answer.close(opened, 0)["type"] == "stream.close.ok"
    return True


def test_an_owner_has_so_many_live_streams_whoever_writes_them_and_the_others_have_theirs(two: House) -> None:
    answers(two)
    assert not has_room(two)
    other = Answer(two)
    assert other.open(by=msgspec.structs.replace(WORKER, user="another-worker"))["code"] == "rate_limited"
    bob = Device(connection="bob=", user="bob")
    conversation = two.conversation(bob)
    two.stream(conversation, two.message(conversation, by=bob))
    umbrella = msgspec.structs.replace(UMBRELLA, user="ann")
    conversation = two.conversation(umbrella)
    question = two.message(conversation, by=umbrella)
    two.stream(conversation, question, by=msgspec.structs.replace(WORKER, tenant="umbrella"))


def test_one_that_is_refused_leaves_nothing(two: House) -> None:
    answers(two)
    third = Answer(two)
    assert third.open()["code"] == "rate_limited"
    assert two.ok(PHONE, "conversation.subscribe", conversation=third.conversation)["live"] == []
    two.clock.ms += LEASE_MS
    assert third.stream not in {due.stream for due in two.hot.due(100)}


def test_a_repeated_open_of_a_live_one_is_no_new_one(two: House) -> None:
    first, _ = answers(two)
    assert first.open()["type"] == "stream.open.ok"
    assert first.open(producer="run-2", takeover=True)["type"] == "stream.open.ok"


def test_one_id_in_several_conversations_is_as_many_streams(two: House) -> None:
    stream = two.new_id()
    replies = [Answer(two).open(message=stream, parent=None, fork=True) for _ in range(3)]
    assert [reply.get("code", "ok") for reply in replies] == ["ok", "ok", "rate_limited"]


def test_an_open_refused_in_another_conversation_takes_no_live_streams_place_away(two: House) -> None:
    stream = two.new_id()
    assert Answer(two).open(message=stream, parent=None, fork=True)["type"] == "stream.open.ok"
    assert Answer(two).open(message=stream, parent=None)["reason"] == "stale_leaf"
    assert Answer(two).open()["type"] == "stream.open.ok"
    assert not has_room(two)


def test_a_close_gives_the_place_back(two: House) -> None:
    first, _ = answers(two)
    assert first.close(first.open(), 1)["type"] == "stream.close.ok"
    assert has_room(two)


def test_a_stop_gives_the_place_back(two: House) -> None:
    first, _ = answers(two)
    two.ok(PHONE, "stream.cancel", conversation=first.conversation)
    assert has_room(two)


def test_the_sweeper_gives_the_place_of_the_dead_back(two: House) -> None:
    answers(two)
    two.clock.ms += LEASE_MS
    assert sweep(two.services).ended == 2
    assert has_room(two)


def test_a_close_by_body_gives_the_place_back(two: House) -> None:
    first, _ = answers(two)
    opened = first.open()
    two.lose_hot()
    said: dict[str, Any] = {"body": [{"type": "text", "text": "so far"}], "parent": first.question, "role": "assistant"}
    assert first.close(opened, 1, **said)["type"] == "stream.close.ok"
    assert has_room(two)


def test_deleting_a_conversation_gives_the_places_of_its_streams_back(two: House) -> None:
    first, _ = answers(two)
    two.ok(PHONE, "conversation.delete", conversation=first.conversation)
    assert has_room(two)


def test_an_open_that_is_refused_for_another_reason_takes_no_place(two: House) -> None:
    answers(two, 1)
    for _ in range(3):
        assert Answer(two).open(parent=None)["reason"] == "stale_leaf"
    assert has_room(two)


def test_another_run_that_is_refused_takes_nobodys_place_away(two: House) -> None:
    first, _ = answers(two)
    assert first.open(producer="run-2")["reason"] == "held"
    assert not has_room(two)


def test_an_open_that_fails_takes_no_place(two: House) -> None:
    answers(two, 1)
    for _ in range(3):
        answer = Answer(two)
        two.hot.unavailable = True
        assert answer.open()["code"] == "unavailable"
        two.hot.unavailable = False
    assert has_room(two)


def test_a_lease_that_nobody_gave_back_ends_by_itself(two: House) -> None:
    for stream in ("one", "two"):
        assert two.services.quotas.lease_stream("acme", "ann", stream)
    assert not has_room(two)
    two.clock.ms += STREAM_MS_MAX
    assert has_room(two)


def test_while_valkey_is_away_each_sandbox_counts_live_streams_for_itself(two: House) -> None:
    two.replace(quotas=NoQuotas(two.clock))
    first, _ = answers(two)
    assert not has_room(two)
    assert first.close(first.open(), 1)["type"] == "stream.close.ok"
    assert has_room(two)
