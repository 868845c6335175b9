"""What every hot tier keeps of a conversation's end: the path from its newest message, whole, within bounds."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from msgspec import UNSET, Raw, UnsetType

from tests.support.conversations import awkward_object, noise, text_parts
from tests.support.hot import COMPLETE, Lab, Talk, new_id, new_key, older_id, stored
from threadkeep.domain.bounds import (
    CLAIM_VOID_MS,
    FRAME_BYTES_MAX,
    LEASE_MS,
    TAIL_BYTES_MAX,
    TAIL_LOAD_MS,
    TAIL_MESSAGES_MAX,
    TAIL_MS,
)
from threadkeep.domain.leaf import Claimed, LeafUnknown
from threadkeep.domain.model import ConversationKey, StoredMessage
from threadkeep.domain.streams import Facts, Sealed
from threadkeep.domain.tail import SEVERAL, Several, Tail
from threadkeep.ports import HotStore


def ids_of(tail: Tail) -> list[str]:
    return [each.message.id for each in tail.messages]


def ids_up(path: list[StoredMessage]) -> list[str]:
    """Ids of a path, newest first."""
    return [each.message.id for each in reversed(path)]


# --- a path -----------------------------------------------------------------------------------------------------


def test_the_path_is_read_from_the_newest_message_up(talk: Talk) -> None:
    path = talk.said(5)
    assert talk.tail() == Tail(owner="ann", leaf=path[-1].message.id, messages=tuple(reversed(path)))


def test_no_more_is_read_than_was_asked_for_and_what_follows_is_named(talk: Talk) -> None:
    path = talk.said(5)
    tail = talk.tail(limit=2)
    assert ids_of(tail) == ids_up(path)[:2]
    assert tail.following == path[2].message.id


def test_a_message_comes_back_whole(talk: Talk) -> None:
    talk.said(0)
    message = stored(
        talk.key,
        new_id(),
        epoch=1_795_981_771_616,
        role="assistant",
        status="failed",
        parts=({"type": Raw(b'"odd"')} | awkward_object(), *text_parts("Grüße \u0000 \U0001f642")),
        metadata=awkward_object(),
        usage={"output_tokens": Raw(b"17"), "cost": Raw(b"1.0")},
        error={"code": Raw(b'"overloaded"'), "retryable": Raw(b"true")},
        model="a-model",
        reply=new_id(),
    )
    talk.hot.fill(talk.key, message)
    assert talk.tail().messages == (message,)


def test_a_message_that_fits_no_frame_comes_without_its_parts(talk: Talk) -> None:
    """As a page of the table has it, and says how large they are."""
    talk.said(0)
    message = stored(talk.key, new_id(), parts=text_parts("x" * FRAME_BYTES_MAX))
    talk.hot.fill(talk.key, message)
    assert talk.tail().messages == (StoredMessage(message.message.without_parts()),)


def test_only_the_path_is_read_however_many_branches_lie_between(talk: Talk) -> None:
    [root] = talk.said(1)
    start = root.message.id
    branches = [talk.kept(parent=start) for _ in range(40)]
    child = talk.kept(parent=branches[0])
    assert ids_of(talk.tail()) == [child, branches[0], start]
    assert ids_of(talk.tail(branches[7])) == [branches[7], start]
    assert talk.tail(branches[7]).leaf == branches[7]


def test_a_path_ends_where_a_message_is_missing(talk: Talk) -> None:
    missing = new_id()
    path = talk.said(2, parent=missing)
    tail = talk.tail()
    assert ids_of(tail) == ids_up(path)
    assert tail.following == missing
    elsewhere = older_id()
    assert talk.tail(elsewhere) == Tail(owner="ann", leaf=elsewhere, following=elsewhere)


def test_a_conversation_without_messages_is_known_to_have_none(talk: Talk) -> None:
    talk.hot.load(talk.key, (), owner="ann", newest=None)
    assert talk.tail(reader="r") == Tail(owner="ann")


def test_messages_are_read_in_their_place_in_whatever_order_they_come(talk: Talk) -> None:
    names = [new_id() for _ in range(6)]
    parents: list[str | None] = [None, *names]
    messages = [stored(talk.key, name, parent=parent) for name, parent in zip(names, parents, strict=False)]
    talk.hot.load(talk.key, (), owner="ann", newest=names[-1])
    for i in (5, 1, 3):
        talk.hot.fill(talk.key, messages[i])
    talk.hot.load(talk.key, [messages[4], messages[0], messages[2], messages[3]], owner="ann")
    assert talk.tail().messages == tuple(reversed(messages))


def test_what_is_there_already_stays_as_it_is(talk: Talk) -> None:
    path = talk.said(3)
    for each in path:
        other = msgspec.structs.replace(each.message, metadata={"other": Raw(b"1")})
        talk.hot.load(talk.key, [StoredMessage(other)], owner="ann")
        talk.hot.fill(talk.key, each)
    assert talk.tail().messages == tuple(reversed(path))


def test_what_the_table_has_otherwise_is_forgotten_and_kept_anew(talk: Talk) -> None:
    path = talk.said(3)
    talk.hot.forget_tail(talk.key)
    tail = talk.tail()
    assert (tail.is_known, tail.messages, tail.following) == (True, (), path[-1].message.id)
    other = StoredMessage(msgspec.structs.replace(path[-1].message, metadata={"other": Raw(b"1")}))
    talk.hot.settle(talk.key, other)
    talk.hot.load(talk.key, path, owner="ann")  # by a reader that had read the table before
    assert talk.tail().messages == (other, *reversed(path[:-1]))
    talk.other().hot.forget_tail(new_key())


def test_a_settled_stream_is_the_newest_of_the_tail(talk: Talk) -> None:
    path = talk.said(1)
    reply = talk.answering(path[-1].message.id)
    facts = Facts(parent=path[-1].message.id, role="assistant")
    reply.seal(reply.opened(facts=facts, takeover=True), 0)
    message = stored(talk.key, reply.stream, parent=path[-1].message.id, role="assistant", epoch=7)
    talk.hot.settle(talk.key, message)
    assert talk.tail().messages == (message, path[0])


def test_every_conversation_has_its_own_tail(hot: HotStore) -> None:
    key = new_key()
    one = Talk(hot, key)
    one.said(2)
    for other in (ConversationKey(f"{key.tenant}/", key.conversation), ConversationKey(key.tenant, new_id())):
        assert Talk(hot, other).tail() == Tail(is_known=False)


# --- where it begins --------------------------------------------------------------------------------------------


def test_a_live_stream_is_no_message_yet(talk: Talk) -> None:
    path = talk.said(2)
    reply = talk.answering(path[-1].message.id)
    for leaf in (None, reply.stream):
        tail = talk.tail(leaf)
        assert (tail.leaf, ids_of(tail)) == (path[-1].message.id, ids_up(path))


def test_before_the_first_message_has_settled_the_path_is_empty(talk: Talk) -> None:
    talk.opened()
    assert talk.tail(talk.stream) == Tail()
    talk.hot.load(talk.key, (), owner="ann", newest=None)
    assert talk.tail(talk.stream) == talk.tail() == Tail(owner="ann")


def test_who_has_lost_the_leaf_says_so(lab: Lab, talk: Talk) -> None:
    """And knows a path by its leaf all the same."""
    path = talk.said(2)
    lab.lose_register(talk)
    assert talk.tail() == Tail(is_known=False)
    assert talk.tail(path[-1].message.id).messages == tuple(reversed(path))
    talk.hot.load(talk.key, (), owner="ann", newest=path[-1].message.id)
    assert talk.tail().messages == tuple(reversed(path))


def test_what_is_filled_after_the_loss_may_not_be_the_newest(lab: Lab, talk: Talk) -> None:
    talk.said(2)
    lab.lose_register(talk)
    leaf = talk.said(1)[-1]  # has read the table before that was put
    lab.lose_register(talk)
    talk.hot.fill(talk.key, leaf)
    assert not talk.tail().is_known
    talk.hot.load(talk.key, (), owner="ann", newest=leaf.message.id)
    assert talk.tail().leaf == leaf.message.id


def test_a_claimed_message_may_be_in_the_table_already(lab: Lab, talk: Talk) -> None:
    """Put, and its filling was lost: to leave it out would be a history without what was just acknowledged."""
    leaf = talk.said(1)[-1].message.id
    message = new_id()
    talk.claim(message, leaf)
    assert not talk.tail().is_known
    lab.pass_ms(talk, CLAIM_VOID_MS)
    assert not talk.tail().is_known
    talk.hot.load(talk.key, (), owner="ann", newest=leaf)
    assert talk.tail().leaf == leaf
    talk.claim(message, leaf)
    assert not talk.tail().is_known
    talk.hot.load(talk.key, (), owner="ann", newest=message)
    assert talk.tail().leaf == message


@pytest.mark.parametrize("ends_by", ["fill", "release"])
def test_once_it_is_filled_or_given_back_the_leaf_is_known(talk: Talk, ends_by: str) -> None:
    leaf = talk.said(1)[-1].message.id
    message = new_id()
    talk.claim(message, leaf)
    if ends_by == "fill":
        talk.fill(message, parent=leaf)
        assert ids_of(talk.tail()) == [message, leaf]
    else:
        talk.hot.release(talk.key, message)
        assert ids_of(talk.tail()) == [leaf]


def test_a_claim_behind_the_leaf_moves_nothing(talk: Talk) -> None:
    back_dated = older_id()
    leaf = talk.said(1)[-1].message.id
    talk.claim(back_dated, None, fork=True)
    assert talk.tail().leaf == leaf


@pytest.mark.parametrize("ending", ["close", "stop", "expire"])
def test_a_sealed_stream_may_be_in_the_table_already(lab: Lab, talk: Talk, ending: str) -> None:
    leaf = talk.said(1)[-1].message.id
    reply = talk.answering(leaf)
    epoch = reply.opened(facts=Facts(parent=leaf, role="assistant"), takeover=True)
    if ending == "expire":
        lab.pass_ms(reply, LEASE_MS)
    ends = {"close": lambda: reply.seal(epoch, 0), "stop": lambda: reply.stop(COMPLETE), "expire": reply.expire}
    assert isinstance(ends[ending](), Sealed)
    for asked in (None, reply.stream):
        assert not talk.tail(asked).is_known
    assert talk.tail(leaf).is_known
    reply.settle()
    assert talk.tail().leaf == reply.stream


# --- bounds -----------------------------------------------------------------------------------------------------


def test_the_tail_keeps_so_many_messages_the_newest(talk: Talk) -> None:
    path = talk.said(TAIL_MESSAGES_MAX + 6)
    tail = talk.tail(limit=1_000)
    assert tail.messages == tuple(reversed(path[6:]))
    assert tail.following == path[5].message.id
    talk.hot.load(talk.key, path[:6], owner="ann")
    assert talk.tail(limit=1_000) == tail


def test_what_is_loaded_at_once_is_kept_to_the_same_bounds(talk: Talk) -> None:
    names = [new_id() for _ in range(3 * TAIL_MESSAGES_MAX)]
    parents: list[str | None] = [None, *names]
    path = [stored(talk.key, name, parent=parent) for name, parent in zip(names, parents, strict=False)]
    talk.hot.load(talk.key, list(reversed(path)), owner="ann", newest=names[-1])
    assert talk.tail(limit=1_000).messages == tuple(reversed(path[-TAIL_MESSAGES_MAX:]))


@pytest.mark.parametrize("is_late", [True, False])
def test_the_tail_keeps_so_many_bytes_the_newest(talk: Talk, *, is_late: bool) -> None:
    """A message of 16,000 characters that hardly compress takes more than 12,000 bytes and less than 16,000."""
    names = [new_id() for _ in range(30)]
    parents: list[str | None] = [None, *names]
    path = [
        stored(talk.key, name, parent=parent, parts=text_parts(noise(16_000, seed)))
        for seed, (name, parent) in enumerate(zip(names, parents, strict=False))
    ]
    talk.hot.load(talk.key, (), owner="ann", newest=names[-1])
    order = [*path[:-3], path[-1], path[-2], path[-3]] if is_late else path
    for each in order:
        talk.hot.fill(talk.key, each)
    tail = talk.tail(limit=1_000)
    assert TAIL_BYTES_MAX // 16_000 <= len(tail.messages) <= TAIL_BYTES_MAX // 12_000
    assert ids_of(tail) == ids_up(path)[: len(tail.messages)]


def test_small_ones_take_the_place_of_large_ones(talk: Talk) -> None:
    large = talk.said(30, parts=text_parts(noise(16_000)))
    small = talk.said(10, parent=large[-1].message.id)
    kept = len(talk.tail(limit=1_000).messages)
    more = talk.said(30, parent=small[-1].message.id)
    tail = talk.tail(limit=1_000)
    assert ids_of(tail)[:40] == ids_up([*small, *more])
    assert kept < len(tail.messages) < kept + 30 + 1


def test_the_tail_stays_a_while(lab: Lab, talk: Talk) -> None:
    leaf = talk.said(1)[-1].message.id
    lab.pass_ms(talk, TAIL_MS - 60_000)
    assert ids_of(talk.tail(leaf)) == [leaf]
    lab.pass_ms(talk, 60_000)
    assert ids_of(talk.tail(leaf)) == []


def test_nothing_is_kept_longer_than_it_may_be(lab: Lab, talk: Talk) -> None:
    [message] = talk.said(1)
    leaf = message.message.id
    talk.hot.load(talk.key, [message], owner="ann", lives_ms=600_000)
    lab.pass_ms(talk, 540_000)
    assert ids_of(talk.tail(leaf)) == [leaf]
    lab.pass_ms(talk, 60_000)
    assert ids_of(talk.tail(leaf)) == []
    talk.hot.load(talk.key, [message], owner="ann", lives_ms=0)
    assert ids_of(talk.tail(leaf)) == []


# --- who fills it -----------------------------------------------------------------------------------------------


def test_of_those_who_miss_something_one_loads(talk: Talk) -> None:
    missing = [stored(talk.key, new_id())]
    talk.said(1, parent=missing[0].message.id)
    assert not talk.tail().is_loading
    assert not talk.tail(reader="one").is_loading
    assert talk.tail(reader="two").is_loading
    assert talk.tail().is_loading
    assert not talk.tail(reader="one").is_loading
    talk.hot.load(talk.key, [], owner="ann", reader="two")
    assert talk.tail(reader="two").is_loading  # it is not the one's to give back
    talk.hot.load(talk.key, [], owner="ann", reader="one")
    assert not talk.tail(reader="two").is_loading
    talk.hot.load(talk.key, missing, owner="ann", reader="two")
    assert talk.tail(reader="three") == talk.tail(reader="four")


def test_who_died_loading_is_waited_for_no_longer_than_a_while(lab: Lab, talk: Talk) -> None:
    talk.said(1, parent=older_id())
    assert not talk.tail(reader="one").is_loading
    lab.pass_ms(talk, TAIL_LOAD_MS)
    assert not talk.tail(reader="two").is_loading
    assert talk.tail(reader="one").is_loading


def test_whoever_does_not_know_the_leaf_loads_too(talk: Talk) -> None:
    assert talk.tail(reader="one") == Tail(is_known=False)
    assert talk.tail(reader="two") == Tail(is_known=False, is_loading=True)


@pytest.mark.parametrize(("count", "limit"), [(1, 20), (20, 20), (TAIL_MESSAGES_MAX + 5, 1_000)])
def test_nobody_loads_where_there_is_enough_or_no_room_for_more(talk: Talk, count: int, limit: int) -> None:
    talk.said(count)
    for reader in ("one", "two"):
        assert not talk.tail(limit=limit, reader=reader).is_loading


def test_nobody_loads_where_the_bytes_are_taken_up(talk: Talk) -> None:
    talk.said(30, parts=text_parts(noise(16_000)))
    for reader in ("one", "two"):
        assert not talk.tail(limit=30, reader=reader).is_loading


# --- the owner --------------------------------------------------------------------------------------------------


def test_the_owner_is_known_once_a_reader_has_told(lab: Lab, talk: Talk) -> None:
    talk.fill(new_id())
    assert talk.tail().owner is None
    talk.hot.load(talk.key, (), owner="bob\u0000 {ann}")
    assert talk.tail().owner == "bob\u0000 {ann}"
    lab.lose_register(talk)
    assert talk.tail().owner is None


def test_the_owner_is_no_claim(lab: Lab, talk: Talk) -> None:
    """Nor is one whose name is a number a claim of that moment."""
    leaf = talk.said(1)[-1].message.id
    talk.hot.load(talk.key, (), owner="17")
    lab.pass_ms(talk, CLAIM_VOID_MS)
    assert (talk.tail().leaf, talk.tail().owner) == (leaf, "17")
    assert talk.claim(new_id(), leaf) == Claimed()
    assert talk.tail(leaf).owner == "17"


# --- the first message ------------------------------------------------------------------------------------------


def first(talk: Talk, **options: Any) -> StoredMessage | Several | UnsetType | None:
    """As a reader is told of it that sees one message of the path."""
    return talk.tail(limit=1, wants_first=True, **options).first


def prompt(talk: Talk, message: str | None = None, **facts: Any) -> StoredMessage:
    """A system message that is a root."""
    return stored(talk.key, message or new_id(), role="system", **facts)


def begun(talk: Talk, **facts: Any) -> StoredMessage:
    """A conversation that begins with a system message, and goes on."""
    talk.hot.load(talk.key, (), owner="ann", newest=None)
    message = prompt(talk, **facts)
    talk.hot.fill(talk.key, message)
    talk.hot.fill(talk.key, stored(talk.key, new_id(), parent=message.message.id))
    return message


def test_a_system_message_that_begins_a_conversation_is_told_of_with_every_path_that_is_not_whole(talk: Talk) -> None:
    message = begun(talk, epoch=7, parts=text_parts("Grüße"), metadata=awkward_object())
    said = talk.said(TAIL_MESSAGES_MAX + 6, parent=talk.tail().leaf)
    assert first(talk) == message
    assert talk.tail(said[-1].message.id, wants_first=True).first == message
    assert talk.tail().first is UNSET
    assert talk.tail(limit=1_000, wants_first=True).messages == tuple(reversed(said[6:]))


def test_a_path_that_reaches_its_root_is_told_of_no_other(talk: Talk) -> None:
    message = begun(talk)
    side = talk.kept()
    for leaf in (side, message.message.id, None):
        tail = talk.tail(leaf, wants_first=True)
        assert (tail.following, tail.first) == (None, UNSET)


def test_a_conversation_that_begins_otherwise_is_known_to(talk: Talk) -> None:
    talk.said(2)
    assert first(talk) is None
    talk.said(2, parent=talk.tail().leaf, role="system")
    assert first(talk) is None
    talk.hot.fill(talk.key, stored(talk.key, new_id()))  # a root too, later and no prompt either
    talk.said(1, parent=talk.tail().leaf)
    assert first(talk) is None


def test_an_answer_that_begins_a_conversation_is_its_first(talk: Talk) -> None:
    talk.closed(b"[1]")
    talk.settle()
    talk.fill(new_id(), parent=talk.stream)
    assert first(talk) is None


def test_what_was_there_before_the_first_that_it_has_heard_of_is_not_known(lab: Lab, talk: Talk) -> None:
    """A register that was lost, or knows of older messages, may not be told of the first one."""
    talk.hot.load(talk.key, (), owner="ann", newest=older_id())
    message = prompt(talk)
    talk.hot.fill(talk.key, message)
    talk.fill(new_id(), parent=message.message.id)
    assert first(talk) is UNSET
    lab.lose_register(talk)
    talk.hot.fill(talk.key, prompt(talk))
    assert first(talk) is UNSET


@pytest.mark.parametrize("pending", ["claim", "stream"])
def test_while_an_older_one_is_on_its_way_the_first_is_not_known(talk: Talk, pending: str) -> None:
    talk.hot.load(talk.key, (), owner="ann", newest=None)
    if pending == "claim":
        talk.claim(new_id(), None)
    else:
        talk.opened()
    message = prompt(talk)
    talk.hot.fill(talk.key, message)
    leaf = new_id()
    talk.fill(leaf, parent=message.message.id)
    assert first(talk, leaf=leaf) is UNSET


def test_whoever_has_read_the_first_message_tells_of_it(lab: Lab, talk: Talk) -> None:
    oldest = older_id()
    leaf = talk.said(2, parent=older_id())[-1].message.id
    assert first(talk) is UNSET
    for role, told in (("system", True), ("user", False), ("system", True)):
        message = stored(talk.key, oldest, role=role)
        talk.hot.load(talk.key, (), owner="ann", first=message)
        assert first(talk) == (message if told else None)
    talk.hot.load(talk.key, (), owner="ann")
    assert first(talk) == message
    lab.lose_register(talk)
    assert talk.tail(leaf, limit=1, wants_first=True).first == message


def test_a_system_message_under_another_is_no_beginning(talk: Talk) -> None:
    talk.said(2, parent=older_id())
    talk.hot.load(talk.key, (), owner="ann", first=stored(talk.key, older_id(), role="system", parent=older_id()))
    assert first(talk) is None


def test_one_that_is_dated_back_takes_its_place_where_neither_is_a_prompt(lab: Lab, talk: Talk) -> None:
    found, oldest = new_id(), older_id()
    talk.said(2)
    talk.hot.fill(talk.key, stored(talk.key, oldest))
    talk.hot.forget_tail(talk.key)
    talk.hot.load(talk.key, (), owner="ann", first=prompt(talk, found))  # by whoever read before that was put
    talk.fill(new_id(), parent=talk.tail().leaf)
    assert first(talk) is None
    lab.lose_register(talk)
    assert first(talk, leaf=new_id()) is UNSET


def test_a_prompt_that_is_older_than_what_was_taken_for_the_first_is_not_taken_for_it(talk: Talk) -> None:
    """It may be that one's root, come late from another region, or another root: the table tells."""
    oldest = older_id()
    talk.said(2)
    talk.hot.fill(talk.key, prompt(talk, oldest))
    talk.fill(new_id(), parent=talk.tail().leaf)
    assert first(talk) is UNSET
    talk.hot.load(talk.key, (), owner="ann", first=prompt(talk, oldest))
    assert first(talk) == prompt(talk, oldest)


