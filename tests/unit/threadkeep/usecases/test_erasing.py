"""Erasing: pass by pass until nothing is left, whatever lands in between or afterwards, and whatever breaks off."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import Any

import pytest

from tests.support.conversations import tombstone
from tests.support.erasing import SECOND_PASS_MS, Region, job, left_of, record, sqs_record
from tests.support.house import LAPTOP, PHONE, WORKER, Answer, Frame, House
from threadkeep.domain import times
from threadkeep.domain.bounds import QUEUE_DELAY_S_MAX
from threadkeep.domain.erasure import Terms
from threadkeep.domain.errors import HotUnavailable, WarmUnavailable
from threadkeep.domain.model import Message, StoredMessage
from threadkeep.domain.ops import Parts
from threadkeep.domain.uploads import Upload
from threadkeep.schema import SORT_GONE
from threadkeep.stores import table_keys
from threadkeep.usecases.erasing import erase, herald
from threadkeep.usecases.sweeping import sweep

PICTURE = b"\x89PNG\0 a picture"


@pytest.fixture
def answer(house: House) -> Answer:
    return Answer(house)


@pytest.fixture
def region(answer: Answer) -> Region:
    """Whose stream begins behind the question."""
    return Region(answer.house)


def upload(house: House, conversation: str, content: bytes = PICTURE) -> Frame:
    """Ask where to put it, and put it there; the blob part that names it."""
    sha256 = hashlib.sha256(content).hexdigest()
    said = house.ok(PHONE, "blob.create", conversation=conversation, bytes=len(content), sha256=sha256)["upload"]
    assert house.uploads.put(said["url"], said["headers"], content)
    return {"type": "blob", "media_type": "image/png", "bytes": len(content), "sha256": sha256, "ref": said["ref"]}


def stored(house: House, conversation: str, parts: Parts = ()) -> StoredMessage:
    """A message as a writer has it that was let in before the tombstone stood."""
    identifier = house.new_id()
    message = Message.new(
        id=identifier,
        conversation=conversation,
        parent=None,
        role="user",
        status="complete",
        parts=parts,
        metadata={},
    )
    return StoredMessage(message)


def delete(house: House, conversation: str) -> Frame:
    erasure: Frame = house.ok(PHONE, "conversation.delete", conversation=conversation)["erasure"]
    return erasure


def receipt(house: House, conversation: str) -> dict[str, tuple[int, int, int, str]]:
    """The receipt's lines: found, removed, passes and state by store."""
    erasure = house.ok(PHONE, "erasure.get", erasure=conversation)["erasure"]
    return {line["store"]: (line["found"], line["removed"], line["passes"], line["state"]) for line in erasure["lines"]}


def archived(house: House, conversation: str) -> None:
    """Write what the table holds of it into a segment as well, as the archive does."""
    key = house.key(conversation)
    messages = [stored for _, stored in sorted(house.warm.messages[key].items())]
    house.manifests.put(key, house.cold.write(key, messages, now_ms=house.clock.ms))


# --- the whole of it ------------------------------------------------------------------------------------------


def test_after_both_passes_nothing_is_left_and_the_receipt_counts_what_was_found(
    answer: Answer, region: Region
) -> None:
    house, conversation = answer.house, answer.conversation
    second = house.message(conversation, answer.question)
    third = house.message(conversation, second, parts=[upload(house, conversation)])
    archived(house, conversation)
    house.ok(LAPTOP, "conversation.subscribe", conversation=conversation)
    house.stream(conversation, third)
    region.announce()
    delete(house, conversation)
    region.both_passes(conversation)
    assert left_of(house, conversation) == []
    lines = receipt(house, conversation)
    assert lines["table"] == (7, 7, 2, "done")  # head, pulse, due entry, three messages, a manifest
    assert lines["objects"] == (3, 3, 2, "done")  # the upload, what was kept of it, the segment
    found, removed, passes, state = lines["hot"]
    assert (found > 0, removed == found, passes, state) == (True, True, 2, "done")
    assert house.ok(PHONE, "erasure.get", erasure=conversation)["erasure"]["state"] == "done"


def test_the_streams_entry_in_the_index_goes_with_the_next_sweep(answer: Answer, region: Region) -> None:
    house = answer.house
    answer.written("hel")
    delete(house, answer.conversation)
    region.both_passes(answer.conversation)
    sweep(house.services)
    assert house.hot.due(10) == ()
    assert left_of(house, answer.conversation) == []


