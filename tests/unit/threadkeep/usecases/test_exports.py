"""Exports: asked for, made once, seen by their owner alone, and gone after a day."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from handlers.exporter import ExportFailed
from tests.support.exporting import asked, content_of, deliver, exported, lines_of, run_exports, shown
from tests.support.house import LAPTOP, PHONE, WORKER, Device, Frame, House, text_part
from threadkeep.domain import ids, times
from threadkeep.domain.bounds import (
    EXPORT_ATTEMPTS_MAX,
    EXPORT_LIVES_MS,
    EXPORT_LOST_MS,
    EXPORT_PASSES_MAX,
    EXPORT_PAUSE_S,
    EXPORT_PROGRESS_MS,
    EXPORTS_RUNNING_MAX,
)
from threadkeep.domain.errors import WarmUnavailable
from threadkeep.domain.model import ConversationKey

BOB = Device(connection="bob=", user="bob")
UMBRELLA = Device(connection="umbrella=", tenant="umbrella")
BOTH = Device(connection="both=", user="server", scope="chat produce")


def conversations_in(content: bytes) -> list[str]:
    return [line["id"] for line in lines_of(content) if line["type"] == "conversation"]


def messages_in(content: bytes) -> list[str]:
    return [line["id"] for line in lines_of(content) if line["type"] == "message"]


def away(*_args: Any, **_options: Any) -> Any:
    """In place of a store's method."""
    raise WarmUnavailable("told to be away")


def delete(house: House, conversation: str) -> None:
    house.ok(PHONE, "conversation.delete", conversation=conversation)


def after_writing(house: House, monkeypatch: Any, act: Callable[[bytes], None]) -> None:
    """Whenever a file has been written, something happens before anybody looks further."""
    finish = house.export_files.finish

    def then(tenant: str, export: str, upload: str, parts: Sequence[str]) -> None:
        finish(tenant, export, upload, parts)
        act(content_of(house, export))

    monkeypatch.setattr(house.export_files, "finish", then)


# --- asking -----------------------------------------------------------------------------------------------------


def test_it_runs_first_and_then_there_is_a_link_to_what_is_the_owners(house: House) -> None:
    conversation = house.conversation(title="one", metadata={"n": 1.0})
    messages = [house.message(conversation), house.message(conversation, fork=True)]
    created: Frame = house.ok(PHONE, "export.create", format="jsonl")["export"]
    assert created == {
        "id": created["id"],
        "format": "jsonl",
        "state": "running",
        "created_at": times.to_rfc3339(house.clock.ms),
        "expires_at": times.to_rfc3339(house.clock.ms + EXPORT_LIVES_MS),
        "conversations": 0,
        "messages": 0,
        "skipped": 0,
        "bytes": 0,
    }
    assert shown(house, created["id"]) == created
    assert run_exports(house) == ["done"]
    content = content_of(house, created["id"])
    done = shown(house, created["id"], LAPTOP)
    url = done.pop("url")
    assert created["id"] in url
    assert ".jsonl" in url
    assert times.from_rfc3339(done.pop("url_expires_at")) == house.clock.ms + 15 * 60_000
    assert done == created | {"state": "done", "conversations": 1, "messages": 2, "bytes": len(content)}
    assert conversations_in(content) == [conversation]
    assert messages_in(content) == messages


def test_one_conversation_alone_is_exported_where_it_is_named(house: House) -> None:
    wanted, _other = house.conversation(), house.conversation()
    message = house.message(wanted)
    content = exported(house, conversation=wanted)
    assert conversations_in(content) == [wanted]
    assert messages_in(content) == [message]


@pytest.mark.parametrize("form", ["jsonl", "chatgpt", "markdown"])
def test_what_is_not_ones_own_is_in_no_export(house: House, form: str) -> None:
    house.message(house.conversation(), text="mine")
    house.message(house.conversation(BOB), by=BOB, text="bobs secret")
    house.message(house.conversation(UMBRELLA), by=UMBRELLA, text="their secret")
    content = exported(house, form=form)
    assert b"mine" in content
    assert b"secret" not in content


def test_a_foreign_conversation_is_not_found_also_by_who_produces_for_its_owner(house: House) -> None:
    conversation = house.conversation()
    for by in (BOB, UMBRELLA, BOTH):
        refused = house.say(by, "export.create", format="jsonl", conversation=conversation)
        assert refused["code"] == "not_found"
        assert refused == house.say(by, "export.create", format="jsonl", conversation=ids.mint(house.clock.ms))
    assert house.export_queue.jobs == []


