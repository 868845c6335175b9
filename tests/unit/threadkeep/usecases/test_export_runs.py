"""An export that takes several runs: handed on between conversations, cut anywhere, and the same file in the end."""

from __future__ import annotations

from collections import Counter
from typing import Any, Final

import msgspec
import pytest

from handlers.exporter import ExportFailed
from tests.support.exporting import TIME_MS, asked, content_of, deliver, lines_of, run_exports, shown
from tests.support.house import PHONE, House
from threadkeep.domain import exports as exports_domain
from threadkeep.domain.bounds import EXPORT_LIVES_MS, EXPORT_MS_MAX, EXPORT_PASSES_MAX
from threadkeep.domain.errors import WarmUnavailable
from threadkeep.domain.exports import Notes
from threadkeep.usecases import export_file, export_writing

CONVERSATIONS: Final = 5
PART_BYTES: Final = 1_000
"""So that files of a few messages have parts."""
CALL_MS: Final = 1_000
"""What every call of a store takes."""
RUN_MS: Final = 30_000 + 12 * CALL_MS
"""Room for a few conversations beside what the function spares: an export is handed on several times."""
FORMS: Final = ("jsonl", "chatgpt", "markdown")
STORES: Final = ("warm", "manifests", "erasures", "exports", "export_files", "export_queue")


class Killed(BaseException):
    """The sandbox died."""


class Calls:
    """All calls of the stores, each of which takes time. From one of them on they may raise.

    Attributes:
        made: how often each method was called, by its name.
    """

    def __init__(self, house: House, *, cut_after: int = 1_000_000, error: type[BaseException] = Killed) -> None:
        self.made: Counter[str] = Counter()
        self._house = house
        self._cut_after = cut_after
        self._error = error
        house.replace(**{name: _Counted(self, getattr(house, name)) for name in STORES})

    @property
    def total(self) -> int:
        """How many."""
        return self.made.total()

    def call(self, name: str, method: Any, args: Any, options: Any) -> Any:
        """Make it. What is cut has been done, and its answer is lost."""
        if self.total >= self._cut_after:
            raise self._error
        answer = method(*args, **options)
        self.made[name] += 1
        self._house.clock.ms += CALL_MS
        if self.total >= self._cut_after:
            raise self._error
        return answer

    def heal(self) -> None:
        """Nothing raises any more."""
        self._cut_after = 1_000_000


class _Counted:
    """A store whose calls are counted."""

    def __init__(self, calls: Calls, store: Any) -> None:
        self._calls = calls
        self._store = store

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._store, name)
        if not callable(method):
            return method
        return lambda *args, **options: self._calls.call(name, method, args, options)


@pytest.fixture(autouse=True)
def small_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (exports_domain, export_file):
        monkeypatch.setattr(module, "EXPORT_PART_BYTES", PART_BYTES)


@pytest.fixture
def conversations(house: House) -> list[str]:
    """Theirs, the newest last; the one before it has a retention."""
    made = []
    for number in range(CONVERSATIONS):
        house.clock.ms += 120_000
        conversation = house.conversation(PHONE, **({"retention_days": 2} if number == CONVERSATIONS - 2 else {}))
        for _ in range(2):
            house.message(conversation, text=f"text {number} " * 40, fork=True)
        made.append(conversation)
    house.clock.ms += 120_000
    return made


def one_run(house: House, form: str) -> bytes:
    """The file as one run makes it."""
    export = asked(house, form=form)
    assert run_exports(house) == ["done"]
    return content_of(house, export)


def to_the_end(house: House, remaining_ms: int = RUN_MS) -> list[str]:
    """Run what is queued, and what is queued by that; what became of each run."""
    outcomes: list[str] = []
    while house.export_queue.jobs:
        outcomes += run_exports(house, remaining_ms=remaining_ms)
        assert len(outcomes) < 100, "it goes on for ever"
    return outcomes


def last_notes(house: House) -> Notes:
    """Those that the next run goes on from."""
    contents = list(house.export_files.notes.values())
    return msgspec.msgpack.decode(contents[-1], type=Notes) if contents else Notes()