# --- several roots ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("is_older", [True, False])
@pytest.mark.parametrize("role", ["system", "user"])
def test_a_root_beside_a_prompt_leaves_no_first_message(talk: Talk, role: str, *, is_older: bool) -> None:
    other = older_id()
    message = begun(talk)
    other = other if is_older else new_id()
    talk.hot.fill(talk.key, stored(talk.key, other, role=role))
    for parent in (message.message.id, other):
        leaf = new_id()
        talk.fill(leaf, parent=parent)
        assert first(talk, leaf=leaf) == SEVERAL
    assert talk.tail(other, wants_first=True).first is UNSET


@pytest.mark.parametrize("length", [10, 22_000])
def test_a_later_prompt_beside_another_root_leaves_none_either(talk: Talk, length: int) -> None:
    talk.said(2)
    talk.hot.settle(talk.key, prompt(talk, parts=text_parts(noise(length))))
    talk.fill(new_id(), parent=talk.tail().leaf)
    assert first(talk) == SEVERAL


def test_that_the_table_tells_of_several_roots_outdoes_every_reader(lab: Lab, talk: Talk) -> None:
    """Of them some read the table a moment before; and what is put later than that is no first message either."""
    found = prompt(talk, older_id())
    talk.said(2, parent=new_id())
    talk.hot.note_several(talk.key)
    for message in (found, stored(talk.key, older_id()), prompt(talk, found.message.id)):
        talk.hot.load(talk.key, (), owner="ann", newest=talk.tail().leaf, first=message)
        assert first(talk) == SEVERAL
    talk.hot.fill(talk.key, prompt(talk, older_id()))
    talk.fill(new_id(), parent=talk.tail().leaf)
    assert first(talk) == SEVERAL
    talk.hot.forget_tail(talk.key)
    assert talk.tail(wants_first=True).first == SEVERAL
    lab.lose_register(talk)
    assert talk.tail(new_id(), wants_first=True).first is UNSET
    talk.hot.load(talk.key, (), owner="ann", first=found)
    assert talk.tail(new_id(), wants_first=True).first == found