def test_it_is_not_done_before_the_second_pass(answer: Answer, region: Region) -> None:
    house = answer.house
    delete(house, answer.conversation)
    region.announce()
    region.work()
    assert left_of(house, answer.conversation) == []
    assert {state for *_, state in receipt(house, answer.conversation).values()} == {"running"}


def test_an_append_keeps_no_upload_of_what_was_deleted(answer: Answer) -> None:
    house = answer.house
    opened = answer.written("hel")
    part = upload(house, answer.conversation)
    delete(house, answer.conversation)
    before = left_of(house, answer.conversation)
    said = answer.place(opened, 1) | {"ops": [["part", 1, part]]}
    assert house.say(WORKER, "stream.append", conversation=answer.conversation, **said)["code"] == "not_found"
    assert left_of(house, answer.conversation) == before


def test_another_conversation_is_left_as_it_is(answer: Answer, region: Region) -> None:
    house = answer.house
    other = house.conversation()
    message = house.message(other, parts=[upload(house, other)])
    before = left_of(house, other)
    assert len(before) > 6  # head, pulse, message, due, two objects, what the hot tier has
    delete(house, answer.conversation)
    region.both_passes(answer.conversation)
    assert left_of(house, other) == before
    assert [found["id"] for found in house.ok(PHONE, "message.list", conversation=other)["messages"]] == [message]


def test_the_second_pass_comes_when_it_is_due_over_as_many_hops_of_a_queue_as_it_takes(
    answer: Answer, region: Region
) -> None:
    house = answer.house
    house.replace(terms=Terms(regions=("eu-central-1",), second_pass_ms=40 * 60_000 + 1))
    delete(house, answer.conversation)
    region.announce()
    hops: list[int] = []
    while delays := region.work():
        assert delays == [delays[0]] * 2, "the eraser's and the herald's"
        hops.append(delays[0])
        house.clock.ms += delays[0] * 1_000
        assert len(hops) < 9
    assert hops == [QUEUE_DELAY_S_MAX, QUEUE_DELAY_S_MAX, 601]
    assert {line[2:] for line in receipt(house, answer.conversation).values()} == {(2, "done")}


def test_in_another_region_its_bucket_and_hot_tier_are_cleared_and_the_table_is_left_to_the_home_region(
    answer: Answer, region: Region
) -> None:
    house = answer.house
    house.replace(terms=Terms(regions=("us-east-1", "eu-central-1")))
    upload(house, answer.conversation)
    delete(house, answer.conversation)
    region.both_passes(answer.conversation)
    lines = house.ok(PHONE, "erasure.get", erasure=answer.conversation)["erasure"]["lines"]
    assert {(line["region"], line["store"]): line["state"] for line in lines} == {
        ("us-east-1", "hot"): "running",
        ("us-east-1", "objects"): "running",
        ("us-east-1", "table"): "running",
        ("eu-central-1", "hot"): "done",
        ("eu-central-1", "objects"): "done",
    }
    assert house.warm.has_message(house.key(answer.conversation), answer.question)


# --- what comes late ------------------------------------------------------------------------------------------


def late_write(answer: Answer) -> None:
    answer.house.warm.put_message("acme", stored(answer.house, answer.conversation))


def late_settle(answer: Answer) -> None:
    """A producer's settle, from behind its seal: the message is put, and the hot tier is told."""
    late = stored(answer.house, answer.conversation)
    answer.house.warm.put_message("acme", late)
    answer.house.hot.settle(answer.house.key(answer.conversation), late)


def late_archiving(answer: Answer) -> None:
    """An archiver had read the messages before the table was cleared, and looked for the tombstone before it stood."""
    house, key = answer.house, answer.house.key(answer.conversation)
    house.manifests.put(key, house.cold.write(key, [stored(house, answer.conversation)], now_ms=house.clock.ms))


def late_fill(answer: Answer) -> None:
    """A send's fill, and a reader's load of what it had read before."""
    house, key = answer.house, answer.house.key(answer.conversation)
    late = stored(house, answer.conversation)
    house.warm.put_message("acme", late)
    house.hot.fill(key, late)
    house.hot.load(key, [late], owner="ann", newest=late.message.id)


def late_upload(answer: Answer) -> None:
    """An upload whose URL was given before, kept by a message under way."""
    house, key = answer.house, answer.house.key(answer.conversation)
    named = Upload(len(PICTURE), hashlib.sha256(PICTURE).hexdigest())
    put = house.uploads.presign(key, named, media_type=None, lives_s=900)
    assert house.uploads.put(put.url, put.headers, PICTURE)
    assert house.uploads.keep(key, named)
    late_write(answer)


