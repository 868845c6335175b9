"""Senders that race, die and repeat themselves, a cache that forgets, and the table, which is the truth.

Every claim is judged by the memory reference and by real Valkey, which have to agree. Whatever happened before: who is
let in stands under a message that is in the table and that nothing known since the last loss is newer than; and who
names the newest message of the table, just read, is not refused for nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, Literal

import msgspec
import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, precondition, rule, run_state_machine_as_test
from msgspec import UNSET, UnsetType

from local.state import Address
from tests.support.hot import ANN, Lab, Talk, ValkeyLab, new_id, new_key, stored
from threadkeep.domain.bounds import CLAIM_VOID_MS, LIVE_STREAMS_MAX
from threadkeep.domain.leaf import Claimed, ClaimVerdict, LeafUnknown
from threadkeep.domain.streams import Facts, Opened
from threadkeep.domain.tail import Erased

SENDERS: Final = 3
_STEPS: Final = st.sampled_from([1, 1, 2, 3, 5])
_BEHIND: Final = st.sampled_from([0, 0, 0, 1, 2])


class Sender(msgspec.Struct):
    """A request on its way through the use case that puts a message.

    Attributes:
        phase: what comes next.
        confirmed: what it read of the table, which may have gone on since.
    """

    message: str
    parent: str | None
    fork: bool
    phase: Literal["claim", "read", "confirm", "put", "fill", "over"] = "claim"
    confirmed: str | None = None


class Known(msgspec.Struct):
    """What a hot tier that has lost nothing since the last loss must know.

    Attributes:
        settled: filled or settled since, or told by who asked the table.
        claims: granted, and neither filled, given back nor overdue.
        live: streams that are open.
        is_asked: somebody has brought what the table holds.
    """

    settled: set[str] = set()
    claims: set[str] = set()
    live: set[str] = set()
    is_asked: bool = False

    def hear(self, newest: str | None) -> None:
        """Somebody brings what the table holds, or held."""
        self.is_asked = True
        if newest is not None:
            self.settled.add(newest)

    def newer_than(self, message: str | None) -> set[str]:
        return {each for each in self.settled | self.claims | self.live if message is None or each > message}


class Leaf(RuleBasedStateMachine):
    """What can happen to the leaf of a conversation."""

    labs: list[Lab]

    def __init__(self, labs: list[Lab]) -> None:
        super().__init__()
        key, stream = new_key(), new_id()
        self.labs = labs
        self.talks = [Talk(lab.hot, key, stream) for lab in labs]
        self.table: dict[str, str | None] = {}
        self.plain_children: list[tuple[str | None, str]] = []
        self.is_lossless = True
        self.known = Known()
        self.senders = [self._sender(None, fork=False) for _ in range(SENDERS)]
        self.streams: list[str] = []
        self.put_streams: list[str] = []

    # --- senders ---

    @rule(moves=st.lists(st.tuples(st.integers(0, SENDERS - 1), _BEHIND, st.booleans(), _STEPS), min_size=1))
    def send(self, moves: list[tuple[int, int, bool, int]]) -> None:
        """Each goes on by some steps; a new one under what its user is shown, which may be behind, or as a branch."""
        for who, behind, fork, steps in moves:
            if self.senders[who].phase == "over":
                shown = sorted({*self.table, *self.known.claims, *self.known.live})
                parent = shown[-1 - behind] if behind < len(shown) else None
                self.senders[who] = self._sender(parent, fork=fork)
            for _ in range(steps):
                self._step(self.senders[who])

    @precondition(lambda self: any(sender.phase == "put" for sender in self.senders))
    @rule(which=st.integers(0, SENDERS - 1), how=st.sampled_from(["fails", "fails", "dies", "is repeated"]))
    def disturb(self, which: int, how: str) -> None:
        """A put is refused for good; or its function ends, and gives nothing back; or it is asked again, unheard."""
        granted = [sender for sender in self.senders if sender.phase == "put"]
        sender = granted[which % len(granted)]
        if how == "fails" and sender.message not in self.table:
            for talk in self.talks:
                talk.hot.release(talk.key, sender.message)
            self.known.claims.discard(sender.message)
        sender.phase = "claim" if how == "is repeated" else "over"

    # --- streams ---

    @precondition(lambda self: len(self.streams) < LIVE_STREAMS_MAX)
    @rule(behind=_BEHIND, fork=st.booleans())
    def open_a_stream(self, behind: int, *, fork: bool) -> None:
        stream, newest = new_id(), self._newest()
        stored = sorted(self.table)
        parent = stored[-1 - behind] if behind < len(stored) else None
        verdicts = [
            talk.hot.open(
                talk.key,
                stream,
                writer=ANN,
                facts=Facts(parent=parent, role="assistant"),
                fork=fork,
                leaf=newest,
            )
            for talk in self.talks
        ]
        is_opened = {isinstance(verdict, Opened) for verdict in verdicts}
        assert len(is_opened) == 1
        self.known.hear(newest)
        if is_opened == {True}:
            if not fork:
                self._check_grant(parent, stream)
            self.known.live.add(stream)
            self.streams.append(stream)
            return
        assert verdicts == [verdicts[0]] * len(verdicts)
        assert self.known.newer_than(parent)

    @precondition(lambda self: self.streams)
    @rule(data=st.data())
    def put_a_streams_message(self, data: st.DataObject) -> None:
        stream = data.draw(st.sampled_from(self.streams))
        self.table.setdefault(stream, None)
        self.put_streams.append(stream)

    @precondition(lambda self: self.put_streams)
    @rule(data=st.data())
    def settle(self, data: st.DataObject) -> None:
        stream = data.draw(st.sampled_from(self.put_streams))
        for talk in self.talks:
            talk.hot.settle(talk.key, stored(talk.key, stream))
        self.put_streams = [each for each in self.put_streams if each != stream]
        self.streams = [each for each in self.streams if each != stream]
        self.known.live.discard(stream)
        self.known.settled.add(stream)

    # --- the cache, and time ---

    @rule(what=st.sampled_from(["nothing", "nothing", "the register", "everything", "time"]))
    def lose(self, what: str) -> None:
        if what == "the register":
            for lab, talk in zip(self.labs, self.talks, strict=True):
                lab.lose_register(talk)
            self.known = Known(live=self.known.live)
            self.is_lossless = False
        elif what == "everything":
            # A stream whose message was put may yet be settled; the others are never heard of again.
            for lab, talk in zip(self.labs, self.talks, strict=True):
                lab.lose(talk)
            self.known = Known()
            self.streams = list(self.put_streams)
            self.is_lossless = False
        elif what == "time":
            # So much that every claim is overdue. No function runs for so long: who was on its way is over.
            for lab, talk in zip(self.labs, self.talks, strict=True):
                lab.pass_ms(talk, CLAIM_VOID_MS)
            for sender in self.senders:
                sender.phase = "over"
            self.known.claims.clear()

    # --- how ---

    def _sender(self, parent: str | None, *, fork: bool) -> Sender:
        return Sender(new_id(), parent, fork)

    def _newest(self) -> str | None:
        return max(self.table, default=None)

    def _step(self, sender: Sender) -> None:
        match sender.phase:
            case "claim":
                verdict = self._claim(sender, UNSET)
                sender.phase = "put" if verdict == Claimed() else "read"
            case "read":
                sender.confirmed = self._newest()
                is_there = sender.message in self.table  # an id that exists is judged before everything else
                sender.phase = "fill" if is_there else "confirm"
            case "confirm":
                verdict = self._claim(sender, sender.confirmed)
                sender.phase = "put" if verdict == Claimed() else "over"
            case "put":
                if sender.fork and sender.parent is not None and sender.parent not in self.table:
                    sender.phase = "over"  # the table has no such parent
                    return
                self._put(sender)
                sender.phase = "fill"
            case "fill":
                for talk in self.talks:
                    talk.fill(sender.message)
                self.known.claims.discard(sender.message)
                self.known.settled.add(sender.message)
                sender.phase = "over"

    def _put(self, sender: Sender) -> None:
        if sender.message not in self.table and not sender.fork:
            self.plain_children.append((sender.parent, sender.message))
            if self.is_lossless:
                parents = [parent for parent, _ in self.plain_children]
                assert len(parents) == len(set(parents)), "two sends under one parent, without loss"
        self.table.setdefault(sender.message, sender.parent)

    def _claim(self, sender: Sender, confirmed: str | UnsetType | None) -> ClaimVerdict | Erased:
        verdicts = [
            talk.claim(sender.message, sender.parent, fork=sender.fork, confirmed=confirmed) for talk in self.talks
        ]
        verdict = verdicts[0]
        assert verdicts == [verdict] * len(verdicts)
        if confirmed is not UNSET:
            self.known.hear(confirmed)
        is_held = sender.message in self.known.claims | self.known.settled
        if verdict == Claimed():
            assert is_held or self.known.is_asked, "nobody has asked the table"
            if not sender.fork and not is_held:
                self._check_grant(sender.parent, sender.message)
            if sender.message not in self.known.settled:
                self.known.claims.add(sender.message)
            return verdict
        if confirmed is UNSET:
            return verdict
        assert verdict != LeafUnknown()
        others = self.known.newer_than(sender.parent) - {sender.message}
        if confirmed == sender.parent == self._newest() and not others:
            raise AssertionError(f"refused for nothing: {verdict}")
        return verdict

    def _check_grant(self, parent: str | None, message: str) -> None:
        """Who is let in without a branch in mind stands under the leaf."""
        assert parent is None or parent in self.table, "the parent is not there"
        assert not self.known.newer_than(parent) - {message}, "there is a newer one"


@pytest.fixture
def valkey(valkey_single: Address) -> Iterator[Lab]:
    lab = ValkeyLab(valkey_single, is_cluster=False)
    yield lab
    lab.close()


def test_nobody_is_let_in_beside_another_or_refused_for_nothing(valkey: Lab) -> None:
    class Machine(Leaf):
        def __init__(self) -> None:
            super().__init__([Lab(), valkey])

    run_state_machine_as_test(
        Machine,
        settings=settings(
            max_examples=100, stateful_step_count=50, deadline=None, suppress_health_check=[HealthCheck.too_slow]
        ),
    )