def test_it_is_known_of_a_register_that_is_not(talk: Talk) -> None:
    talk.hot.note_several(talk.key)
    assert talk.tail(new_id(), wants_first=True).first == SEVERAL
    assert not talk.tail(wants_first=True).is_known
    assert talk.claim(new_id(), None) == LeafUnknown()


def test_beside_a_gravestone_it_is_not_kept(talk: Talk) -> None:
    begun(talk)
    talk.hot.note_several(talk.key)
    talk.hot.bury(talk.key)
    talk.hot.note_several(talk.key)
    assert talk.hot.bury(talk.key)[0] == 0


def test_what_a_reader_has_found_is_no_news_where_an_older_one_has_come(talk: Talk) -> None:
    """It read the table before that was put."""
    oldest, found = sorted([older_id(), older_id()])
    talk.said(2, parent=new_id())
    talk.hot.fill(talk.key, stored(talk.key, oldest))
    talk.hot.load(talk.key, (), owner="ann", first=prompt(talk, found))
    assert first(talk) is UNSET
    message = prompt(talk, oldest)
    talk.hot.load(talk.key, (), owner="ann", first=message)
    talk.hot.load(talk.key, (), owner="ann", first=stored(talk.key, found))
    assert first(talk) == message


def test_too_large_a_first_message_is_not_kept(talk: Talk) -> None:
    begun(talk, parts=text_parts(noise(22_000)))
    assert first(talk) is UNSET
    talk.hot.load(talk.key, (), owner="ann", first=prompt(talk, older_id(), parts=text_parts(noise(22_000))))
    assert first(talk) is UNSET