def late_creation(answer: Answer) -> None:
    """A create of another region, which had not seen the tombstone."""
    house, key = answer.house, answer.house.key(answer.conversation)
    tombstone = house.warm.gone.pop(key)
    try:
        house.ok(PHONE, "conversation.create", conversation=answer.conversation)
    finally:
        house.warm.gone[key] = tombstone


LATE: tuple[Callable[[Answer], None], ...] = (
    late_write,
    late_settle,
    late_archiving,
    late_fill,
    late_upload,
    late_creation,
)


@pytest.mark.parametrize("late", LATE, ids=lambda late: late.__name__)
def test_what_was_under_way_is_taken_by_the_second_pass(
    answer: Answer, region: Region, late: Callable[[Answer], None]
) -> None:
    house = answer.house
    delete(house, answer.conversation)
    region.announce()
    region.work()
    late(answer)
    assert left_of(house, answer.conversation)
    region.second_pass(answer.conversation)  # whatever the announcer makes of it meanwhile
    assert left_of(house, answer.conversation) == []


@pytest.mark.parametrize("late", LATE, ids=lambda late: late.__name__)
def test_what_lands_between_the_passes_is_announced_and_taken(
    answer: Answer, region: Region, late: Callable[[Answer], None]
) -> None:
    house = answer.house
    delete(house, answer.conversation)
    region.announce()
    region.work()
    late(answer)
    region.late()
    assert left_of(house, answer.conversation) == []
    assert {state for *_, state in receipt(house, answer.conversation).values()} == {"running"}


@pytest.mark.parametrize(
    ("late", "hours"),
    [
        *((late, 12) for late in LATE),
        # The gravestone is forgotten by then; a reader's load, which it refuses, takes seconds.
        *((late, 48) for late in LATE if late is not late_fill),
    ],
)
def test_what_lands_after_the_second_pass_is_announced_taken_and_counted(
    answer: Answer, region: Region, late: Callable[[Answer], None], hours: int
) -> None:
    house = answer.house
    delete(house, answer.conversation)
    region.both_passes(answer.conversation)
    before = receipt(house, answer.conversation)
    house.clock.ms += hours * 3_600_000
    late(answer)
    assert left_of(house, answer.conversation)
    assert house.say(PHONE, "message.list", conversation=answer.conversation)["code"] == "not_found"
    region.late()
    assert left_of(house, answer.conversation) == []
    after = receipt(house, answer.conversation)
    assert after["table"][0] > before["table"][0]
    assert {state for *_, state in after.values()} == {"done"}


def test_an_upload_that_nothing_names_is_taken_by_the_second_pass(answer: Answer, region: Region) -> None:
    house = answer.house
    key, named = house.key(answer.conversation), Upload(len(PICTURE), hashlib.sha256(PICTURE).hexdigest())
    put = house.uploads.presign(key, named, media_type=None, lives_s=900)
    delete(house, answer.conversation)
    region.announce()
    region.work()
    assert house.uploads.put(put.url, put.headers, PICTURE)
    region.second_pass(answer.conversation)
    assert left_of(house, answer.conversation) == []


# --- what breaks off ------------------------------------------------------------------------------------------


class BreaksOff:
    """A store whose call of a number breaks off, before or after its effect; counted over several stores."""

    def __init__(self, at: int, *, after: bool) -> None:
        self.at = at
        self.calls = 0
        self._after = after

    def store(self, real: Any, *names: str) -> Any:
        """It, with these methods watched."""
        return _Watched(self, real, names)

    def call(self, method: Any, *args: Any, **kwargs: Any) -> Any:
        """Do it, unless it is its turn to fail."""
        self.calls += 1
        if self.calls != self.at:
            return method(*args, **kwargs)
        if self._after:
            method(*args, **kwargs)
        raise ConnectionError("broke off here")


class _Watched:
    def __init__(self, fault: BreaksOff, real: Any, names: tuple[str, ...]) -> None:
        self._fault = fault
        self._real = real
        self._names = names

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._real, name)
        if name not in self._names:
            return method
        return lambda *args, **kwargs: self._fault.call(method, *args, **kwargs)


STEPS = 60


