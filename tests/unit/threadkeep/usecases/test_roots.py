"""A beginning that is forked, as by whoever edits a system prompt: each branch has its own, in whatever tier."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.house import LAPTOP, PHONE, WORKER, Frame, House, house, text_part
from tests.support.regions import Regions, regions
from tests.support.tiers import Calls, Tale
from threadkeep.domain.bounds import MEMBER_MESSAGES_MAX
from threadkeep.domain.model import ConversationKey
from threadkeep.domain.tail import SEVERAL
from threadkeep.schema import SORT_ROOTS
from threadkeep.usecases.context import read_whole
from threadkeep.usecases.tiers import Tiers

__all__ = ["house", "regions"]


class Edited(Tale):
    """A conversation whose system prompt was edited after so many messages, and which went on from the new one.

    Attributes:
        roots: the old prompt and the new one.
        branches: the messages under each, the oldest first.
    """

    def __init__(self, house: House, *, length: int = 150, old: str = "system", new: str = "system") -> None:
        super().__init__(house)
        self.roots = [self.begin(old, fork=False)]
        self.branches = [self.chain(length, self.roots[0])]
        self.look(self.branches[0][-1])  # so that the hot tier knows the first message, where it may
        self.roots.append(self.begin(new))
        self.branches.append(self.chain(length, self.roots[1]))

    def begin(self, role: str, **fields: Any) -> str:
        """A root, sent as everybody sends one."""
        by = PHONE if role == "user" else WORKER
        made = self.house.message(self.conversation, by=by, role=role, **{"fork": True} | fields)
        self.ids.append(made)
        return made

    def look(self, leaf: str, **fields: Any) -> Frame:
        """A context of a few messages."""
        asked: Frame = {"leaf": leaf, "max_messages": 5} | fields
        return self.house.ok(PHONE, "context.read", conversation=self.conversation, **asked)

    def check(self, *prompts: str | None) -> None:
        """Each branch is given that before its newest messages, and so is the responder."""
        for branch, prompt in zip(self.branches, prompts, strict=True):
            expected = branch[-5:] if prompt is None else [prompt, *branch[-4:]]
            for _ in range(2):  # the second as the first has left the hot tier
                reply = self.look(branch[-1])
                assert ids_of(reply) == expected
                assert (reply["cursor"], reply["truncated"]) == (branch[-5 if prompt else -6], True)
                assert "damaged" not in reply
            tiers = Tiers.of(self.house.services)
            whole = read_whole(tiers, self.key, branch[-1], messages_max=5, tokens_max=10_000)
            assert [message.id for message in whole] == expected


def ids_of(reply: Frame) -> list[str]:
    return [message["id"] for message in reply["messages"]]


@pytest.fixture
def edited(house: House) -> Edited:
    return Edited(house)


@pytest.mark.parametrize("tier", ["hot", "lost", "away", "cold"])
def test_each_branch_begins_with_its_own_system_message(edited: Edited, tier: str) -> None:
    """The fault: whoever edits the prompt goes on with the old one."""
    if tier == "cold":
        edited.rest()
        for root, branch in zip(edited.roots, edited.branches, strict=True):
            edited.archive([root, *branch])
    if tier == "lost":
        edited.house.lose_hot()
    edited.house.hot.unavailable = tier == "away"
    edited.check(*edited.roots)


def test_it_goes_on_so_message_by_message(edited: Edited) -> None:
    for number in (0, 1, 0):
        parent = edited.branches[number][-1]
        said = edited.house.message(edited.conversation, parent, fork=True)
        edited.branches[number].append(said)
        edited.check(*edited.roots)


@pytest.mark.parametrize(("old", "new"), [("system", "user"), ("user", "system"), ("system", "assistant")])
def test_where_only_one_of_them_is_a_system_message_the_other_branch_has_none(house: House, old: str, new: str) -> None:
    edited = Edited(house, old=old, new=new)
    own = [root if role == "system" else None for root, role in zip(edited.roots, (old, new), strict=True)]
    edited.check(*own)
    house.lose_hot()
    edited.check(*own)


def test_a_root_that_is_dated_back_is_no_beginning_of_what_was_there(house: House) -> None:
    edited = Edited(house, length=20)
    older = edited.old_id(house.clock.ms - 3_600_000)
    assert edited.begin("system", message=older) == older
    edited.roots.append(older)
    edited.branches.append(edited.chain(20, older))
    edited.check(*edited.roots)
    house.lose_hot()
    edited.check(*edited.roots)


@pytest.mark.parametrize("is_by_body", [False, True])
def test_a_stream_that_is_a_root_is_one_of_them(house: House, *, is_by_body: bool) -> None:
    tale = Tale(house)
    prompt = house.message(tale.conversation, by=WORKER, role="system")
    old = tale.chain(10, prompt)
    if is_by_body:
        opening = {"parent": None, "role": "assistant", "body": [text_part("Hello.")]}
        place = {"stream": house.new_id(), "epoch": 1, "offset": 0}
        house.ok(WORKER, "stream.close", conversation=tale.conversation, status="complete", **place, **opening)
    else:
        place = house.stream(tale.conversation, fork=True)
        house.ok(WORKER, "stream.close", status="complete", **place)
    new = tale.chain(10, str(place["stream"]))
    for leaf, expected in ((old[-1], [prompt, *old[-2:]]), (new[-1], new[-3:])):
        reply = house.ok(PHONE, "context.read", conversation=tale.conversation, leaf=leaf, max_messages=3)
        assert ids_of(reply) == expected


def test_a_stream_that_is_the_first_root_counts_while_it_is_written(house: House) -> None:
    """It is in no table yet, and will be the first there."""
    tale = Tale(house)
    place = house.stream(tale.conversation)
    prompt = house.message(tale.conversation, by=WORKER, role="system", fork=True)
    house.ok(WORKER, "stream.close", status="complete", **place)
    chain = tale.chain(10, prompt)
    reply = house.ok(PHONE, "context.read", conversation=tale.conversation, leaf=chain[-1], max_messages=3)
    assert ids_of(reply) == [prompt, *chain[-2:]]


# --- what nobody pays for ---------------------------------------------------------------------------------------


def test_who_has_one_root_or_no_system_message_pays_for_none_of_it(house: House) -> None:
    tale = Tale(house)
    calls = Calls(house)
    root = house.message(tale.conversation, fork=True)
    assert calls.counted["warm.read_first"] == 1  # a fork that finds nothing to stand beside
    calls.forget()
    house.message(tale.conversation, root)
    house.message(tale.conversation, root, fork=True)
    assert calls.counted["warm.read_first"] == 0
    house.message(tale.conversation, fork=True)  # another question to begin with
    assert calls.counted["warm.read_first"] == 1
    assert calls.counted["warm.note_several"] == calls.counted["hot.note_several"] == 0
    leaf = tale.chain(100, root)[-1]
    calls.forget()
    for _ in range(2):
        house.ok(PHONE, "context.read", conversation=tale.conversation, leaf=leaf, max_messages=5)
    assert calls.counted["warm.read_messages"] == 1


def test_a_second_root_is_said_once_and_the_hot_tier_is_asked_afterwards(house: House) -> None:
    edited = Edited(house, length=20)
    calls = Calls(house)
    edited.look(edited.branches[1][-1])
    edited.look(edited.branches[0][-1])
    assert calls.counted["warm.read_first"] == 0
    edited.begin("user")
    assert (calls.counted["warm.note_several"], calls.counted["hot.note_several"]) == (0, 1)
    house.lose_hot()
    calls = Calls(house)
    edited.look(edited.branches[1][-1])
    assert calls.counted["warm.read_first"] == 1
    edited.look(edited.branches[1][-1])
    assert calls.counted["warm.read_first"] == 1


def test_the_way_to_the_root_is_read_in_few_reads(house: House) -> None:
    edited = Edited(house, length=1_000)
    house.lose_hot()
    calls = Calls(house)
    edited.look(edited.branches[1][-1])
    assert calls.counted["warm.read_messages"] <= 16


# --- what can go wrong ------------------------------------------------------------------------------------------


def test_a_reader_who_read_the_table_before_tells_nobody_of_the_old_one(edited: Edited) -> None:
    first = edited.house.warm.messages[edited.key][edited.roots[0]]
    edited.house.hot.load(edited.key, (), owner="ann", first=first)
    edited.check(*edited.roots)


def test_a_root_that_the_table_cannot_be_told_of_is_not_put(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    edited = Edited(house, length=10, old="user", new="user")
    leaf = edited.branches[1][-1]
    note, standing = house.warm.note_several, dict(house.warm.messages[edited.key])

    def fail(key: ConversationKey) -> None:
        house.warm.unavailable = True
        note(key)

    message = house.new_id()
    asked: Frame = {"message": message, "parent": None, "role": "system", "parts": [], "fork": True}
    with monkeypatch.context() as patch:
        patch.setattr(house.warm, "note_several", fail)
        reply = house.say(WORKER, "message.create", conversation=edited.conversation, **asked)
        house.warm.unavailable = False
    assert (reply["code"], reply["retryable"]) == ("unavailable", True)
    assert house.warm.messages[edited.key] == standing
    house.message(edited.conversation, leaf)  # nobody waits for it
    house.ok(WORKER, "message.create", conversation=edited.conversation, **asked)
    edited.roots[:] = [message]
    edited.branches[:] = [edited.chain(10, message)]
    edited.check(message)


def test_an_attempt_that_broke_off_is_made_up_for_by_the_next(house: House) -> None:
    """The table was told, and the hot tier was not."""
    edited = Edited(house, length=10, new="user")
    house.lose_hot()
    edited.house.hot.load(
        edited.key, (), owner="ann", newest=None, first=house.warm.messages[edited.key][edited.roots[0]]
    )
    edited.roots.append(edited.begin("system"))
    edited.branches.append(edited.chain(10, edited.roots[-1]))
    edited.check(edited.roots[0], None, edited.roots[2])


def test_damage_on_the_way_to_the_root_is_told_and_no_prompt_is_guessed(house: House) -> None:
    edited = Edited(house, length=MEMBER_MESSAGES_MAX * 3)
    edited.rest()
    old, new = (edited.archive([root, *branch]) for root, branch in zip(edited.roots, edited.branches, strict=True))
    edited.damage(new, 1)
    assert edited.branches[1][-5:] == ids_of(reply := edited.look(edited.branches[1][-1]))
    lost = new.members[1]
    assert reply["damaged"] == [{"first": lost.first, "last": lost.last, "count": lost.count}]
    assert (reply["cursor"], reply["truncated"]) == (edited.branches[1][-6], True)
    assert len(old.members) > 2
    assert ids_of(edited.look(edited.branches[0][-1])) == [edited.roots[0], *edited.branches[0][-4:]]


@pytest.mark.parametrize("role", ["user", "system"])
def test_a_root_beside_a_first_message_that_no_bucket_gives_is_told_apart(house: House, role: str) -> None:
    """It may have been a system message."""
    tale = Tale(house)
    manifest_of = [tale.put(None, role=role), *tale.chain(3, tale.ids[-1])]
    tale.rest()
    manifest = tale.archive(manifest_of)
    whole = {region: dict(bucket.objects) for region, bucket in house.cold.buckets.items()}
    tale.damage(manifest, 0)
    leaf = tale.chain(10, house.message(tale.conversation, fork=True))[-1]
    for region, bucket in house.cold.buckets.items():
        bucket.objects.update(whole[region])
    assert house.warm.read_first(tale.key) == SEVERAL
    reply = house.ok(PHONE, "context.read", conversation=tale.conversation, leaf=leaf, max_messages=3)
    assert ids_of(reply) == tale.ids[-3:]


# --- in another region ------------------------------------------------------------------------------------------


def branched(regions: Regions) -> tuple[str, list[list[str]]]:
    """A conversation of two prompts that is written in one region, and known in the other up to the second of them."""
    conversation, branches = regions.eu.conversation(), []
    for fork in (False, True):
        path = [regions.eu.message(conversation, by=WORKER, role="system", fork=fork)]
        for _ in range(8):
            path.append(regions.eu.message(conversation, path[-1]))
        branches.append(path)
        if not fork:
            regions.settle()
            look(regions, conversation, path[-1])
    return conversation, branches


def look(regions: Regions, conversation: str, leaf: str) -> list[str]:
    return ids_of(regions.us.ok(LAPTOP, "context.read", conversation=conversation, leaf=leaf, max_messages=3))


@pytest.mark.parametrize("order", ["at once", "messages first", "roots first", "roots last"])
def test_another_region_hears_of_a_second_root(regions: Regions, order: str) -> None:
    conversation, branches = branched(regions)
    if order == "messages first":
        regions.replicate(lambda sort_key: sort_key != SORT_ROOTS)
        regions.announce(regions.us)
    if order == "roots last":
        regions.replicate(lambda sort_key: sort_key != SORT_ROOTS)
        regions.announce(regions.us)
        regions.us.lose_hot()
        look(regions, conversation, branches[1][-1])  # nothing here says yet that it is not the old one
    if order == "roots first":
        regions.replicate(lambda sort_key: sort_key == SORT_ROOTS)
        regions.announce(regions.us)
    if order != "messages first":
        regions.settle()
    for path in branches:
        assert look(regions, conversation, path[-1]) == [path[0], *path[-2:]]