def test_one_that_no_frame_takes_is_kept_without_its_parts(talk: Talk) -> None:
    message = begun(talk, parts=text_parts("x" * FRAME_BYTES_MAX))
    assert first(talk) == StoredMessage(message.message.without_parts())


def test_the_first_message_stays_as_long_as_the_tail(lab: Lab, talk: Talk) -> None:
    message = begun(talk)
    lab.pass_ms(talk, TAIL_MS - 60_000)
    leaf = talk.kept(parent=talk.tail().leaf)
    lab.pass_ms(talk, TAIL_MS - 60_000)
    assert talk.tail(leaf, limit=1, wants_first=True).first == message
    talk.hot.load(talk.key, (), owner="ann", lives_ms=600_000)
    lab.pass_ms(talk, 600_000)
    assert not isinstance(talk.tail(new_id(), limit=1, wants_first=True).first, StoredMessage)
    talk.hot.load(talk.key, (), owner="ann", first=message, lives_ms=0)
    assert not isinstance(talk.tail(new_id(), limit=1, wants_first=True).first, StoredMessage)


def test_it_is_no_claim(lab: Lab, talk: Talk) -> None:
    leaf = talk.said(2)[-1].message.id
    assert first(talk) is None
    lab.pass_ms(talk, CLAIM_VOID_MS)
    assert talk.tail().leaf == leaf
    assert talk.claim(new_id(), leaf) == Claimed()
    assert talk.tail(leaf, limit=1, wants_first=True).first is None
