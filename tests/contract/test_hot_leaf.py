"""What every hot tier answers about a conversation's leaf: of two sends one is refused, whatever is lost."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.hot import ANN, Lab, Talk, new_id, new_key, older_id
from threadkeep.domain.bounds import CLAIM_VOID_MS
from threadkeep.domain.leaf import Claimed, IdTaken, LeafUnknown, ParentPending
from threadkeep.domain.model import ConversationKey
from threadkeep.domain.streams import Facts, Opened, ParentMissing, ParentOpen, StaleLeaf
from threadkeep.ports import HotStore


def answer_to(parent: str) -> Facts:
    return Facts(parent=parent, role="assistant")


# --- a claim --------------------------------------------------------------------------------------------------


def test_who_knows_nothing_asks_the_table_first(talk: Talk) -> None:
    message = new_id()
    assert talk.claim(message, None) == LeafUnknown()
    assert talk.claim(message, None, fork=True) == LeafUnknown()
    assert talk.claim(message, None, confirmed=None) == Claimed()


def test_once_asked_it_knows(talk: Talk) -> None:
    question = older_id()
    assert talk.claim(new_id(), None, confirmed=question) == StaleLeaf(question)
    assert talk.claim(new_id(), question) == Claimed()


def test_of_two_sends_under_one_parent_the_second_is_refused_and_told_the_first(talk: Talk) -> None:
    parent = talk.kept()
    first, second = new_id(), new_id()
    assert talk.claim(first, parent) == Claimed()
    assert talk.claim(second, parent) == StaleLeaf(first)
    assert talk.claim(second, parent, confirmed=parent) == StaleLeaf(first)  # not put yet, but about to be
    talk.fill(first)
    assert talk.claim(second, parent) == StaleLeaf(first)
    assert talk.claim(second, first) == Claimed()


def test_of_two_roots_too(talk: Talk) -> None:
    first = new_id()
    assert talk.claim(first, None, confirmed=None) == Claimed()
    assert talk.claim(new_id(), None, confirmed=None) == StaleLeaf(first)


def test_a_message_that_is_not_put_yet_is_no_parent(talk: Talk) -> None:
    parent = talk.kept()
    message = new_id()
    talk.claim(message, parent)
    child = new_id()
    for fork in (False, True):
        assert talk.claim(child, message, fork=fork) == ParentPending()
        assert talk.claim(child, message, fork=fork, confirmed=parent) == ParentPending()
    assert talk.claim(child, message, confirmed=message) == Claimed()  # put, its filling was lost


def test_a_retry_gets_its_place_again(talk: Talk) -> None:
    parent = talk.kept()
    message = new_id()
    assert talk.claim(message, parent) == Claimed()
    assert talk.claim(message, parent) == Claimed()
    talk.fill(message)
    assert talk.claim(message, parent) == Claimed()
    assert talk.claim(message, parent, confirmed=message) == Claimed()
    assert talk.claim(new_id(), message) == Claimed()  # and it is no claim any more: no `ParentPending`


def test_a_claim_that_is_given_back_leaves_the_leaf_as_it_was(talk: Talk) -> None:
    parent, message = talk.kept(), new_id()
    talk.claim(message, parent)
    talk.hot.release(talk.key, message)
    assert talk.claim(new_id(), parent) == Claimed()


def test_only_its_own_claim_is_given_back(talk: Talk) -> None:
    parent, message, branch = talk.kept(), new_id(), new_id()
    talk.claim(message, parent)
    talk.claim(branch, parent, fork=True)
    talk.hot.release(talk.key, branch)
    talk.hot.release(talk.key, new_id())
    assert talk.claim(new_id(), parent) == StaleLeaf(message)  # the one before is under way all the same
    talk.fill(message)
    talk.hot.release(talk.key, message)  # too late
    assert talk.claim(new_id(), parent) == StaleLeaf(message)


def test_a_branch_is_the_leaf_if_it_is_the_newest(talk: Talk) -> None:
    back_dated = older_id()
    root = talk.kept()
    leaf = talk.kept(parent=root)
    assert talk.claim(back_dated, None, fork=True) == Claimed()
    assert talk.claim(new_id(), back_dated) == StaleLeaf(leaf)
    talk.fill(back_dated)
    assert talk.claim(new_id(), back_dated) == StaleLeaf(leaf)
    branch = talk.kept(parent=root)
    assert talk.claim(new_id(), leaf) == StaleLeaf(branch)
    assert talk.claim(new_id(), branch) == Claimed()


def test_fills_may_come_in_any_order(talk: Talk) -> None:
    root = talk.kept()
    first, second = new_id(), new_id()
    talk.claim(first, root)
    talk.claim(second, root, fork=True)
    talk.fill(second)
    talk.fill(first)
    assert talk.claim(new_id(), first) == StaleLeaf(second)
    assert talk.claim(new_id(), second) == Claimed()


def test_filling_names_the_viewers(talk: Talk) -> None:
    assert talk.fill(new_id()) == ()
    talk.watch("c1")
    assert talk.fill(new_id()) == ("c1",)


# --- live streams ---------------------------------------------------------------------------------------------


def test_a_live_stream_is_the_leaf_and_no_parent(talk: Talk) -> None:
    question = talk.kept()
    talk = talk.answering(question)
    later = talk.other().stream
    assert talk.claim(later, question) == StaleLeaf(talk.stream)
    assert talk.claim(later, question, confirmed=question) == StaleLeaf(talk.stream)
    assert talk.claim(later, talk.stream) == ParentOpen()
    assert talk.claim(later, talk.stream, fork=True) == ParentOpen()
    assert talk.claim(later, question, fork=True) == Claimed()


def test_a_live_stream_whose_message_the_table_holds_is_a_parent(talk: Talk) -> None:
    """Its settling here is under way, or was lost."""
    question = talk.kept()
    talk = talk.answering(question)
    assert talk.claim(new_id(), talk.stream) == ParentOpen()
    assert talk.claim(new_id(), talk.stream, confirmed=question) == ParentOpen()
    reply = talk.other()
    assert isinstance(reply.open(facts=answer_to(talk.stream), leaf=talk.stream), Opened)
    assert talk.claim(new_id(), reply.stream, confirmed=reply.stream) == Claimed()


def test_stale_comes_before_open_and_pending(talk: Talk) -> None:
    question = talk.kept()
    talk = talk.answering(question)
    newest = talk.other().stream
    talk.claim(newest, question, fork=True)
    assert talk.claim(new_id(), talk.stream) == StaleLeaf(newest)
    even_newer = new_id()
    talk.claim(even_newer, question, fork=True)
    assert talk.claim(new_id(), newest) == StaleLeaf(even_newer)


def test_no_message_goes_by_a_live_streams_id(talk: Talk) -> None:
    talk.opened(fork=True)
    assert talk.claim(talk.stream, None, fork=True) == IdTaken()
    assert talk.claim(talk.stream, None, confirmed=None) == IdTaken()


@pytest.mark.parametrize("is_sealed", [True, False])
def test_what_settles_is_the_leaf_as_what_is_filled(talk: Talk, *, is_sealed: bool) -> None:
    question = talk.kept()
    talk = talk.other()
    epoch = talk.opened(facts=answer_to(question), leaf=question)
    if is_sealed:
        talk.seal(epoch, 0)
    talk.settle()
    assert talk.claim(new_id(), question) == StaleLeaf(talk.stream)
    assert talk.claim(new_id(), talk.stream) == Claimed()


def test_an_open_is_judged_by_what_is_claimed(talk: Talk) -> None:
    root, message = talk.kept(), new_id()
    talk.claim(message, root)
    reply = talk.other()
    assert reply.open(facts=answer_to(root), leaf=root) == StaleLeaf(message)
    assert reply.open(facts=answer_to(message), leaf=root, parent_settled=False) == ParentMissing()
    assert isinstance(reply.open(facts=answer_to(message), leaf=root), Opened)  # put meanwhile


def test_two_workers_under_one_question_do_not_both_answer(talk: Talk) -> None:
    """The second is told of the first, whatever ids they mint."""
    question = talk.kept()
    first, second = talk.answering(question), talk.other()
    assert second.open(facts=answer_to(question), leaf=question) == StaleLeaf(first.stream)


def test_an_open_corrects_the_register(talk: Talk) -> None:
    old, newest = older_id(), new_id()
    assert talk.claim(new_id(), None, confirmed=old) == StaleLeaf(old)
    reply = talk.other()
    assert reply.open(facts=answer_to(old), leaf=newest) == StaleLeaf(newest)
    assert talk.claim(new_id(), old) == StaleLeaf(newest)


# --- what the table says, and time ----------------------------------------------------------------------------


def test_the_table_is_right_where_it_has_a_newer_one(talk: Talk) -> None:
    root = talk.kept()
    newer = new_id()
    assert talk.claim(new_id(), newer) == StaleLeaf(root)
    assert talk.claim(new_id(), newer, confirmed=newer) == Claimed()


def test_an_answer_of_the_table_that_is_older_than_a_fill_takes_nothing_back(talk: Talk) -> None:
    root = talk.kept()
    leaf = talk.kept(parent=root)
    assert talk.claim(new_id(), root, confirmed=root) == StaleLeaf(leaf)


def test_a_claim_that_never_came_is_void_once_the_table_says_so(lab: Lab, talk: Talk) -> None:
    root, lost = talk.kept(), new_id()
    talk.claim(lost, root)
    lab.pass_ms(talk, CLAIM_VOID_MS - 5_000)
    assert talk.claim(new_id(), root, confirmed=root) == StaleLeaf(lost)
    lab.pass_ms(talk, 5_000)
    message = new_id()
    assert talk.claim(message, root) == LeafUnknown()  # nobody is refused, or let in, by what may not be
    assert talk.claim(message, root, fork=True) == LeafUnknown()
    assert talk.claim(message, root, confirmed=root) == Claimed()
    assert talk.claim(lost, root) == StaleLeaf(message)  # should it come yet, it is judged anew


def test_a_claim_that_the_table_has_is_never_void(lab: Lab, talk: Talk) -> None:
    root, message = talk.kept(), new_id()
    talk.claim(message, root)
    lab.pass_ms(talk, 2 * CLAIM_VOID_MS)
    assert talk.claim(new_id(), root) == LeafUnknown()
    assert talk.claim(new_id(), root, confirmed=message) == StaleLeaf(message)
    assert talk.claim(new_id(), message) == Claimed()


def test_what_the_table_was_seen_to_hold_is_never_overdue(lab: Lab, talk: Talk) -> None:
    """By a confirmation or by a fill, and claimed again by a retry: nobody has to ask the table again for it."""
    root, message = talk.kept(), new_id()
    talk.claim(message, root)
    assert talk.claim(new_id(), root, confirmed=message) == StaleLeaf(message)
    lab.pass_ms(talk, CLAIM_VOID_MS)
    assert talk.claim(new_id(), root) == StaleLeaf(message)
    assert talk.claim(message, root) == Claimed()
    lab.pass_ms(talk, CLAIM_VOID_MS)
    assert talk.claim(new_id(), root) == StaleLeaf(message)


def test_whether_a_parent_behind_the_leaf_is_there_is_for_the_caller_to_know(talk: Talk) -> None:
    root, first = talk.kept(), new_id()
    talk.claim(first, root)
    talk.kept(parent=root)
    assert talk.claim(new_id(), first, fork=True) == Claimed()


def test_a_retry_begins_its_time_anew(lab: Lab, talk: Talk) -> None:
    root, message = talk.kept(), new_id()
    talk.claim(message, root)
    lab.pass_ms(talk, CLAIM_VOID_MS)
    assert talk.claim(message, root) == Claimed()
    assert talk.claim(new_id(), root, confirmed=root) == StaleLeaf(message)


def test_a_live_stream_is_never_void(lab: Lab, talk: Talk) -> None:
    question = talk.kept()
    talk = talk.answering(question)
    lab.pass_ms(talk, 2 * CLAIM_VOID_MS)
    assert talk.claim(new_id(), question, confirmed=question) == StaleLeaf(talk.stream)


def test_an_open_voids_as_a_claim_does(lab: Lab, talk: Talk) -> None:
    root, lost = talk.kept(), new_id()
    talk.claim(lost, root)
    assert talk.open(facts=answer_to(root), leaf=root) == StaleLeaf(lost)
    lab.pass_ms(talk, CLAIM_VOID_MS)
    assert isinstance(talk.open(facts=answer_to(root), leaf=root), Opened)


# --- losing the register --------------------------------------------------------------------------------------


def test_a_fill_advances_a_register_that_was_rebuilt_before_its_put(lab: Lab, talk: Talk) -> None:
    """Claimed; all is lost; another reads the table, where it is not yet, and rebuilds; then it is put and filled."""
    root, message = talk.kept(), new_id()
    talk.claim(message, root)
    lab.lose_register(talk)
    assert talk.claim(new_id(), None, confirmed=root) == StaleLeaf(root)
    talk.fill(message)
    assert talk.claim(new_id(), root) == StaleLeaf(message)


@pytest.mark.parametrize("options", [{"fork": False}, {"fork": True}])
def test_a_fill_of_what_was_lost_is_not_forgotten_by_an_older_answer_of_the_table(
    lab: Lab, talk: Talk, options: dict[str, Any]
) -> None:
    """Claimed; the table is read; put; all is lost; filled; and only then comes what was read."""
    root, message = talk.kept(), new_id()
    talk.claim(message, root)
    lab.lose_register(talk)
    talk.fill(message)
    assert talk.claim(new_id(), root, **options) == LeafUnknown()  # it cannot tell whether that is the newest
    assert talk.claim(new_id(), root, confirmed=root) == StaleLeaf(message)
    assert talk.claim(new_id(), message, confirmed=message) == Claimed()


def test_a_fill_of_what_was_lost_hides_no_newer_one(lab: Lab, talk: Talk) -> None:
    root, message, newer = talk.kept(), new_id(), new_id()
    talk.claim(message, root)
    lab.lose_register(talk)
    talk.fill(message)
    assert talk.claim(new_id(), message, confirmed=newer) == StaleLeaf(newer)
    assert talk.claim(new_id(), newer) == Claimed()


def test_a_rebuilt_register_looks_at_live_streams_too(lab: Lab, talk: Talk) -> None:
    question = talk.kept()
    talk = talk.answering(question)
    lab.lose_register(talk)
    assert talk.claim(new_id(), question) == LeafUnknown()
    assert talk.claim(new_id(), question, confirmed=question) == StaleLeaf(talk.stream)


def test_a_stream_that_settles_after_the_loss_advances_the_leaf(lab: Lab, talk: Talk) -> None:
    question = talk.kept()
    talk = talk.other()
    epoch = talk.opened(facts=answer_to(question), leaf=question)
    talk.seal(epoch, 0)
    lab.lose(talk)
    assert talk.claim(new_id(), None, confirmed=question) == StaleLeaf(question)
    talk.settle()  # whoever sealed it had all of it, and has put it
    assert talk.claim(new_id(), question) == StaleLeaf(talk.stream)


def test_a_producer_that_opens_again_after_the_loss_is_the_leaf_again(lab: Lab, talk: Talk) -> None:
    question = talk.kept()
    talk = talk.other()
    epoch = talk.opened(facts=answer_to(question), leaf=question)
    lab.lose(talk)
    talk.opened(facts=answer_to(question), leaf=question, held=epoch)
    assert talk.claim(new_id(), question) == StaleLeaf(talk.stream)


def test_a_release_after_the_loss_takes_nothing_from_anybody(lab: Lab, talk: Talk) -> None:
    root, message, another = talk.kept(), new_id(), new_id()
    talk.claim(message, root)
    lab.lose_register(talk)
    talk.claim(another, root, confirmed=root)
    talk.hot.release(talk.key, message)
    assert talk.claim(new_id(), root) == StaleLeaf(another)


# --- isolation ------------------------------------------------------------------------------------------------


def test_every_conversation_has_its_own_leaf(hot: HotStore) -> None:
    key = new_key()
    one = Talk(hot, key)
    others = [
        Talk(hot, ConversationKey(f"{key.tenant}/", key.conversation)),
        Talk(hot, ConversationKey(key.tenant, new_id())),
    ]
    one.kept()
    one.open(writer=ANN, fork=True)
    for other in others:
        assert other.claim(one.stream, None) == LeafUnknown()
        assert other.claim(one.stream, None, confirmed=None) == Claimed()