def test_a_foreign_export_is_not_found_and_neither_is_one_that_expired_or_never_was(house: House) -> None:
    export = asked(house)
    run_exports(house)
    unknown = house.say(PHONE, "export.get", export=ids.mint(house.clock.ms))
    assert unknown["code"] == "not_found"
    assert [house.say(by, "export.get", export=export) for by in (BOB, UMBRELLA, BOTH)] == [unknown] * 3
    house.clock.ms += EXPORT_LIVES_MS - 1
    assert shown(house, export)["state"] == "done"
    house.clock.ms += 1
    assert house.say(PHONE, "export.get", export=export) == unknown


def test_who_only_produces_has_no_export(house: House) -> None:
    assert house.say(WORKER, "export.create", format="jsonl")["code"] == "unauthorized"


def test_an_unknown_form_is_refused(house: House) -> None:
    assert house.say(PHONE, "export.create", format="pdf")["code"] == "bad_request"


def test_asked_again_it_is_another_one_and_only_so_many_are_under_way(house: House) -> None:
    exports = [asked(house) for _ in range(EXPORTS_RUNNING_MAX)]
    assert len(set(exports)) == EXPORTS_RUNNING_MAX
    refused = house.say(PHONE, "export.create", format="jsonl")
    assert (refused["code"], refused["retryable"]) == ("rate_limited", True)
    assert refused["retry_after_ms"] > 0
    asked(house, BOB)
    run_exports(house)
    asked(house)


def test_one_that_could_not_be_queued_takes_no_place(house: House, monkeypatch: Any) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(house.export_queue, "send", away)
        for _ in range(EXPORTS_RUNNING_MAX + 1):
            assert house.say(PHONE, "export.create", format="jsonl")["code"] == "unavailable"
    asked(house)


# --- what is in it ----------------------------------------------------------------------------------------------


def test_every_conversation_of_a_long_list_is_in_it_once(house: House) -> None:
    conversations = [house.conversation() for _ in range(250)]
    content = exported(house)
    assert sorted(conversations_in(content)) == sorted(conversations)


def test_what_becomes_active_while_the_list_is_read_does_not_slip_by(house: House, monkeypatch: Any) -> None:
    """The list goes by activity: what is at its end when its first page is read may be at its front before the last."""
    conversations = []
    for _ in range(250):
        house.clock.ms += 60_000
        conversations.append(house.conversation())
    oldest = conversations[0]
    read = house.warm.list_conversations
    calls: list[str | None] = []

    def touching(*args: Any, **options: Any) -> Any:
        page = read(*args, **options)
        if not calls:
            house.clock.ms += 60_001
            house.warm.touch(house.key(oldest), now_ms=house.clock.ms)
        calls.append(options["cursor"])
        return page

    monkeypatch.setattr(house.warm, "list_conversations", touching)
    assert sorted(conversations_in(exported(house))) == sorted(conversations)
    assert len(calls) > 3


def test_of_an_owner_whose_list_never_stands_still_it_has_failed_when_the_run_is_over(
    house: House, monkeypatch: Any
) -> None:
    house.message(house.conversation())
    export = asked(house)
    read = house.warm.list_conversations
    calls: list[int] = []

    def importing(*args: Any, **options: Any) -> Any:
        page = read(*args, **options)
        house.clock.ms += 1_000
        house.conversation()
        calls.append(house.clock.ms)
        assert len(calls) < 2_000, "it goes on for ever"
        return page

    monkeypatch.setattr(house.warm, "list_conversations", importing)
    assert run_exports(house) == ["failed"]
    assert shown(house, export)["error"] == "too_large"


def test_deleted_and_expired_conversations_are_left_out(house: House) -> None:
    """A51: what had expired was still in exports."""
    gone, kept = house.conversation(), house.conversation()
    expiring = house.conversation(retention_days=1)
    delete(house, gone)
    house.clock.ms += 24 * 60 * 60_000 + 60_000
    assert conversations_in(exported(house)) == [kept]
    for conversation in (gone, expiring):
        assert house.say(PHONE, "export.create", format="jsonl", conversation=conversation)["code"] == "not_found"


@pytest.mark.parametrize("form", ["jsonl", "chatgpt", "markdown"])
def test_what_is_deleted_while_the_file_is_written_is_not_in_it(house: House, monkeypatch: Any, form: str) -> None:
    doomed, kept = house.conversation(), house.conversation()
    house.message(doomed, text="doomed text")
    house.message(kept, text="kept text")
    written: list[bytes] = []

    def act(content: bytes) -> None:
        if not written:
            delete(house, doomed)
        written.append(content)

    after_writing(house, monkeypatch, act)
    content = exported(house, form=form)
    assert b"doomed" in written[0]
    assert b"doomed" not in content
    assert b"kept text" in content


