"""A conversation that goes on, branches, loses its cache and is read: by the reference and by real Valkey alike.

They have to agree, and whatever they give out is true: a path of the table's, from where it begins, without a gap; and
what the conversation begins with.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule, run_state_machine_as_test
from msgspec import UNSET

from local.state import Address
from tests.support.conversations import noise, text_parts
from tests.support.hot import ANN, COMPLETE, Lab, Talk, ValkeyLab, new_id, new_key, older_id, stored
from threadkeep.domain.bounds import CLAIM_VOID_MS, TAIL_BYTES_MAX, TAIL_LOAD_MS, TAIL_MESSAGES_MAX, TAIL_MS
from threadkeep.domain.leaf import Claimed, LeafUnknown
from threadkeep.domain.model import StoredMessage
from threadkeep.domain.streams import Facts, Opened
from threadkeep.domain.tail import SEVERAL, Erased, Tail, is_prompt
from threadkeep.stores.tail_elements import to_element
from threadkeep.stores.warm_items import in_page

_LARGE: Final = 16_000
_BEHIND: Final = st.sampled_from([0, 0, 0, 1, 3, 20])
_READERS: Final = st.sampled_from([None, "one", "two"])


class Conversation(RuleBasedStateMachine):
    """What can happen to a conversation's tail."""

    labs: list[Lab]

    def __init__(self, labs: list[Lab]) -> None:
        super().__init__()
        key = new_key()
        self.labs = labs
        self.talks = [Talk(lab.hot, key) for lab in labs]
        self.table: dict[str, StoredMessage] = {}
        self.live: dict[str, str | None] = {}
        self.opened: list[str] = []
        self.sealed: set[str] = set()
        self.is_buried = False
        self.is_told_of_several = False

    # --- what is said ---

    @rule(
        count=st.integers(1, 12),
        behind=_BEHIND,
        characters=st.sampled_from([5, 5, 300, _LARGE]),
        ends=st.sampled_from(["filled", "filled", "filled", "not filled", "not put"]),
    )
    def say(self, count: int, behind: int, characters: int, ends: str) -> None:
        """A few messages in a row, claimed and put; the last one's function may die on the way."""
        parent = self._settled(behind)
        for nth in range(count):
            message = new_id()
            if not self._claim(message, parent):
                return
            if nth == count - 1 and ends == "not put":
                return
            self._put(message, parent, characters)
            if nth < count - 1 or ends == "filled":
                self._fill(message)
            parent = message

    @rule(behind=_BEHIND)
    def import_an_older_one(self, behind: int) -> None:
        message, parent = older_id(), self._settled(behind)
        if parent is None or parent < message:
            self._put(message, parent, 5)
            self._fill(message)

    @precondition(lambda self: self.table)
    @rule(behind=_BEHIND)
    def fill_again(self, behind: int) -> None:
        message = self._settled(behind)
        if message is not None:
            self._fill(message)

    # --- streams ---

    @precondition(lambda self: len(self.live) < 3)
    @rule(behind=_BEHIND)
    def open(self, behind: int) -> None:
        stream, parent, newest = new_id(), self._settled(behind), max(self.table, default=None)
        facts = Facts(parent=parent, role="assistant")
        verdicts = [
            talk.hot.open(talk.key, stream, writer=ANN, facts=facts, fork=True, leaf=newest) for talk in self.talks
        ]
        if self.is_buried:
            assert verdicts == [Erased()] * len(verdicts)
            return
        assert all(isinstance(verdict, Opened) for verdict in verdicts)
        self.live[stream] = parent
        self.opened.append(stream)

    @precondition(lambda self: self.live)
    @rule(is_put=st.booleans())
    def seal(self, *, is_put: bool) -> None:
        stream = min(self.live)
        for talk in self.talks:
            talk.hot.stop(talk.key, stream, COMPLETE)
        self.sealed.add(stream)
        if is_put:
            self._put(stream, self.live[stream], 300)

    @precondition(lambda self: self.sealed)
    @rule()
    def settle(self) -> None:
        stream = min(self.sealed)
        self._put(stream, self.live[stream], 300)
        for talk in self.talks:
            talk.hot.settle(talk.key, self.table[stream])
        del self.live[stream]
        self.sealed.discard(stream)

    # --- reading ---

    @rule(limit=st.sampled_from([1, 5, 20, 64, 1_000]), reader=_READERS, behind=st.sampled_from([None, None, 0, 1, 7]))
    def read(self, limit: int, reader: str | None, behind: int | None) -> None:
        leaf = None if behind is None else self._settled(behind)
        tails = [
            talk.hot.read_tail(talk.key, leaf=leaf, limit=limit, reader=reader, wants_first=True) for talk in self.talks
        ]
        assert tails == [tails[0]] * len(tails)
        if self.is_buried:
            assert tails[0] == Erased()
            return
        assert isinstance(tails[0], Tail)
        self._check(tails[0], leaf, limit)

    @precondition(lambda self: self.table)
    @rule(behind=_BEHIND, skips=st.sampled_from([1, 1, 2]), reader=_READERS, is_asked=st.booleans())
    def load(self, behind: int, skips: int, reader: str | None, *, is_asked: bool) -> None:
        """What a reader has found; an only half loaded path too."""
        path = self._path(self._settled(behind))
        newest = max(self.table) if is_asked else UNSET
        first = in_page(self.table[min(self.table)]) if is_asked else UNSET
        for talk in self.talks:
            if is_asked and self._has_several() and not self.is_told_of_several:
                talk.hot.note_several(talk.key)  # else it may have been read before that was said
            talk.hot.load(talk.key, path[::skips], owner="ann", newest=newest, first=first, reader=reader)
        if self.is_buried or skips > 1 or behind or sum(map(len, map(to_element, path))) > TAIL_BYTES_MAX:
            return
        tail = self.talks[0].tail(path[0].message.id, limit=TAIL_MESSAGES_MAX)
        assert tail.owner == "ann"
        newer = sum(message > path[-1].message.id for message in self.table)
        if newer < TAIL_MESSAGES_MAX and self._takes_bytes() <= TAIL_BYTES_MAX:
            assert tail.following is None

    # --- the cache, and time ---

    @rule(what=st.sampled_from(["nothing", "the register", "everything", "a loader's time", "time", "much time"]))
    def lose(self, what: str) -> None:
        for lab, talk in zip(self.labs, self.talks, strict=True):
            if what == "the register":
                lab.lose_register(talk)
            elif what == "everything" and not self.is_buried:
                for stream in self.opened:  # what has settled leaves its state for a while
                    lab.lose(Talk(talk.hot, talk.key, stream))
                lab.lose(talk)
            elif what == "a loader's time":
                lab.pass_ms(talk, TAIL_LOAD_MS)
            elif what == "time":
                lab.pass_ms(talk, CLAIM_VOID_MS)
            elif what == "much time" and not self.live and not self.is_buried:
                lab.pass_ms(talk, TAIL_MS)
                lab.lose_register(talk)
        if what in {"the register", "everything", "much time"}:
            self.is_told_of_several = False
        if what == "everything" and not self.is_buried:
            self.live, self.sealed = {}, set()

    @precondition(lambda self: len(self.table) > 20)
    @rule()
    def bury(self) -> None:
        counts = {talk.hot.bury(talk.key)[0] for talk in self.talks}
        assert len(counts) == 1 or self.is_buried
        self.is_buried = True
        self.live, self.sealed = {}, set()

    @invariant()
    def nothing_is_left_of_what_was_buried(self) -> None:
        if self.is_buried:
            assert [talk.hot.bury(talk.key) for talk in self.talks] == [(0, ())] * len(self.talks)

    # --- how ---

    def _settled(self, behind: int) -> str | None:
        names = sorted(self.table)
        return names[-1 - behind] if behind < len(names) else None

    def _path(self, leaf: str | None) -> list[StoredMessage]:
        path = []
        while leaf is not None and leaf in self.table:
            path.append(self.table[leaf])
            leaf = path[-1].message.parent
        return path

    def _has_several(self) -> bool:
        roots = [kept.message for kept in self.table.values() if kept.message.parent is None]
        return len(roots) > 1 and any(map(is_prompt, roots))

    def _takes_bytes(self) -> int:
        return sum(len(to_element(each)) for each in self.table.values())

    def _claim(self, message: str, parent: str | None) -> bool:
        newest = max(self.table, default=None)
        verdicts = []
        for talk in self.talks:
            verdict = talk.claim(message, parent, fork=True)
            if verdict == LeafUnknown():
                verdict = talk.claim(message, parent, fork=True, confirmed=newest)
            verdicts.append(verdict)
        assert verdicts == [verdicts[0]] * len(verdicts)
        assert verdicts[0] == (Erased() if self.is_buried else verdicts[0])
        return verdicts[0] == Claimed()

    def _put(self, message: str, parent: str | None, characters: int) -> None:
        parts = text_parts(noise(characters, len(self.table)))
        role = "system" if len(self.table) % 3 else "user"
        kept = stored(self.talks[0].key, message, parent=parent, parts=parts, role=role, epoch=len(self.table))
        self.table.setdefault(message, kept)
        if parent is None and self._has_several():
            for talk in self.talks:
                talk.hot.note_several(talk.key)
            self.is_told_of_several = True

    def _fill(self, message: str) -> None:
        for talk in self.talks:
            talk.hot.fill(talk.key, self.table[message])

    def _check(self, tail: Tail, leaf: str | None, limit: int) -> None:
        """It says what the table holds, from the very end on, and how it begins where it says so."""
        if self._has_several():
            assert tail.first in (UNSET, SEVERAL)
        elif tail.first is not UNSET:
            oldest = self.table[min(self.table)]
            assert tail.first == (in_page(oldest) if is_prompt(oldest.message) else None)
        if not tail.is_known:
            assert leaf is None or leaf in self.live
            assert tail.messages == ()
            return
        if leaf is None:
            leaf = max([*self.table, *(stream for stream in self.live if stream not in self.table)], default=None)
            while leaf in self.live and leaf not in self.table:
                leaf = self.live[leaf]
        path = self._path(leaf)
        count = len(tail.messages)
        assert tail.leaf == leaf
        assert count <= limit
        assert list(tail.messages) == path[:count]
        assert tail.following == (path[count].message.id if count < len(path) else None)


@pytest.fixture
def valkey(valkey_single: Address) -> Iterator[Lab]:
    lab = ValkeyLab(valkey_single, is_cluster=False)
    yield lab
    lab.close()


def test_what_the_tail_gives_out_is_true_and_both_tiers_agree(valkey: Lab) -> None:
    class Machine(Conversation):
        def __init__(self) -> None:
            super().__init__([Lab(), valkey])

    run_state_machine_as_test(
        Machine,
        settings=settings(
            max_examples=100, stateful_step_count=40, deadline=None, suppress_health_check=[HealthCheck.too_slow]
        ),
    )