def until_it_breaks(house: House, error: type[BaseException]) -> Any:
    """Run what is queued, and what is queued by that, until a run breaks off; its job."""
    while True:
        (job,) = house.export_queue.take()
        try:
            deliver(job, remaining_ms=RUN_MS)
        except error:
            return job


def finished(house: House, export: str) -> dict[str, Any]:
    """What its owner is told, but for what differs from one export to the next."""
    told = shown(house, export)
    return {name: told[name] for name in ("state", "conversations", "messages", "skipped", "bytes")}


@pytest.mark.parametrize("form", FORMS)
def test_handed_on_from_run_to_run_it_is_the_same_file(house: House, conversations: list[str], form: str) -> None:
    whole = one_run(house, form)
    Calls(house)
    export = asked(house, form=form)
    outcomes = to_the_end(house)
    assert outcomes == ["handed_on"] * (len(outcomes) - 1) + ["done"]
    assert len(outcomes) >= 3
    assert content_of(house, export) == whole
    assert len(whole) > 3 * PART_BYTES
    assert finished(house, export) == {
        "state": "done",
        "conversations": len(conversations),
        "messages": 2 * len(conversations),
        "skipped": 0,
        "bytes": len(whole),
    }
    assert house.export_files.uploads == {}


def test_a_conversation_is_written_once_and_the_list_read_once(house: House, conversations: list[str]) -> None:
    """What each run costs: its export and notes, the conversation that the last one broke off, and what it hands on."""
    one = Calls(house)
    whole = one_run(house, "jsonl")
    several = Calls(house)
    export = asked(house)
    runs = len(to_the_end(house))
    assert content_of(house, export) == whole
    handed_on = runs - 1
    more = several.made - one.made
    assert several.made["list_conversations"] == one.made["list_conversations"] == 2
    assert (several.made["begin"], several.made["finish"]) == (1, 1)
    assert several.made["note"] == several.made["noted"] == several.made["hand_on"] == handed_on
    assert several.made["send"] == one.made["send"] + handed_on
    assert several.made["read_head"] <= len(conversations) + handed_on
    assert more["add"] <= handed_on


def test_its_owner_sees_how_far_it_is_between_runs(house: House, conversations: list[str]) -> None:
    Calls(house)
    export = asked(house)
    told = []
    while house.export_queue.jobs:
        run_exports(house, remaining_ms=RUN_MS)
        told.append(shown(house, export))
        assert not {"notes", "owner", "region"} & told[-1].keys()
    counts = [(one["conversations"], one["messages"], one["bytes"]) for one in told]
    assert counts == sorted(set(counts))
    assert [one["state"] for one in told] == ["running"] * (len(told) - 1) + ["done"]
    assert counts[-1][0] == len(conversations)


@pytest.mark.parametrize("form", FORMS)
def test_killed_after_any_call_it_is_the_same_file_in_the_end(
    house: House, conversations: list[str], form: str
) -> None:
    whole = one_run(house, form)
    asked(house, form=form)
    uncut = Calls(house)
    to_the_end(house)
    for cut_after in range(1, uncut.total):
        house.replace(**{name: getattr(house, name) for name in STORES})
        export = asked(house, form=form)
        calls = Calls(house, cut_after=cut_after)
        job = until_it_breaks(house, Killed)
        calls.heal()
        deliver(job, remaining_ms=RUN_MS)  # SQS brings it again
        to_the_end(house)
        assert content_of(house, export) == whole, f"cut after call {cut_after}"
        assert finished(house, export)["messages"] == 2 * len(conversations)


def test_a_store_that_is_away_at_any_call_is_waited_for(house: House, conversations: list[str]) -> None:
    whole = one_run(house, "chatgpt")
    asked(house, form="chatgpt")
    uncut = Calls(house)
    to_the_end(house)
    for cut_after in range(1, uncut.total):
        house.replace(**{name: getattr(house, name) for name in STORES})
        export = asked(house, form="chatgpt")
        calls = Calls(house, cut_after=cut_after, error=WarmUnavailable)
        job = until_it_breaks(house, ExportFailed)  # the queue is away too, so that nothing can be said of it
        calls.heal()
        deliver(job, remaining_ms=RUN_MS)
        to_the_end(house)
        assert content_of(house, export) == whole, f"away after call {cut_after}"
        assert finished(house, export)["messages"] == 2 * len(conversations)