def test_what_expires_while_the_file_is_written_is_not_in_it(house: House, monkeypatch: Any) -> None:
    house.message(house.conversation(retention_days=1), text="expiring text")
    house.clock.ms += 24 * 60 * 60_000 - 60_000
    house.message(house.conversation(), text="kept text")
    written: list[bytes] = []

    def act(content: bytes) -> None:
        written.append(content)
        house.clock.ms += 120_000

    after_writing(house, monkeypatch, act)
    content = exported(house)
    assert b"expiring" in written[0]
    assert b"expiring" not in content
    assert b"kept text" in content


def test_the_counts_are_those_of_the_file_that_is_kept(house: House, monkeypatch: Any) -> None:
    doomed, kept = house.conversation(), house.conversation()
    for conversation in (doomed, kept):
        house.message(conversation)
    deleted: list[str] = []

    def act(_content: bytes) -> None:
        if not deleted:
            deleted.append(doomed)
            delete(house, doomed)

    after_writing(house, monkeypatch, act)
    export = asked(house)
    assert run_exports(house) == ["done"]
    done = shown(house, export)
    assert (done["conversations"], done["messages"]) == (1, 1)
    assert done["bytes"] == len(content_of(house, export))


def test_who_deletes_without_end_is_told_that_it_failed(house: House, monkeypatch: Any) -> None:
    conversations = [house.conversation() for _ in range(EXPORT_PASSES_MAX + 1)]
    after_writing(house, monkeypatch, lambda _content: delete(house, conversations.pop()))
    export = asked(house)
    assert run_exports(house) == ["failed"]
    assert (shown(house, export)["state"], shown(house, export)["error"]) == ("failed", "unsettled")


def test_one_conversation_that_is_deleted_meanwhile_is_not_found(house: House) -> None:
    conversation = house.conversation()
    export = asked(house, conversation=conversation)
    delete(house, conversation)
    assert run_exports(house) == ["failed"]
    told = shown(house, export)
    assert (told["state"], told["error"]) == ("failed", "not_found")
    assert "url" not in told


def test_a_conversation_without_messages_is_in_it_and_an_empty_export_is_a_file(house: House) -> None:
    assert exported(house) == b""
    assert json.loads(exported(house, form="chatgpt")) == []
    conversation = house.conversation()
    assert conversations_in(exported(house)) == [conversation]


def test_the_time_of_the_last_activity_is_told(house: House) -> None:
    conversation = house.conversation()
    house.clock.ms += 600_000
    house.message(conversation)
    (head, _message) = lines_of(exported(house))
    assert head["active_at"] == times.to_rfc3339(house.clock.ms)
    (head, _message) = lines_of(exported(house, conversation=conversation))
    assert head["active_at"] == times.to_rfc3339(house.clock.ms)


def test_half_surrogates_are_cleaned_at_the_door_and_nul_stays(house: House) -> None:
    """A59, A60: a chat with half a surrogate or U+0000 in it could not be exported."""
    conversation = house.conversation()
    said = [text_part("a\ud83d"), text_part("a\0b")]
    body = {"action": "message.create", "conversation": conversation, "parent": None, "role": "user", "parts": said}
    assert house.post(PHONE, json.dumps(body))["type"] == "message.create.ok"
    (_, message) = lines_of(exported(house))
    assert message["parts"] == [text_part("a\ufffd"), text_part("a\0b")]
    (one,) = json.loads(exported(house, form="chatgpt"))
    assert one["mapping"][message["id"]]["message"]["content"]["parts"] == ["a\ufffd", "a\0b"]
    assert "a\ufffdb" in exported(house, form="markdown").decode()


# --- making it --------------------------------------------------------------------------------------------------


def test_a_job_that_comes_twice_is_done_once(house: House) -> None:
    house.message(house.conversation())
    export = asked(house)
    (job,) = house.export_queue.take()
    assert deliver(job) == "done"
    first = shown(house, export)
    house.message(house.conversation())
    assert deliver(job) == "nothing"
    assert (first["messages"], shown(house, export)["messages"]) == (1, 1)


def test_two_runs_at_once_leave_one_result(house: House, monkeypatch: Any) -> None:
    house.message(house.conversation())
    export = asked(house)
    (job,) = house.export_queue.take()
    begin = house.export_files.begin
    inner: list[str] = []

    def twice(*args: Any) -> str:
        if not inner:
            inner.append("…")
            inner[0] = deliver(job)
        return begin(*args)

    monkeypatch.setattr(house.export_files, "begin", twice)
    assert (deliver(job), inner) == ("nothing", ["done"])
    assert shown(house, export)["messages"] == 1
    assert house.export_files.uploads == {}


