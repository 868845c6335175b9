"""Reading back: the path from a leaf or every branch, each message exactly once, in frames."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest

from tests.support.house import PHONE, WORKER, Frame, House, text_part
from tests.support.tiers import Tale
from threadkeep.domain import ids
from threadkeep.domain.bounds import FRAME_BYTES_MAX, PATH_STEPS_MAX


def pages(house: House, conversation: str, **fields: Any) -> list[Frame]:
    """All pages from the newest on."""
    found: list[Frame] = []
    cursor = None
    while not found or cursor is not None:
        found.append(house.ok(PHONE, "message.list", conversation=conversation, cursor=cursor, **fields))
        cursor = found[-1]["cursor"]
        assert found[-1]["tier"] in {"hot", "warm"}
        assert len(found) < 100, "the pages come to an end"
    return found


def listed(house: House, conversation: str, **fields: Any) -> list[str]:
    """Ids of all pages, in order."""
    return [message["id"] for page in pages(house, conversation, **fields) for message in page["messages"]]


class Tree:
    """A conversation whose trunk has a side branch at every second message, and a second root.

    Attributes:
        trunk: ids of the branch that holds the newest message, oldest first.
        sides: ids of the side branches, each of one message.
        ids: all of them, oldest first.
    """

    def __init__(self, house: House) -> None:
        self.conversation = house.conversation()
        self.trunk: list[str] = []
        self.sides: dict[str, str] = {}
        parent = None
        for number in range(12):
            parent = house.message(self.conversation, parent, text=str(number), fork=True)
            self.trunk.append(parent)
            if number % 2:
                self.sides[parent] = house.message(self.conversation, parent, text="side", fork=True)
        self.other_root = house.message(self.conversation, None, text="root", fork=True)
        parent = house.message(self.conversation, self.trunk[-1], fork=True)
        self.trunk.append(parent)
        self.ids = sorted([*self.trunk, *self.sides.values(), self.other_root])


@pytest.fixture
def tree(house: House) -> Tree:
    return Tree(house)


LIMITS = pytest.mark.parametrize("limit", [1, 2, 3, 5, 100])


def test_an_empty_conversation_has_an_empty_page(house: House) -> None:
    reply = house.ok(PHONE, "message.list", conversation=house.conversation())
    assert (reply["messages"], reply["cursor"], reply["tier"]) == ([], None, "warm")


@LIMITS
def test_the_path_from_the_present_leaf_comes_newest_first_each_once(house: House, tree: Tree, limit: int) -> None:
    assert listed(house, tree.conversation, limit=limit) == tree.trunk[::-1]


@LIMITS
def test_the_path_from_a_named_leaf_is_its_branch(house: House, tree: Tree, limit: int) -> None:
    fork = tree.trunk[5]
    path = [tree.sides[fork], *tree.trunk[5::-1]]
    assert listed(house, tree.conversation, leaf=tree.sides[fork], limit=limit) == path
    assert listed(house, tree.conversation, leaf=tree.other_root, limit=limit) == [tree.other_root]
    assert listed(house, tree.conversation, leaf=tree.trunk[7], limit=limit) == tree.trunk[7::-1]


@LIMITS
def test_every_branch_comes_in_the_order_of_ids(house: House, tree: Tree, limit: int) -> None:
    assert listed(house, tree.conversation, leaf="all", limit=limit) == tree.ids[::-1]


@LIMITS
@pytest.mark.parametrize("leaf", [None, "all"])
def test_before_and_after_are_exclusive_bounds(house: House, tree: Tree, limit: int, leaf: str | None) -> None:
    everything = tree.ids if leaf else tree.trunk
    for before, after in ((tree.trunk[9], None), (None, tree.trunk[4]), (tree.trunk[9], tree.trunk[4])):
        bounds = {name: bound for name, bound in (("before", before), ("after", after)) if bound}
        expected = [
            message
            for message in reversed(everything)
            if (before is None or message < before) and (after is None or message > after)
        ]
        assert expected
        assert listed(house, tree.conversation, leaf=leaf, limit=limit, **bounds) == expected


@pytest.mark.parametrize("leaf", [None, "all"])
def test_bounds_with_nothing_between_them_give_an_empty_end(house: House, tree: Tree, leaf: str | None) -> None:
    crossed = {"before": tree.trunk[3], "after": tree.trunk[3]}
    assert listed(house, tree.conversation, leaf=leaf, **crossed) == []
    assert listed(house, tree.conversation, leaf=leaf, before=tree.trunk[0]) == []
    assert listed(house, tree.conversation, leaf=leaf, after=tree.trunk[-1]) == []


@LIMITS
def test_before_is_a_message_of_the_path_whatever_came_after_it(house: House, tree: Tree, limit: int) -> None:
    for leaf in (tree.trunk[5], tree.sides[tree.trunk[5]]):
        path = [leaf, *tree.trunk[5::-1]] if leaf != tree.trunk[5] else tree.trunk[5::-1]
        newer = {"leaf": leaf, "before": tree.trunk[9], "limit": limit}
        assert listed(house, tree.conversation, **newer) == path, "a bound that lies beyond the leaf bounds nothing"
        older = {"leaf": leaf, "before": tree.trunk[3], "limit": limit}
        assert listed(house, tree.conversation, **older) == tree.trunk[2::-1]
    side = {"before": tree.sides[tree.trunk[5]], "limit": limit}
    assert listed(house, tree.conversation, **side) == tree.trunk[5::-1]


def test_before_a_message_that_is_known_to_be_of_another_branch_is_refused(house: House, tree: Tree) -> None:
    fork = tree.trunk[5]
    side = {"conversation": tree.conversation, "leaf": tree.trunk[-1], "before": tree.sides[fork]}
    refused = house.say(PHONE, "message.list", **side)
    assert (refused["code"], refused["retryable"]) == ("bad_request", False)
    assert listed(house, **(side | {"leaf": tree.sides[fork]})) == tree.trunk[5::-1]
    root = {"leaf": tree.trunk[-1], "before": tree.other_root}
    assert house.say(PHONE, "message.list", conversation=tree.conversation, **root)["code"] == "bad_request"
    # What the hot tier does not hold cannot be told without walking there: the message is taken for one of the path.
    house.lose_hot()
    assert listed(house, **side) == tree.trunk[5::-1]


def test_a_path_longer_than_one_request_may_walk_to_a_bound_is_walked_in_several(house: House) -> None:
    tale = Tale(house)
    chain = tale.chain(2 * PATH_STEPS_MAX + 50)
    between = ids.mint(ids.time_ms(chain[20]))
    while between in chain or not chain[19] < between < chain[21]:
        between = ids.mint(ids.time_ms(chain[20]))
    expected = [message for message in reversed(chain) if message < between]
    found = pages(house, tale.conversation, before=between, limit=100)
    assert [message["id"] for page in found for message in page["messages"]] == expected
    assert [len(page["messages"]) for page in found] == [0, 0, len(expected)]


def test_a_bound_between_ids_need_not_exist(house: House, tree: Tree) -> None:
    assert listed(house, tree.conversation, after=house.new_id()) == []
    assert listed(house, tree.conversation, before=house.new_id()) == tree.trunk[::-1]


def test_a_named_leaf_outside_the_bounds_is_an_empty_end_and_one_that_is_not_here_not_found(
    house: House, tree: Tree
) -> None:
    assert listed(house, tree.conversation, leaf=tree.trunk[3], after=tree.trunk[3]) == []
    elsewhere = house.message(house.conversation())
    for bounds in ({}, {"before": tree.trunk[0]}, {"after": tree.trunk[-1]}, {"after": house.new_id()}):
        for leaf in (elsewhere, house.new_id()):
            reply = house.say(PHONE, "message.list", conversation=tree.conversation, leaf=leaf, **bounds)
            assert reply["code"] == "not_found"


def test_a_cursor_that_no_page_gave_is_refused_or_shows_nothing_foreign(house: House, tree: Tree) -> None:
    secret = house.message(house.conversation(), text="elsewhere")
    for cursor in ("x", "all", secret.upper(), f" {secret}"):
        for leaf in (None, "all"):
            reply = house.say(PHONE, "message.list", conversation=tree.conversation, cursor=cursor, leaf=leaf)
            assert reply["code"] == "bad_request"
    reply = house.ok(PHONE, "message.list", conversation=tree.conversation, cursor=secret)
    assert (reply["messages"], reply["cursor"]) == ([], None)


def test_messages_come_whole_and_in_as_many_pages_as_frames_take(house: House) -> None:
    conversation = house.conversation()
    parent, sent = None, []
    for number in range(20):
        text = str(number) + "界" * (number * 350)
        parent = house.message(conversation, parent, text=text)
        sent.append(text)
    found = pages(house, conversation)
    messages = [message for page in found for message in page["messages"]]
    assert [message["parts"][0]["text"] for message in reversed(messages)] == sent
    assert 1 < len(found) < 20
    for page, following in pairwise(found):
        size = len(str(page).encode()) + len(str(following["messages"][0]).encode())
        assert size > FRAME_BYTES_MAX * 3 // 4, "a page is filled before another begins"
    every = pages(house, conversation, leaf="all")
    assert [message for page in every for message in page["messages"]] == messages


def test_during_an_answer_the_present_path_ends_at_its_question(house: House) -> None:
    conversation = house.conversation()
    question = house.message(conversation)
    stream = house.stream(conversation, question)["stream"]
    assert listed(house, conversation) == [question]
    assert listed(house, conversation, leaf=stream) == [question], "as if the present leaf were not named"
    assert listed(house, conversation, leaf="all") == [question]


def test_a_stream_that_forks_takes_the_present_path_with_it(house: House) -> None:
    conversation = house.conversation()
    root = house.message(conversation)
    house.message(conversation, root)
    house.stream(conversation, root, fork=True)
    assert listed(house, conversation) == [root]


def test_a_path_that_names_a_message_which_is_not_here_ends_there(house: House) -> None:
    conversation = house.conversation()
    root = house.message(conversation)
    lost = house.message(conversation, root)
    leaf = house.message(conversation, lost)
    del house.warm.messages[house.key(conversation)][lost]
    house.lose_hot()
    for limit in (1, 2, 100):
        assert listed(house, conversation, limit=limit) == [leaf]


def test_produce_reads_every_users_history(house: House) -> None:
    conversation = house.conversation()
    house.message(conversation, text="for the model")
    (message,) = house.ok(WORKER, "message.list", conversation=conversation)["messages"]
    assert message["parts"] == [text_part("for the model")]


# --- much that is damaged -------------------------------------------------------------------------------------


@pytest.mark.parametrize("every", [1, 2, 3])
@pytest.mark.parametrize("leaf", ["all", None])
@pytest.mark.parametrize("length", [1, 400])
def test_damage_in_very_many_places_fits_the_frames_and_each_is_told_once(
    house: House, every: int, leaf: str | None, length: int
) -> None:
    """A page with more places of damage to tell of than a frame takes was refused as a fault."""
    tale = Tale(house)
    chain = tale.chain(240, text="x" * length)
    tale.rest()
    for number, message in enumerate(chain[:-1]):
        manifest = tale.archive([message])
        if number % every == 0:
            tale.damage(manifest, 0)
    lost = [message for number, message in enumerate(chain[:-1]) if number % every == 0]
    said = {"conversation": tale.conversation, "limit": 100} | ({} if leaf is None else {"leaf": leaf})
    replies = [house.ok(PHONE, "message.list", **said)]
    while (cursor := replies[-1]["cursor"]) is not None:
        replies.append(house.ok(PHONE, "message.list", cursor=cursor, **said))
    shown = [message["id"] for reply in replies for message in reply["messages"]]
    assert shown == [message for message in chain if message not in lost][::-1]
    told = [stretch for reply in replies for stretch in reply.get("damaged", [])]
    assert sum(stretch["count"] for stretch in told) == len(lost)
    assert all(any(one["first"] <= message <= one["last"] for one in told) for message in lost)
    whole = [house.ok(PHONE, "context.read", conversation=tale.conversation, max_messages=1_000)]
    while (cursor := whole[-1]["cursor"]) is not None:
        whole.append(house.ok(PHONE, "context.read", conversation=tale.conversation, max_messages=1_000, cursor=cursor))
    assert {message["id"] for reply in whole for message in reply["messages"]} == set(shown)
    assert sum(stretch["count"] for reply in whole for stretch in reply.get("damaged", [])) == len(lost)