def test_what_is_deleted_between_runs_is_not_in_the_file(house: House, conversations: list[str]) -> None:
    """The newest is written first: it is in the parts of the first run, and the file is begun anew."""
    calls = Calls(house)
    export = asked(house)
    assert run_exports(house, remaining_ms=RUN_MS) == ["handed_on"]
    doomed = conversations[-1]
    house.ok(PHONE, "conversation.delete", conversation=doomed)
    assert to_the_end(house)[-1] == "done"
    content = content_of(house, export)
    assert doomed.encode() not in content
    assert [line["id"] for line in lines_of(content) if line["type"] == "conversation"] == conversations[-2::-1]
    assert calls.made["begin"] == 2
    assert finished(house, export)["conversations"] == len(conversations) - 1
    assert house.export_files.uploads == {}


def test_what_is_deleted_before_its_turn_is_passed_over(house: House, conversations: list[str]) -> None:
    calls = Calls(house)
    export = asked(house)
    assert run_exports(house, remaining_ms=RUN_MS) == ["handed_on"]
    house.ok(PHONE, "conversation.delete", conversation=conversations[0])
    assert to_the_end(house)[-1] == "done"
    assert conversations[0].encode() not in content_of(house, export)
    assert calls.made["begin"] == 1


def test_what_expires_between_runs_is_not_in_the_file(house: House, conversations: list[str]) -> None:
    house.clock.ms += 2 * 24 * 60 * 60_000 - 10 * 60_000
    expiring = conversations[-2]
    Calls(house)
    export = asked(house)
    while expiring not in last_notes(house).written:
        assert run_exports(house, remaining_ms=RUN_MS) == ["handed_on"]
    house.clock.ms += 10 * 60_000
    assert to_the_end(house)[-1] == "done"
    assert expiring.encode() not in content_of(house, export)
    assert finished(house, export)["conversations"] == len(conversations) - 1


def test_who_deletes_between_runs_without_end_is_told_that_it_failed(
    house: House, conversations: list[str], monkeypatch: Any
) -> None:
    Calls(house)
    export = asked(house)
    finish = house.export_files.finish
    gone = list(conversations)

    def deleting(*args: Any) -> None:
        finish(*args)
        house.ok(PHONE, "conversation.delete", conversation=gone.pop())

    monkeypatch.setattr(house.export_files, "finish", deleting)
    assert to_the_end(house)[-1] == "failed"
    assert shown(house, export)["error"] == "unsettled"
    assert len(conversations) - len(gone) == EXPORT_PASSES_MAX


def test_a_run_that_was_overtaken_leaves_all_to_the_other(
    house: House, conversations: list[str], monkeypatch: Any
) -> None:
    """A job that came twice, and whose runs took turns: the second hands on first."""
    whole = one_run(house, "jsonl")
    Calls(house)
    export = asked(house)
    (job,) = house.export_queue.take()
    begin = house.export_files.begin
    outcomes: list[str] = []

    def twice(*args: Any) -> str:
        upload = begin(*args)
        monkeypatch.setattr(house.export_files, "begin", begin)
        outcomes.append(deliver(job, remaining_ms=RUN_MS))
        house.clock.ms -= 60_000  # the two ran at once
        return upload

    monkeypatch.setattr(house.export_files, "begin", twice)
    outcomes.append(deliver(job, remaining_ms=RUN_MS))
    assert outcomes == ["handed_on", "nothing"]
    assert len(house.export_queue.jobs) == 1
    assert len(house.export_files.uploads) == 1
    assert to_the_end(house)[-1] == "done"
    assert content_of(house, export) == whole
    assert len(conversations) == finished(house, export)["conversations"]


