"""Conversations through all tiers: written, branched, streamed, archived step by step, read, deleted, expired.

Whatever happens in between (archivers that die, a cache that forgets, replicas that lag, messages that come late and
messages of long ago): each message is shown once, in its place, for as long as its conversation stands; and not a
moment longer. The real handlers in memory, by a clock that is set; what has to be shown is kept in plain dictionaries.
"""

from __future__ import annotations

import dataclasses
import random
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from types import SimpleNamespace
from typing import Any, Final

import msgspec
import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule, run_state_machine_as_test

from tests.property.tiers_model import Said, Talk
from tests.support.archiving import ARCHIVING, DAY_MS, REGIONS, Crashed, Watched, nothing
from tests.support.erasing import SECOND_PASS_MS, Region, left_of
from tests.support.house import LAPTOP, PHONE, WORKER, Device, Frame, House, serving, text_part
from tests.support.transfers import export, read_parts
from threadkeep.domain import ids, times
from threadkeep.domain.bounds import LEASE_MS
from threadkeep.domain.erasure import Terms
from threadkeep.domain.model import Conversation
from threadkeep.ports import DueEntry
from threadkeep.stores import segments
from threadkeep.stores.cold_memory import ColdMemory
from threadkeep.stores.hot_memory import HotMemory
from threadkeep.stores.warm_memory import WarmMemory
from threadkeep.usecases import segmenting, tiers
from threadkeep.usecases.archiving import archive
from threadkeep.usecases.holdings import Holdings
from threadkeep.usecases.services import Owners, Services
from threadkeep.usecases.settled_log import LastLog
from threadkeep.usecases.sweeping import sweep

TALKS_MAX: Final = 3
LIVE_MAX: Final = 2
RETENTION_DAYS: Final = 40
"""Longer than it takes to go cold, so that both happen."""
SMALL: Final = {"SEGMENT_MESSAGES_MAX": 4, "MESSAGES_AT_ONCE": 2}
_TALK: Final = st.integers(0, TALKS_MAX - 1)
_PLACE: Final = st.integers(0, 9)
_ROLE: Final = st.sampled_from(["user", "user", "system"])
_LIMIT: Final = st.sampled_from([1, 2, 3, 5, 20])
_MINUTE_MS: Final = 60_000
_TIMES: Final = st.sampled_from([_MINUTE_MS, 61 * _MINUTE_MS, 61 * _MINUTE_MS, 32 * DAY_MS, 32 * DAY_MS, 45 * DAY_MS])


class Paging(msgspec.Struct):
    """Somebody who reads all branches, page by page, while other things happen.

    Attributes:
        due: what was there when they began, and so has to come.
    """

    talk: Talk
    due: set[str]
    cursor: str | None
    seen: list[str]