def test_a_crash_is_made_good_by_the_next_delivery(house: House, monkeypatch: Any) -> None:
    house.message(house.conversation())
    export = asked(house)
    (job,) = house.export_queue.take()

    class Killed(BaseException):
        """The sandbox died."""

    def dying(*_args: Any) -> int:
        raise Killed

    with monkeypatch.context() as patch:
        patch.setattr(house.export_files, "finish", dying)
        with pytest.raises(Killed):
            deliver(job)
    assert shown(house, export)["state"] == "running"
    assert deliver(job) == "done"
    assert shown(house, export)["messages"] == 1


def test_a_crash_after_the_result_gives_the_place_back_at_the_next_delivery(house: House, monkeypatch: Any) -> None:
    exports = [asked(house) for _ in range(EXPORTS_RUNNING_MAX)]
    jobs = house.export_queue.take()
    with monkeypatch.context() as patch:
        patch.setattr(house.exports, "release", lambda *_args: None)
        assert [deliver(job) for job in jobs] == ["done"] * len(exports)
    assert house.say(PHONE, "export.create", format="jsonl")["code"] == "rate_limited"
    assert [deliver(job) for job in jobs] == ["nothing"] * len(exports)
    asked(house)


def test_while_a_store_is_away_it_is_tried_later_and_later_and_at_last_has_failed(
    house: House, monkeypatch: Any
) -> None:
    house.message(house.conversation())
    export = asked(house)

    monkeypatch.setattr(house.warm, "read_messages", away)
    delays = []
    for _ in range(EXPORT_ATTEMPTS_MAX - 1):
        assert run_exports(house) == ["again"]
        assert shown(house, export)["state"] == "running"
        delays += [delay_s for _, delay_s in house.export_queue.jobs]
    assert delays == [EXPORT_PAUSE_S * attempt for attempt in range(1, EXPORT_ATTEMPTS_MAX)]
    assert run_exports(house) == ["failed"]
    assert shown(house, export)["error"] == "unavailable"
    assert house.export_queue.jobs == []


def test_one_that_comes_back_in_time_is_done(house: House, monkeypatch: Any) -> None:
    house.message(house.conversation())
    export = asked(house)

    with monkeypatch.context() as patch:
        patch.setattr(house.export_files, "finish", away)
        assert run_exports(house) == ["again"]
    assert run_exports(house) == ["done"]
    assert shown(house, export)["messages"] == 1


def test_a_fault_ends_it_and_is_raised_without_its_text(house: House, monkeypatch: Any) -> None:
    export = asked(house)
    (job,) = house.export_queue.take()

    def broken(*_args: Any) -> int:
        raise ZeroDivisionError("what a user wrote")

    monkeypatch.setattr(house.export_files, "begin", broken)
    with pytest.raises(ExportFailed) as failed:
        deliver(job)
    assert "user wrote" not in repr(failed.value)
    assert failed.value.__cause__ is None
    assert shown(house, export)["error"] == "internal"
    assert deliver(job) == "nothing"


def test_what_takes_longer_than_a_run_has_failed_as_too_large(house: House) -> None:
    house.message(house.conversation())
    export = asked(house)
    assert run_exports(house, remaining_ms=30_000) == ["failed"]
    assert shown(house, export)["error"] == "too_large"
    assert ("acme", export) not in house.export_files.files


def test_one_that_was_never_finished_counts_as_lost_and_is_not_begun_any_more(house: House) -> None:
    export = asked(house)
    (job,) = house.export_queue.take()
    house.clock.ms += EXPORT_LOST_MS - 1
    assert shown(house, export)["state"] == "running"
    house.clock.ms += 1
    told = shown(house, export)
    assert (told["state"], told["error"]) == ("failed", "lost")
    assert deliver(job) == "failed"
    assert shown(house, export)["error"] == "lost"
    house.clock.ms += EXPORT_LIVES_MS
    assert deliver(job) == "nothing"


def test_its_owner_sees_how_far_it_is(house: House, monkeypatch: Any) -> None:
    for _ in range(4):
        house.message(house.conversation())
    export = asked(house)
    told: list[tuple[int, int]] = []
    read = house.warm.read_head

    def slowly(key: ConversationKey) -> Any:
        house.clock.ms += EXPORT_PROGRESS_MS
        now = shown(house, export)
        told.append((now["conversations"], now["messages"]))
        assert now["state"] == "running"
        return read(key)

    monkeypatch.setattr(house.warm, "read_head", slowly)
    assert run_exports(house) == ["done"]
    assert told[:4] == [(0, 0), (1, 1), (2, 2), (3, 3)]