def test_parts_that_another_run_wrote_over_are_in_no_file(house: House, conversations: list[str]) -> None:
    whole = one_run(house, "jsonl")
    calls = Calls(house)
    export = asked(house)
    assert run_exports(house, remaining_ms=RUN_MS) == ["handed_on"]
    (((_, (_, upload)), parts),) = house.export_files.uploads.items()
    assert parts
    house.export_files.add("acme", export, upload, number=1, content=b"y" * PART_BYTES)
    assert to_the_end(house)[-1] == "done"
    assert content_of(house, export) == whole
    assert calls.made["begin"] == 2
    assert house.export_files.uploads == {}
    assert finished(house, export)["conversations"] == len(conversations)


def test_an_upload_and_notes_that_are_gone_are_begun_anew(house: House, conversations: list[str]) -> None:
    whole = one_run(house, "jsonl")
    for lost in ("uploads", "notes"):
        Calls(house)
        export = asked(house)
        assert run_exports(house, remaining_ms=RUN_MS) == ["handed_on"]
        getattr(house.export_files, lost).clear()
        assert to_the_end(house)[-1] == "done"
        assert content_of(house, export) == whole
        assert finished(house, export)["conversations"] == len(conversations)
        house.replace(**{name: getattr(house, name) for name in STORES})


# --- bounds -----------------------------------------------------------------------------------------------------


def test_a_conversation_that_no_run_can_write_is_too_large(house: House, conversations: list[str]) -> None:
    Calls(house)
    export = asked(house)
    long_ms = 30_000 + 4 * CALL_MS
    assert to_the_end(house, long_ms)[-1] == "failed"
    assert (shown(house, export)["state"], shown(house, export)["error"]) == ("failed", "too_large")
    assert house.export_files.uploads == {}
    assert ("acme", export) not in house.export_files.files
    assert len(conversations) == CONVERSATIONS


@pytest.mark.parametrize(("late_ms", "outcome"), [(0, "handed_on"), (EXPORT_MS_MAX, "failed")])
def test_it_is_handed_on_for_so_long_and_no_longer(
    house: House, conversations: list[str], late_ms: int, outcome: str
) -> None:
    Calls(house)
    export = asked(house)
    assert run_exports(house, remaining_ms=RUN_MS) == ["handed_on"]
    house.clock.ms += late_ms
    assert run_exports(house, remaining_ms=RUN_MS) == [outcome]
    told = shown(house, export)
    assert told.get("error") == (None if outcome == "handed_on" else "too_large")
    assert told["conversations"] < len(conversations)
    assert len(house.export_files.uploads) == (1 if outcome == "handed_on" else 0)


def test_a_file_has_so_many_bytes_and_no_more(house: House, monkeypatch: Any) -> None:
    house.message(house.conversation())
    size = len(one_run(house, "jsonl"))
    for bytes_max, error in ((size, None), (size - 1, "too_large")):
        monkeypatch.setattr(export_writing, "EXPORT_BYTES_MAX", bytes_max)
        export = asked(house)
        run_exports(house)
        assert shown(house, export).get("error") == error
        assert house.export_files.uploads == {}


def test_an_export_has_so_many_conversations_and_no_more(
    house: House, conversations: list[str], monkeypatch: Any
) -> None:
    for conversations_max, error in ((len(conversations), None), (len(conversations) - 1, "too_large")):
        monkeypatch.setattr(export_writing, "EXPORT_CONVERSATIONS_MAX", conversations_max)
        export = asked(house)
        run_exports(house)
        assert shown(house, export).get("error") == error


def test_the_parts_of_the_largest_file_are_as_many_as_s3_takes() -> None:
    from threadkeep.domain.bounds import EXPORT_BYTES_MAX, EXPORT_PART_BYTES  # noqa: PLC0415 -- the true ones

    assert EXPORT_BYTES_MAX / EXPORT_PART_BYTES < 10_000
    assert EXPORT_PART_BYTES >= 5 * 1024 * 1024
    assert EXPORT_MS_MAX + TIME_MS < EXPORT_LIVES_MS