class Machine(RuleBasedStateMachine):
    """What can happen to conversations."""

    def __init__(self) -> None:
        super().__init__()
        self.stack = ExitStack()
        patch = self.stack.enter_context(pytest.MonkeyPatch.context())
        for name, value in SMALL.items():
            patch.setattr(segmenting, name, value)
        patch.setattr(segments, "MEMBER_MESSAGES_MAX", 2)
        # So that an example fails again as it failed: ids are of the system's own randomness.
        patch.setattr(ids, "os", SimpleNamespace(urandom=random.Random(0).randbytes))  # noqa: S311 -- nothing secret
        self.house = self.stack.enter_context(serving(House()))
        self.house.cold = ColdMemory(*REGIONS)
        self.house.replace(cold=self.house.cold, objects=self.house.cold, terms=Terms(regions=REGIONS))
        self.region = Region(self.house)
        self.talks: list[Talk] = []
        self.paging: Paging | None = None
        self.steps = 0

    def teardown(self) -> None:
        self.stack.close()

    # --- writing ----------------------------------------------------------------------------------------------

    @precondition(lambda self: len(self.talks) < TALKS_MAX)
    @rule(count=st.integers(0, 7), expires=st.booleans(), role=_ROLE)
    def create(self, count: int, role: str, *, expires: bool) -> None:
        """With some messages in it."""
        days = RETENTION_DAYS if expires else None
        said: dict[str, Any] = {"retention_days": days} if expires else {}
        conversation = self.house.conversation(**said)
        talk = Talk(conversation, days * DAY_MS if days else None, self.house.clock.ms)
        self.talks.append(talk)
        for _ in range(count):
            self._say(talk, self.house.new_id(), max(talk.messages, default=None), fork=False, role=role)
            role = "user"

    @precondition(lambda self: self.talks)
    @rule(which=_TALK, back=_PLACE, role=_ROLE)
    def send(self, which: int, back: int, role: str) -> None:
        """Under the leaf, or as a branch under another message, of whatever tier."""
        talk = self._talk(which)
        known = [*talk.newest_first, None]
        parent = known[back % len(known)]
        self._say(talk, self.house.new_id(), parent, fork=back > 0 or bool(talk.live), role=role)

    @precondition(lambda self: self.talks)
    @rule(which=_TALK, beside=_PLACE, under=_PLACE, days=st.sampled_from([0, 0, 50]), role=_ROLE)
    def send_of_long_ago(self, which: int, beside: int, under: int, days: int, role: str) -> None:
        """An id between those that are there, or older than all: a device that was offline, or an import."""
        talk = self._talk(which)
        known = [talk.conversation, *talk.newest_first]
        message = ids.mint(ids.time_ms(known[beside % len(known)]) - days * DAY_MS + 1)
        self.house.clock.ms += 2  # what is said next is newer than this in any case
        older = [None, *(each for each in talk.newest_first if each < message)]
        self._say(talk, message, older[under % len(older)], fork=True, role=role)

    @precondition(lambda self: any(talk.messages for talk in self.talks))
    @rule(which=_TALK, place=_PLACE, alike=st.booleans(), fork=st.booleans())
    def repeat(self, which: int, place: int, *, alike: bool, fork: bool) -> None:
        """The id of a message again, wherever it lies by now: its repeat, or another that would take its place."""
        talk = self._talk(which)
        own = [each for each in talk.newest_first if talk.messages[each].role == "user"]
        if not own:
            return
        message = own[place % len(own)]
        said = talk.messages[message]
        text = said.text if alike else said.text + "!"
        fields = {"message": message, "parent": said.parent, "role": "user", "parts": [text_part(text)], "fork": fork}
        reply = self._ask(talk, PHONE, "message.create", fields, may_fail=True)
        if reply is not None:
            talk.active_ms = self.house.clock.ms
            verdict = reply.get("duplicate"), reply.get("reason")
            assert verdict == ((True, None) if alike else (None, "id_taken"))

    @precondition(lambda self: any(len(talk.live) < LIVE_MAX for talk in self.talks))
    @rule(which=_TALK, pieces=st.integers(0, 2), end=st.sampled_from(["close", "leave", "lose"]))
    def answer(self, which: int, pieces: int, end: str) -> None:
        """Streamed, and closed; or left to die; or closed with all of it, after the cache was lost."""
        talk = self._talk(which)
        if len(talk.live) == LIVE_MAX:
            return
        parent = next(iter(talk.newest_first), None)
        stream = self.house.new_id()
        opening: Frame = {"parent": parent, "role": "assistant"}
        said = {"message": stream, "producer": "run-1", "fork": True}
        opened = self._ask(talk, WORKER, "stream.open", said | opening)
        if opened is None:
            return
        place = {"stream": stream, "epoch": opened["epoch"], "offset": 0}
        for number in range(pieces):
            ops = [["text", 0, f"piece {number} "]]
            reply = self._ask(talk, WORKER, "stream.append", place | {"ops": ops})
            assert reply is not None
            place["offset"] = reply["offset"]
        talk.live[stream] = Said(parent, "assistant", "".join(f"piece {number} " for number in range(pieces)))
        if end == "leave":
            return
        if end == "lose":
            self.forget()
            body = {"body": [text_part("all of it")]} | opening
            assert self._ask(talk, WORKER, "stream.close", place | body | {"status": "complete"}) is not None
            talk.messages[stream] = Said(parent, "assistant", "all of it")
        else:
            assert self._ask(talk, WORKER, "stream.close", place | {"status": "complete"}) is not None
            talk.messages[stream] = talk.live.pop(stream)
        talk.active_ms = self.house.clock.ms

    @precondition(lambda self: any(talk.newest_first for talk in self.talks))
    @rule(which=_TALK)
    def delete(self, which: int) -> None:
        talk = self._talk(which)
        reply = self.house.say(PHONE, "conversation.delete", conversation=talk.conversation)
        assert reply["type"] == "conversation.delete.ok"  # deleted before, or expired: it is the same erasure
        talk.is_gone = True
        talk.live.clear()

    # --- what happens to the tiers ----------------------------------------------------------------------------

    @rule(ms=_TIMES)
    def pass_time(self, ms: int) -> None:
        """Answers that nobody writes any more are ended by the sweeper, a minute at the latest after they died."""
        self.house.clock.ms += LEASE_MS + 1
        self.house.warm.lagging.clear()
        sweep(self.house.services)
        for talk in self.talks:
            if talk.live:
                talk.messages |= talk.live
                talk.live.clear()
                talk.active_ms = self.house.clock.ms
        self.house.clock.ms += ms

    @precondition(lambda self: self._due())
    @rule(crash_at=st.none() | st.integers(1, 40), is_before=st.booleans())
    def archive(self, crash_at: int | None, *, is_before: bool) -> None:
        """What has fallen due, a pass each. An archiver may die before or behind any call that it makes."""
        for entry in self._due():
            with suppress(Crashed):
                archive(self._archiver(crash_at, is_before=is_before), entry)

    @precondition(lambda self: any(talk.messages for talk in self.talks))
    @rule()
    def archive_all(self) -> None:
        """Until all is cold that may rest."""
        self.pass_time(32 * DAY_MS)
        for _ in range(3):
            for entry in self._due():
                archive(self.house.services, entry)
            self.house.clock.ms += 61 * _MINUTE_MS

    @rule()
    def forget(self) -> None:
        """The cache is lost, and functions run anew. Of a live answer nothing is left here; its producer has it."""
        self.house.lose_hot()
        self.house.replace(owners=Owners(), last_log=LastLog())
        for talk in self.talks:
            talk.live.clear()

    @precondition(lambda self: any(talk.messages for talk in self.talks))
    @rule(which=_TALK, count=st.integers(1, 3))
    def lag(self, which: int, count: int) -> None:
        """A replica has not heard of the newest messages yet."""
        self.house.warm.lagging.update(self._talk(which).newest_first[:count])

    @precondition(lambda self: self.house.warm.gone)
    @rule()
    def erase(self) -> None:
        """Both passes of whatever was deleted, and what has landed late."""
        self.region.announce()
        self.region.work()
        self.house.clock.ms += SECOND_PASS_MS
        self.region.work()
        self.region.late()
        for key in self.house.warm.gone:
            assert left_of(self.house, key.conversation) == []

    # --- reading ----------------------------------------------------------------------------------------------

    @invariant()
    def everything_is_shown_once_or_nothing_is(self) -> None:
        for talk in self.talks:
            found: list[Frame] = []
            fields: Frame = {"leaf": "all", "limit": 100}
            while page := self._ask(talk, LAPTOP, "message.list", fields):
                found += page["messages"]
                if page["cursor"] is None:
                    break
                fields["cursor"] = page["cursor"]
            if not talk.is_gone:
                self._check(talk, found, talk.newest_first)

    @invariant()
    def the_newest_are_shown_to_whoever_opens_one_of_them(self) -> None:
        """Not of all at every step, so that what only writers brought into the cache is looked at, too."""
        self.steps += 1
        if self.talks and self.steps % 2:
            talk = self._talk(self.steps // 2)
            leaf = self._leaf(talk, 0, tells_leaf=False)
            if leaf is not None:
                self._read_a_context(talk, leaf, 3, tells_leaf=False)

    @precondition(lambda self: self.talks)
    @rule(which=_TALK, limit=_LIMIT)
    def begin_to_page(self, which: int, limit: int) -> None:
        talk = self._talk(which)
        self.paging = Paging(talk, set(talk.messages), None, [])
        self._turn_page(self.paging, limit)

    @precondition(lambda self: self.paging)
    @rule(limit=_LIMIT)
    def page_on(self, limit: int) -> None:
        assert self.paging is not None
        self._turn_page(self.paging, limit)

    @precondition(lambda self: any(talk.messages for talk in self.talks))
    @rule(
        what=st.sampled_from(["path", "path", "context", "context", "one", "list", "export"]),
        which=_TALK,
        place=_PLACE,
        limit=_LIMIT,
        tells_leaf=st.booleans(),
    )
    def read(self, what: str, which: int, place: int, limit: int, *, tells_leaf: bool) -> None:
        talk = self._talk(which)
        leaf = self._leaf(talk, place, tells_leaf=tells_leaf)
        is_there = talk.standing(self.house.clock.ms) == "there"
        if what == "list":
            self._read_the_list()
        elif what == "path" and leaf is not None:
            self._read_a_path(talk, leaf, limit, tells_leaf=tells_leaf)
        elif what == "context" and leaf is not None:
            self._read_a_context(talk, leaf, limit, tells_leaf=tells_leaf)
        elif what == "one" and is_there and talk.messages:
            message = talk.newest_first[place % len(talk.messages)]
            assert read_parts(self.house, talk.conversation, message) == talk.messages[message].parts
        elif what == "export" and is_there:
            file = export(self.house, talk.conversation)
            found = [msgspec.json.decode(line) for line in file.splitlines()]
            assert [line["id"] for line in found if "role" in line] == talk.newest_first[::-1]

    def _read_a_path(self, talk: Talk, leaf: str, limit: int, *, tells_leaf: bool) -> None:
        found: list[Frame] = []
        fields: Frame = {"leaf": leaf} if tells_leaf else {}
        while page := self._ask(talk, LAPTOP, "message.list", fields | {"limit": limit}):
            found += page["messages"]
            if page["cursor"] is None:
                break
            fields = {"cursor": page["cursor"]}
        if not talk.is_gone:
            self._check(talk, found, talk.path(leaf))

    def _read_a_context(self, talk: Talk, leaf: str, limit: int, *, tells_leaf: bool) -> None:
        fields: Frame = {"leaf": leaf} if tells_leaf else {}
        page = self._ask(talk, LAPTOP, "context.read", fields | {"max_messages": limit})
        if page is not None:
            expected, following = talk.context(leaf, limit)
            self._check(talk, page["messages"], expected)
            assert (page["cursor"], page["truncated"]) == (following, following is not None)

    def _read_the_list(self) -> None:
        now_ms = self.house.clock.ms
        listed = {found["id"] for found in self.house.ok(LAPTOP, "conversation.list")["items"]}
        assert listed >= {talk.conversation for talk in self.talks if talk.standing(now_ms) == "there"}
        assert not listed & {talk.conversation for talk in self.talks if talk.standing(now_ms) == "gone"}

    # --- how --------------------------------------------------------------------------------------------------

    def _talk(self, which: int) -> Talk:
        return self.talks[which % len(self.talks)]

    def _leaf(self, talk: Talk, place: int, *, tells_leaf: bool) -> str | None:
        """Which path is asked for; without a word, that of the present leaf, of what has settled of it."""
        if not talk.messages:
            return None
        if tells_leaf:
            return talk.newest_first[place % len(talk.messages)]
        newest = max([*talk.messages, *talk.live])
        return talk.live[newest].parent if newest in talk.live else newest

    def _due(self) -> list[DueEntry]:
        now = self.house.clock.ms
        entries = [DueEntry(key, due_at) for key, due_at in sorted(self.house.warm.due_at.items(), key=str)]
        return [entry for entry in entries if _ms(entry.due_at) <= now]

    def _archiver(self, crash_at: int | None, *, is_before: bool) -> Services:
        """The services of one that dies at its so-manieth call of a store or a bucket."""
        services = self.house.services
        if crash_at is None:
            return services
        left = iter(range(crash_at - 1, -1, -1))

        def die(_call: str) -> None:
            if next(left, None) == 0:
                raise Crashed

        hooks: tuple[Callable[[str], None], Callable[[str], None]] = (die, nothing) if is_before else (nothing, die)
        cold = ColdMemory(*REGIONS)
        for region, bucket in self.house.cold.buckets.items():
            watched: Any = Watched(bucket, *hooks)
            cold.buckets[region] = watched
        stores: dict[str, Any] = {name: Watched(getattr(services, name), *hooks) for name in ARCHIVING}
        return dataclasses.replace(services, cold=cold, **stores)

    def _ask(self, talk: Talk, device: Device, action: str, fields: Frame, *, may_fail: bool = False) -> Frame | None:
        """Ask something of a conversation; the reply, None where it is gone, and is said to be."""
        standing = talk.standing(self.house.clock.ms)
        reply = self.house.say(device, action, **fields, conversation=talk.conversation)
        if standing == "gone" or (standing == "either" and reply.get("code") == "not_found"):
            assert reply.get("code") == "not_found", reply
            talk.is_gone = True
            talk.live.clear()
            return None
        assert may_fail or reply["type"] == f"{action}.ok", reply
        return reply

    def _say(self, talk: Talk, message: str, parent: str | None, *, fork: bool, role: str = "user") -> None:
        said = Said(parent, role, f"said at {self.house.clock.ms}")
        fields = {"message": message, "parent": parent, "role": said.role, "parts": said.parts, "fork": fork}
        if self._ask(talk, PHONE if role == "user" else WORKER, "message.create", fields) is not None:
            talk.messages[message] = said
            talk.active_ms = self.house.clock.ms

    def _turn_page(self, paging: Paging, limit: int) -> None:
        fields: Frame = {"leaf": "all", "limit": limit} | ({"cursor": paging.cursor} if paging.cursor else {})
        page = self._ask(paging.talk, LAPTOP, "message.list", fields)
        if page is None:
            self.paging = None
            return
        paging.seen += [message["id"] for message in page["messages"]]
        paging.cursor = page["cursor"]
        assert paging.seen == sorted(set(paging.seen), reverse=True)
        assert set(paging.seen) <= set(paging.talk.messages)
        if paging.cursor is None:
            assert paging.due <= set(paging.seen)
            self.paging = None

    def _check(self, talk: Talk, found: list[Frame], expected: list[str]) -> None:
        assert [message["id"] for message in found] == expected
        for message in found:
            said = talk.messages[message["id"]]
            assert (message["parent"], message["role"], message["parts"]) == (said.parent, said.role, said.parts)


def _ms(at: str) -> int:
    return times.from_rfc3339(at)


def run(*, examples: int, **more: Any) -> None:
    """Let it happen."""
    run_state_machine_as_test(
        Machine,
        settings=settings(
            max_examples=examples,
            stateful_step_count=40,
            deadline=None,
            suppress_health_check=list(HealthCheck),
            **more,
        ),
    )


def test_each_message_is_shown_once_for_as_long_as_its_conversation_stands() -> None:
    run(examples=100)


# --- not blind ------------------------------------------------------------------------------------------------


def segments_hold_all_between_their_ends(patch: pytest.MonkeyPatch) -> None:
    def careless(self: Holdings, messages: list[str]) -> dict[str, list[Any]]:
        return {
            message: [found for found in self._manifests if found.first <= message <= found.last]
            for message in messages
        }

    patch.setattr(Holdings, "holders", careless)


def what_lies_in_both_tiers_is_shown_twice(patch: pytest.MonkeyPatch) -> None:
    def careless(*sources: Iterator[Any]) -> Iterator[Any]:
        return iter(sorted((each for source in sources for each in source), key=_id_of, reverse=True))

    patch.setattr(tiers, "_merged", careless)


def nothing_expires(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Conversation, "is_expired", lambda *_: False)


def the_cache_hears_of_no_deletion(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(HotMemory, "bury", lambda *_: (0, ()))


def a_replica_that_lags_is_believed(patch: pytest.MonkeyPatch) -> None:
    read = WarmMemory.read_messages

    def careless(self: WarmMemory, *key: Any, **asked: Any) -> Any:
        return read(self, *key, **asked | {"consistent": False})

    patch.setattr(WarmMemory, "read_messages", careless)


def an_archived_id_is_free_again(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(tiers.Tiers, "read_archived", lambda *_: None)


def _id_of(stored: Any) -> str:
    return str(stored.message.id)


@pytest.mark.parametrize(
    "plant",
    [
        segments_hold_all_between_their_ends,
        what_lies_in_both_tiers_is_shown_twice,
        nothing_expires,
        the_cache_hears_of_no_deletion,
        a_replica_that_lags_is_believed,
        an_archived_id_is_free_again,
    ],
)
def test_a_planted_fault_is_seen(plant: Callable[[pytest.MonkeyPatch], None], monkeypatch: pytest.MonkeyPatch) -> None:
    plant(monkeypatch)
    with pytest.raises(AssertionError):
        # Ends with the first that fails; what it takes differs a little from run to run, as sets are ordered by chance.
        run(examples=1_000, derandomize=True, database=None, phases=[Phase.generate])