@pytest.mark.parametrize("after", [False, True])
@pytest.mark.parametrize("at", range(1, STEPS + 1))
def test_a_crash_at_any_step_is_made_good_when_the_job_comes_again(
    answer: Answer,
    region: Region,
    at: int,
    after: bool,  # noqa: FBT001 -- a case
) -> None:
    house, conversation = answer.house, answer.conversation
    answer.written("hel")
    house.message(conversation, answer.question, parts=[upload(house, conversation)], fork=True)
    fault = BreaksOff(at, after=after)
    real = house.services
    house.replace(
        hot=fault.store(house.hot, "bury"),
        erasures=fault.store(house.erasures, "put_tombstone", "read", "gone", "note", "clear"),
        objects=fault.store(house.cold, "remove"),
        erase_queue=fault.store(house.erase_queue, "send"),
        tell_queue=fault.store(house.tell_queue, "send"),
    )
    for _ in range(2):  # what fails is answered, and asked again
        house.post(PHONE, f'{{"action":"conversation.delete","conversation":"{conversation}"}}')
    landed = record(table_keys.partition(house.key(conversation)), SORT_GONE)
    until_done(lambda: region.handle("announcer", [landed]))
    work_until_done(region)
    house.clock.ms = house.warm.gone[house.key(conversation)].second_pass_ms
    work_until_done(region)
    house.services = real
    assert left_of(house, conversation) == []
    assert {line[3] for line in receipt(house, conversation).values()} == {"done"}
    assert fault.calls < STEPS, "the crash comes at every one of the steps"


def until_done(step: Callable[[], Frame]) -> None:
    """A batch that fails comes again."""
    for _ in range(3):
        try:
            if step() == {"batchItemFailures": []}:
                return
        except ConnectionError:
            continue
    raise AssertionError("it never succeeds")


def work_until_done(region: Region) -> None:
    """Let eraser and herald do every job there is now; those that fail come again, those that follow wait."""
    for name, queue in (("eraser", region.house.erase_queue), ("herald", region.house.tell_queue)):
        jobs, queue.jobs = queue.jobs, []
        for body, _ in jobs:
            until_done(lambda name=name, body=body: region.handle(name, [sqs_record(body.decode())]))  # type: ignore[misc]


def test_a_job_without_a_tombstone_erases_nothing(answer: Answer) -> None:
    house = answer.house
    erase(house.services, job(house, answer.conversation))
    herald(house.services, job(house, answer.conversation))
    assert [found["id"] for found in house.ok(PHONE, "message.list", conversation=answer.conversation)["messages"]] == [
        answer.question
    ]
    assert house.erase_queue.jobs == house.tell_queue.jobs == []


def test_without_its_stores_a_job_fails_and_comes_again(answer: Answer, region: Region) -> None:
    house = answer.house
    delete(house, answer.conversation)
    house.hot.unavailable = True
    with pytest.raises(HotUnavailable):
        herald(house.services, job(house, answer.conversation))
    house.warm.unavailable = True
    with pytest.raises(WarmUnavailable):
        erase(house.services, job(house, answer.conversation))
    house.hot.unavailable = house.warm.unavailable = False
    region.both_passes(answer.conversation)
    assert left_of(house, answer.conversation) == []


def test_jobs_given_twice_and_in_any_order_come_to_the_same(answer: Answer, region: Region) -> None:
    house, conversation = answer.house, answer.conversation
    delete(house, conversation)
    for stage in ("second", "late", "first", "first", "second"):
        erase(house.services, job(house, conversation, stage=stage))
        herald(house.services, job(house, conversation, stage=stage))
    region.second_pass(conversation)
    assert left_of(house, conversation) == []
    assert {line[3] for line in receipt(house, conversation).values()} == {"done"}
    assert house.warm.gone[house.key(conversation)].erased_at <= times.to_rfc3339(house.clock.ms - SECOND_PASS_MS)


def test_a_tombstone_that_a_restored_table_is_told_long_after_is_done_after_one_pass(
    answer: Answer, region: Region
) -> None:
    house, conversation = answer.house, answer.conversation
    house.message(conversation, answer.question, parts=[upload(house, conversation)])
    long_ago_ms = house.clock.ms - 86_400_000
    house.warm.gone[house.key(conversation)] = tombstone("ann", now_ms=long_ago_ms)
    region.announce()
    assert region.work() == []
    assert left_of(house, conversation) == []
    assert {state for *_, state in receipt(house, conversation).values()} == {"done"}


def test_a_worker_elsewhere_hears_closed_or_nothing_but_never_goes_on(answer: Answer, region: Region) -> None:
    house = answer.house
    opened = answer.written("hel")
    delete(house, answer.conversation)
    region.both_passes(answer.conversation)
    place = answer.place(opened, 1)
    assert house.say(WORKER, "stream.append", conversation=answer.conversation, ops=[], **place)["code"] == "not_found"
