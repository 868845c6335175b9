"""Sending messages: stored once, under the leaf unless they fork, and told to who watches."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.conversations import ROUNDTRIP_VALUES
from tests.support.house import LAPTOP, PHONE, START_MS, WORKER, Device, Frame, House, text_part
from threadkeep.domain import ids
from threadkeep.domain.bounds import ID_AHEAD_MS_MAX, METADATA_BYTES_MAX


def create(house: House, conversation: str, parent: str | None = None, **fields: Any) -> Frame:
    """Send a message that may be refused; the reply."""
    said = {"message": house.new_id(), "role": "user", "parts": [text_part("hello")]} | fields
    return house.say(said.pop("by", PHONE), "message.create", conversation=conversation, parent=parent, **said)


def stored(house: House, conversation: str) -> list[Frame]:
    """All that is kept of a conversation, newest first."""
    messages: list[Frame] = house.ok(PHONE, "message.list", conversation=conversation, leaf="all")["messages"]
    return messages


@pytest.fixture
def conversation(house: House) -> str:
    return house.conversation()


# --- what is kept ---------------------------------------------------------------------------------------------


def test_a_message_is_kept_as_it_was_sent(house: House, conversation: str) -> None:
    identifier, answer = house.new_id(), house.new_id()
    sent = {"role": "user", "parts": [text_part("Grüße, 界 😀")], "metadata": {"client": "web"}, "reply": answer}
    message = house.ok(PHONE, "message.create", conversation=conversation, message=identifier, parent=None, **sent)[
        "message"
    ]
    assert message == sent | {
        "id": identifier,
        "conversation": conversation,
        "parent": None,
        "status": "complete",
        "created_at": "2027-01-15T08:00:00.002Z",
        "tokens": {"count": 11, "estimated": True},  # of 44 bytes
    }
    assert stored(house, conversation) == [message]


def test_any_json_comes_back_equal_numbers_by_kind(house: House, conversation: str) -> None:
    awkward = ROUNDTRIP_VALUES.read_text().strip()
    part = '{"type":"unknown.kind","data":' + awkward + "}"
    body = (
        f'{{"action":"message.create","conversation":"{conversation}","message":"{house.new_id()}","parent":null,'
        f'"role":"user","parts":[{part}],"metadata":{{"n":{awkward}}}}}'
    )
    house.post(PHONE, body)
    (kept,) = house.warm.read_messages(house.key(conversation), limit=9).messages
    assert bytes(kept.message.metadata["n"]).decode() == awkward
    assert [bytes(value).decode() for value in kept.message.parts[0].values()] == ['"unknown.kind"', awkward]  # type: ignore[index]


def test_an_imported_message_keeps_its_date(house: House, conversation: str) -> None:
    old = ids.mint(1_500_000_000_000)
    message = house.ok(
        WORKER,
        "message.create",
        conversation=conversation,
        message=old,
        parent=None,
        role="assistant",
        parts=[],
        model="m-1",
        status="failed",
    )["message"]
    assert (message["created_at"], message["model"], message["status"]) == ("2017-07-14T02:40:00.000Z", "m-1", "failed")
    assert message["parts"] == []


@pytest.mark.parametrize("parts", [[], [text_part("")]])
def test_who_says_nothing_is_kept_as_saying_nothing(
    house: House, conversation: str, parts: list[dict[str, Any]]
) -> None:
    message = create(house, conversation, parts=parts)["message"]
    assert message["parts"] == parts
    (shown,) = house.ok(PHONE, "message.list", conversation=conversation)["messages"]
    assert shown["parts"] == parts


def test_a_message_without_an_id_is_given_one_after_its_parents(house: House, conversation: str) -> None:
    ahead = ids.mint(house.clock.ms + ID_AHEAD_MS_MAX)
    first = house.message(conversation, message=ahead)
    second = create(house, conversation, first, message=None)["message"]["id"]
    assert second > first
    assert ids.is_id(second)


@pytest.mark.parametrize(
    "parent",
    [
        ids.mint(START_MS + ID_AHEAD_MS_MAX + 1_000),
        "f0000000-0000-7000-8000-000000000000",
        "ffffffff-ffff-7fff-bfff-ffffffffffff",
    ],
    ids=["minutes", "beyond-year-9999", "the-last-id"],
)
@pytest.mark.parametrize("fork", [False, True])
def test_none_follows_a_parent_from_further_ahead_than_any_may_be(
    house: House,
    conversation: str,
    parent: str,
    fork: bool,  # noqa: FBT001 -- a case
) -> None:
    assert create(house, conversation, parent, message=None, fork=fork)["code"] == "bad_request"


@pytest.mark.parametrize("role", ["system", "assistant", "tool", "user"])
def test_produce_writes_every_role_for_every_user_of_its_tenant(house: House, conversation: str, role: str) -> None:
    assert create(house, conversation, role=role, by=WORKER)["message"]["role"] == role


@pytest.mark.parametrize("fields", [{"role": "assistant"}, {"role": "system"}, {"model": "m"}, {"status": "complete"}])
def test_chat_writes_no_other_role_no_model_and_no_status(
    house: House, conversation: str, fields: dict[str, str]
) -> None:
    assert create(house, conversation, **fields)["code"] == "unauthorized"
    assert stored(house, conversation) == []


# --- ids ------------------------------------------------------------------------------------------------------


def test_a_message_sent_again_is_the_same_and_stored_once(house: House, conversation: str) -> None:
    said: dict[str, Any] = {"message": house.new_id(), "metadata": {"b": 1, "a": [1.0]}}
    first = create(house, conversation, **said)
    again = create(house, conversation, **said | {"metadata": {"a": [1.0], "b": 1}})
    assert "duplicate" not in first
    assert again == first | {"duplicate": True}
    assert len(stored(house, conversation)) == 1


def test_sent_again_after_others_have_followed_it_is_still_the_same(house: House, conversation: str) -> None:
    first = house.new_id()
    create(house, conversation, message=first)
    house.message(conversation, house.message(conversation, first))
    assert create(house, conversation, message=first)["duplicate"] is True


@pytest.mark.parametrize(
    "other",
    [
        {"parts": [text_part("other")]},
        {"parts": []},
        {"metadata": {"a": 1}},
        {"reply": "01a3122a-1c00-7000-8000-000000000000"},
        {"by": WORKER, "role": "assistant"},
        {"by": WORKER, "status": "failed"},
        {"by": WORKER, "model": "m"},
    ],
)
def test_other_content_under_an_id_that_exists_is_refused(
    house: House, conversation: str, other: dict[str, Any]
) -> None:
    identifier = house.message(conversation)
    before = stored(house, conversation)
    reply = create(house, conversation, message=identifier, **other)
    assert (reply["code"], reply["reason"], reply["retryable"]) == ("conflict", "id_taken", False)
    assert stored(house, conversation) == before


def test_numbers_of_another_kind_are_other_content(house: House, conversation: str) -> None:
    identifier = house.new_id()
    create(house, conversation, message=identifier, metadata={"n": 1})
    assert create(house, conversation, message=identifier, metadata={"n": 1.0})["reason"] == "id_taken"


def test_another_parent_is_other_content(house: House, conversation: str) -> None:
    first = house.message(conversation)
    second = house.message(conversation, first)
    third = house.message(conversation, second)
    assert create(house, conversation, first, message=third, fork=True)["reason"] == "id_taken"
    assert create(house, conversation, first, message=third)["reason"] == "id_taken"


def test_the_id_of_a_live_stream_is_taken(house: House, conversation: str) -> None:
    question = house.message(conversation)
    stream = house.stream(conversation, question)["stream"]
    reply = create(house, conversation, question, message=stream, fork=True)
    assert (reply["code"], reply["reason"]) == ("conflict", "id_taken")


def test_two_conversations_may_use_one_id(house: House, conversation: str) -> None:
    message = house.message(conversation, text="here")
    other = house.conversation()
    create(house, other, message=message, parts=[text_part("there")])
    assert stored(house, other)[0]["parts"] == [text_part("there")]
    assert stored(house, conversation)[0]["parts"] == [text_part("here")]


def test_an_id_ahead_of_the_clock_is_refused(house: House, conversation: str) -> None:
    ahead = ids.mint(house.clock.ms + ID_AHEAD_MS_MAX + 2)
    assert create(house, conversation, message=ahead)["code"] == "bad_request"
    assert stored(house, conversation) == []


def test_an_id_that_is_not_greater_than_its_parents_is_refused(house: House, conversation: str) -> None:
    early = house.new_id()
    parent = house.message(conversation)
    for identifier in (early, parent):
        assert create(house, conversation, parent, message=identifier)["code"] == "bad_request"
    assert len(stored(house, conversation)) == 1


def test_metadata_is_bounded(house: House, conversation: str) -> None:
    text = "x" * (METADATA_BYTES_MAX - len(b'{"a":""}'))
    assert create(house, conversation, metadata={"a": text + "x"})["code"] == "too_large"
    assert create(house, conversation, metadata={"a": text})["type"] == "message.create.ok"


def test_a_message_of_too_many_parts_is_refused(house: House, conversation: str) -> None:
    assert create(house, conversation, parts=[{}] * 1_001)["code"] == "bad_request"
    assert len(create(house, conversation, parts=[{}] * 1_000)["message"]["parts"]) == 1_000


def test_what_is_wrong_with_the_request_comes_before_what_its_scope_forbids(house: House, conversation: str) -> None:
    ahead = ids.mint(house.clock.ms + ID_AHEAD_MS_MAX + 2)
    large = {"a": "x" * METADATA_BYTES_MAX}
    assert create(house, conversation, message=ahead, metadata=large, role="system")["code"] == "bad_request"
    assert create(house, conversation, metadata=large, role="system")["code"] == "too_large"


# --- turns ----------------------------------------------------------------------------------------------------


def test_a_message_follows_the_present_leaf(house: House, conversation: str) -> None:
    first = house.message(conversation)
    second = house.message(conversation, first)
    refused = create(house, conversation, first)
    assert (refused["code"], refused["reason"], refused["detail"]) == ("conflict", "stale_leaf", {"leaf": second})
    assert refused["retryable"] is False
    assert [message["id"] for message in stored(house, conversation)] == [second, first]


def test_a_second_root_is_stale_unless_it_forks(house: House, conversation: str) -> None:
    first = house.message(conversation)
    assert create(house, conversation, None)["detail"] == {"leaf": first}
    assert create(house, conversation, None, fork=True)["message"]["parent"] is None
    assert len(stored(house, conversation)) == 2


def test_in_an_empty_conversation_a_parent_is_stale_and_there_is_no_leaf(house: House, conversation: str) -> None:
    nowhere = house.new_id()
    refused = create(house, conversation, nowhere)
    assert (refused["reason"], refused["detail"]) == ("stale_leaf", {"leaf": None})


def test_a_fork_branches_from_any_settled_message(house: House, conversation: str) -> None:
    first = house.message(conversation)
    second = house.message(conversation, first)
    branch = create(house, conversation, first, fork=True)["message"]
    assert branch["parent"] == first
    assert [message["id"] for message in stored(house, conversation)] == [branch["id"], second, first]


def test_a_fork_from_a_message_that_is_not_here_may_be_tried_again(house: House, conversation: str) -> None:
    house.message(conversation)
    elsewhere = house.message(house.conversation())
    for nowhere in (house.new_id(), elsewhere):
        refused = create(house, conversation, nowhere, fork=True)
        assert (refused["code"], refused["reason"], refused["retryable"]) == ("conflict", "parent_missing", True)
    assert len(stored(house, conversation)) == 1


def test_a_send_during_an_answer_is_refused_and_names_it(house: House, conversation: str) -> None:
    question = house.message(conversation)
    stream = house.stream(conversation, question)["stream"]
    refused = create(house, conversation, question)
    assert (refused["reason"], refused["detail"]) == ("stale_leaf", {"leaf": stream})


@pytest.mark.parametrize("fork", [False, True])
def test_a_live_stream_is_no_parent_yet(house: House, conversation: str, fork: bool) -> None:  # noqa: FBT001 -- a case
    stream = house.stream(conversation, house.message(conversation))["stream"]
    refused = create(house, conversation, stream, fork=fork)
    assert (refused["code"], refused["reason"], refused["retryable"]) == ("conflict", "parent_open", True)
    assert len(stored(house, conversation)) == 1


def test_a_settled_answer_is_a_parent(house: House, conversation: str) -> None:
    question = house.message(conversation)
    place = house.stream(conversation, question)
    house.ok(WORKER, "stream.close", status="complete", **place)
    assert create(house, conversation, place["stream"])["message"]["parent"] == place["stream"]


# --- viewers --------------------------------------------------------------------------------------------------


def test_who_watches_is_told_and_who_sent_it_too(house: House, conversation: str) -> None:
    other = house.conversation()
    stranger = Device(connection="stranger=")
    house.ok(stranger, "conversation.subscribe", conversation=other)
    for device in (LAPTOP, PHONE):
        house.ok(device, "conversation.subscribe", conversation=conversation)
    message = create(house, conversation)["message"]
    event = {"type": "message.created", "conversation": conversation, "message": message}
    assert house.frames(LAPTOP) == house.frames(PHONE) == [event]
    assert house.frames(stranger) == []


def test_a_refused_message_is_told_to_nobody(house: House, conversation: str) -> None:
    house.message(conversation)
    house.ok(LAPTOP, "conversation.subscribe", conversation=conversation)
    create(house, conversation, None)
    assert house.frames(LAPTOP) == []


def test_a_repeated_message_is_told_again_since_its_first_run_may_have_died_before(
    house: House, conversation: str
) -> None:
    identifier = house.message(conversation)
    house.ok(LAPTOP, "conversation.subscribe", conversation=conversation)
    message = create(house, conversation, message=identifier)["message"]
    assert [frame["message"] for frame in house.frames(LAPTOP)] == [message]


def test_who_says_how_a_message_ended_asks_for_no_answer(house: House, conversation: str) -> None:
    """The fault: an import has every question of years answered again."""
    for status, asked in (({}, 1), ({"status": "complete"}, 0)):
        house.responder.requests.clear()
        answer = house.new_id()
        said = {"role": "user", "parts": [text_part("Why?")], "reply": answer, "fork": True, "parent": None}
        message = house.ok(WORKER, "message.create", conversation=conversation, **said, **status)["message"]
        assert message["reply"] == answer
        assert len(house.responder.requests) == asked
        again = house.ok(WORKER, "message.create", conversation=conversation, message=message["id"], **said, **status)
        assert again["duplicate"] is True
        assert len(house.responder.requests) == 2 * asked


def test_a_viewer_who_is_gone_is_forgotten(house: House, conversation: str) -> None:
    house.ok(LAPTOP, "conversation.subscribe", conversation=conversation)
    house.push.gone.add(LAPTOP.connection)
    first = house.message(conversation)
    house.push.gone.clear()
    house.message(conversation, first)
    assert house.frames(LAPTOP) == []


def test_a_message_larger_than_a_frame_comes_without_parts_everywhere(house: House, conversation: str) -> None:
    house.ok(LAPTOP, "conversation.subscribe", conversation=conversation)
    parts = [text_part("界" * 7_700)]
    message = create(house, conversation, parts=parts)["message"]
    assert "parts" not in message
    assert message["bytes"] == len('[{"type":"text","text":""}]') + 3 * 7_700
    assert message["tokens"] == {"count": -(-message["bytes"] // 4), "estimated": True}
    assert [frame["message"] for frame in house.frames(LAPTOP)] == [message]
    assert stored(house, conversation) == [message]
    repeated = create(house, conversation, message=message["id"], parts=parts)
    assert (repeated["message"], repeated["duplicate"]) == (message, True)
