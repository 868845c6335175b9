"""Where two regions that had not heard of each other wrote over each other: the right one is put back, everywhere."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.support.conversations import conversation as made_conversation
from tests.support.conversations import message as made_message
from tests.support.conversations import text_parts
from tests.support.house import LAPTOP, PHONE, Device, Frame, House
from tests.support.logs import logged
from tests.support.regional_answer import RegionalAnswer
from tests.support.regions import EU, RegionHouse, Regions, regions
from threadkeep.domain.bounds import CONTESTED_AGAIN_MS, HEAD_CACHE_MS, LEASE_MS, SETTLED_LOG_MS
from threadkeep.domain.contests import Head
from threadkeep.domain.errors import WarmUnavailable
from threadkeep.domain.model import StoredMessage
from threadkeep.domain.tail import Tail

__all__ = ["logged", "regions"]

BOB = Device(connection="bob=", user="bob")
HELLO = [{"type": "text", "text": "Hello"}]


def all_comes(regions: Regions) -> None:
    """Everything written comes everywhere, what is put back too."""
    for _ in range(3):
        regions.settle()


# --- an id of two users -------------------------------------------------------------------------------------------


@pytest.fixture
def taken_over(regions: Regions) -> str:
    """Ann's in eu, which then counts as gone in us, where bob creates under the same id and watches."""
    conversation = regions.eu.conversation(title="ann's")
    regions.eu.message(conversation, text="secret")
    regions.us.evacuate(EU)
    regions.clock.ms += 5
    regions.us.ok(BOB, "conversation.create", conversation=conversation, title="bob's")
    regions.us.ok(BOB, "conversation.subscribe", conversation=conversation)
    regions.us.ok(BOB, "message.list", conversation=conversation)
    return conversation


def test_the_earlier_claim_has_it_in_every_region_and_the_other_user_nothing(regions: Regions, taken_over: str) -> None:
    all_comes(regions)
    regions.clock.ms += HEAD_CACHE_MS
    assert (
        regions.eu.items()[regions.eu.key(taken_over), "head"] == regions.us.items()[regions.us.key(taken_over), "head"]
    )
    for house in (regions.eu, regions.us):
        assert house.ok(PHONE, "conversation.get", conversation=taken_over)["conversation"]["title"] == "ann's"
        for action in ("conversation.get", "conversation.subscribe", "conversation.delete"):
            assert house.say(BOB, action, conversation=taken_over)["code"] == "not_found", action
        for action in ("message.list", "context.read"):
            assert house.say(BOB, action, conversation=taken_over)["code"] == "not_found", action
        listed = {
            device.user: [one["id"] for one in house.ok(device, "conversation.list")["items"]]
            for device in (PHONE, BOB)
        }
        assert listed == {"ann": [taken_over], "bob": []}


def test_whoever_watched_as_its_owner_is_told_nothing_any_more(regions: Regions, taken_over: str) -> None:
    all_comes(regions)
    for house in (regions.eu, regions.us):
        assert house.hot.viewers(house.key(taken_over)) == ()
    before = len(regions.us.frames(BOB))
    regions.us.ok(LAPTOP, "conversation.subscribe", conversation=taken_over)
    leaf = regions.us.ok(LAPTOP, "message.list", conversation=taken_over)["messages"][0]["id"]
    regions.us.message(taken_over, leaf, text="another secret", by=LAPTOP)
    assert len(regions.us.frames(BOB)) == before
    assert len(regions.us.frames(LAPTOP)) == 1


def test_the_hot_tier_knows_the_owner_even_where_a_reader_told_it_of_the_one_before(
    regions: Regions, taken_over: str
) -> None:
    """What a request had read before, it may tell afterwards: so it is said again."""
    regions.replicate()
    house = regions.eu
    records, house.records = house.records, []
    house.run("announcer", {"Records": records})
    told = [(job, delay_s) for job, delay_s in house.tell_queue.jobs if b'"head"' in job]
    assert [delay_s for _, delay_s in told] == [0, CONTESTED_AGAIN_MS // 1_000]
    house.hot.load(house.key(taken_over), (), owner="bob")
    house.hot.subscribe(house.key(taken_over), BOB.connection, lease_ms=60_000)
    house.tell_queue.jobs = told[1:]
    regions.announce(house)
    tail = house.hot.read_tail(house.key(taken_over), limit=1)
    assert isinstance(tail, Tail)
    assert tail.owner == "ann"
    assert house.hot.viewers(house.key(taken_over)) == ()


def test_it_is_counted_and_said_by_its_id_alone(regions: Regions, taken_over: str, logged: Callable[[], str]) -> None:
    regions.replicate()
    regions.announce(regions.eu)
    out = logged()
    assert '"HeadsPutBack":[1.0]' in out
    (line,) = [line for line in out.splitlines() if '"level":"WARNING"' in line]
    assert taken_over in line
    assert not [name for name in ("ann", "bob", "secret") if f'"{name}"' in line]


def test_a_title_given_meanwhile_stays_and_is_told_as_ever(regions: Regions, taken_over: str) -> None:
    regions.clock.ms += 5
    regions.eu.ok(PHONE, "conversation.update", conversation=taken_over, title="new")
    all_comes(regions)
    for house in (regions.eu, regions.us):
        assert house.ok(PHONE, "conversation.get", conversation=taken_over)["conversation"]["title"] == "new"
    regions.us.ok(LAPTOP, "conversation.subscribe", conversation=taken_over)
    regions.eu.ok(PHONE, "conversation.update", conversation=taken_over, title="newer")
    regions.settle()
    assert [frame["type"] for frame in regions.us.frames(LAPTOP)][-1] == "conversation.updated"
    assert regions.us.hot.viewers(regions.us.key(taken_over)) == (LAPTOP.connection,)


def told_of_its_head(regions: Regions, conversation: str, by: Device = BOB) -> None:
    """The earlier head is put back and has come to us, where a function still remembers the other owner."""
    regions.us.ok(by, "conversation.get", conversation=conversation)
    regions.replicate()
    regions.announce(regions.eu)
    regions.replicate()


def test_whom_a_function_remembers_as_the_owner_changes_and_is_shown_nothing(regions: Regions, taken_over: str) -> None:
    told_of_its_head(regions, taken_over)
    reply = regions.us.say(BOB, "conversation.update", conversation=taken_over, title="bob was here", metadata={"b": 1})
    assert (reply["type"], reply["code"]) == ("error", "not_found")
    all_comes(regions)
    regions.clock.ms += HEAD_CACHE_MS
    for house in (regions.eu, regions.us):
        kept = house.ok(PHONE, "conversation.get", conversation=taken_over)["conversation"]
        assert (kept["title"], kept["metadata"]) == ("ann's", {})


def test_nor_does_he_end_an_answer_and_read_it(regions: Regions, taken_over: str) -> None:
    told_of_its_head(regions, taken_over)
    stream = regions.us.stream(taken_over, fork=True)["stream"]
    for fields in ({"stream": stream}, {}):
        assert regions.us.say(BOB, "stream.cancel", conversation=taken_over, **fields)["code"] == "not_found"
    assert [live.stream for live in regions.us.hot.live(regions.us.key(taken_over))] == [stream]
    assert regions.us.ok(PHONE, "stream.cancel", conversation=taken_over)["messages"][0]["id"] == stream


def test_the_owner_is_told_at_once_that_it_is_hers_again(regions: Regions, taken_over: str) -> None:
    """Whatever a function remembers of the one before."""
    told_of_its_head(regions, taken_over)
    kept = regions.us.ok(PHONE, "conversation.update", conversation=taken_over, title="mine")["conversation"]
    assert (kept["owner"], kept["title"]) == ("ann", "mine")
    regions.us.ok(PHONE, "conversation.unsubscribe", conversation=taken_over)


def test_the_owners_title_is_refused_while_anothers_head_stands_there_and_hers_shown_to_nobody(
    regions: Regions, taken_over: str
) -> None:
    regions.clock.ms += 5
    regions.eu.ok(PHONE, "conversation.update", conversation=taken_over, title="told")
    regions.us.ok(BOB, "conversation.update", conversation=taken_over, metadata={"private": "bob"})
    regions.replicate()
    reply = regions.eu.say(PHONE, "conversation.update", conversation=taken_over, title="lost")
    assert (reply["type"], reply["code"]) == ("error", "not_found")
    all_comes(regions)
    for house in (regions.eu, regions.us):
        assert house.ok(PHONE, "conversation.get", conversation=taken_over)["conversation"]["title"] == "told"


def test_who_produces_for_the_tenant_changes_whoevers_it_is(regions: Regions, taken_over: str) -> None:
    both = Device(connection="both=", user="service", scope="chat produce")
    told_of_its_head(regions, taken_over, by=both)
    kept = regions.us.ok(both, "conversation.update", conversation=taken_over, title="by the service")["conversation"]
    assert (kept["owner"], kept["title"]) == ("ann", "by the service")


def test_where_it_cannot_be_put_back_now_its_record_comes_again(regions: Regions, taken_over: str) -> None:
    regions.replicate()
    house = regions.eu

    class Away:
        def put_head(self, *_: object) -> bool:
            raise WarmUnavailable("told so")

    stores, records = house.services.replaced, list(house.records)
    house.replace(replaced=Away())
    answer = house.run("announcer", {"Records": records})
    (failed,) = answer["batchItemFailures"]
    head = [one for one in records if one["dynamodb"]["Keys"]["sk"]["S"] == "head"][-1]
    assert failed == {"itemIdentifier": head["dynamodb"]["SequenceNumber"]}
    house.replace(replaced=stores)
    all_comes(regions)
    assert regions.us.ok(PHONE, "conversation.get", conversation=taken_over)["conversation"]["title"] == "ann's"


def test_beside_a_tombstone_no_head_comes_back(regions: Regions, taken_over: str) -> None:
    regions.replicate()
    for house in (regions.eu, regions.us):
        key = house.key(taken_over)
        assert house.warm.standing_head(key) is not None
    regions.us.ok(BOB, "conversation.delete", conversation=taken_over)
    regions.replicate()
    all_comes(regions)
    regions.clock.ms = regions.us.warm.gone[regions.us.key(taken_over)].second_pass_ms
    all_comes(regions)
    for house in (regions.eu, regions.us):
        left = [sort_key for (key, sort_key) in house.items() if key == house.key(taken_over)]
        assert all(sort_key.startswith("gone") for sort_key in left), left


def test_what_was_put_back_before_the_tombstone_came_lands_beside_it_and_goes(
    regions: Regions, taken_over: str
) -> None:
    key = regions.us.key(taken_over)
    regions.us.ok(BOB, "conversation.delete", conversation=taken_over)
    regions.settle()
    regions.clock.ms = regions.us.warm.gone[key].second_pass_ms
    all_comes(regions)
    # Of a third region that had not heard of it: its write is later than the deletion, and reaches all.
    regions.us.warm.put_standing_head(key, Head(made_conversation("ann", id=taken_over), 1))
    all_comes(regions)
    for house in (regions.eu, regions.us):
        assert house.warm.standing_head(key) is None


# --- a message of two contents ------------------------------------------------------------------------------------


class Answer(RegionalAnswer):
    """An answer that eu has complete, and us, which took eu for gone, has ended as interrupted after that."""

    def __init__(self, regions: Regions) -> None:
        super().__init__(regions)
        first = self.open(regions.eu)
        self.append(regions.eu, first, "Hello")
        regions.us.evacuate(EU)
        self.append(regions.us, self.open(regions.us, epoch=first["epoch"]), "Hel")
        self.close(regions.eu, first)
        for house in (regions.eu, regions.us):
            house.ok(PHONE, "conversation.subscribe", conversation=self.conversation)
        regions.clock.ms += LEASE_MS
        regions.us.sweep()
        assert self.stored(regions.us)["status"] == "interrupted"

    def stored(self, house: House) -> Frame:
        """Both have it."""
        found = super().stored(house)
        assert found is not None
        return found

    def hot(self, house: RegionHouse) -> Frame:
        """As its newest page shows it."""
        page = house.ok(PHONE, "message.list", conversation=self.conversation)
        return page | {"newest": page["messages"][0]}


@pytest.fixture
def answer(regions: Regions) -> Answer:
    return Answer(regions)


def test_a_complete_answer_is_not_replaced_by_a_lesser_one_in_any_region_or_tier(answer: Answer) -> None:
    regions = answer.regions
    regions.replicate()
    # Read in eu while the lesser one stands there, and kept by its hot tier if that had lost what it had.
    regions.eu.lose_hot()
    assert answer.hot(regions.eu)["newest"]["status"] == "interrupted"
    all_comes(regions)
    for house in (regions.eu, regions.us):
        for message in (answer.stored(house), answer.hot(house)["newest"]):
            assert (message["status"], message["parts"]) == ("complete", HELLO)
        assert answer.hot(house)["tier"] == "hot"
        page = house.ok(
            PHONE, "stream.resume", conversation=answer.conversation, stream=answer.stream, epoch=0, offset=0
        )
        assert page["message"]["status"] == "complete"
    shown = [frame for frame in regions.us.frames(PHONE) if frame["type"] == "message.created"]
    assert shown[-1]["message"]["status"] == "complete", "who was shown the other one is shown this"


def test_once_more_told_it_is_as_it_was(answer: Answer) -> None:
    regions = answer.regions
    regions.replicate()
    again = list(regions.eu.records)
    all_comes(regions)
    before = regions.eu.items()
    regions.eu.records = again
    all_comes(regions)
    assert regions.eu.items() == before
    assert regions.us.items() == before


def test_a_message_is_not_put_back_beside_a_tombstone(answer: Answer) -> None:
    regions = answer.regions
    regions.us.ok(PHONE, "conversation.delete", conversation=answer.conversation)
    regions.replicate()
    records, regions.eu.records = regions.eu.records, []
    outranked = [one for one in records if one["dynamodb"]["Keys"]["sk"]["S"] == f"m#{answer.stream}"]
    assert [one["eventName"] for one in outranked][-1] == "MODIFY"
    regions.eu.run("announcer", {"Records": outranked[-1:]})
    stored = regions.eu.warm.messages[regions.eu.key(answer.conversation)][answer.stream]
    assert stored.message.status == "interrupted"


def test_pages_of_a_long_message_that_was_replaced_are_those_of_the_other_soon(answer: Answer) -> None:
    """A function keeps what it has just cut into pages, but where there are other regions only for a while."""
    regions = answer.regions
    key = regions.eu.key(answer.conversation)
    long = StoredMessage(made_message(key, text_parts("x" * 60_000)))
    message = long.message.id
    regions.eu.warm.put_message(key.tenant, long)
    place = {"conversation": answer.conversation, "stream": message, "epoch": 0, "offset": 0}
    regions.eu.ok(PHONE, "stream.resume", **place)
    assert regions.eu.services.last_log.get(key, message, now_ms=regions.clock.ms) is not None
    regions.clock.ms += SETTLED_LOG_MS
    assert regions.eu.services.last_log.get(key, message, now_ms=regions.clock.ms) is None


def test_of_two_messages_under_one_id_the_later_stands_in_all_regions_and_tiers(regions: Regions) -> None:
    conversation = regions.eu.conversation()
    regions.settle()
    message = regions.eu.new_id()
    for house, text in ((regions.eu, "one"), (regions.us, "other")):
        house.message(conversation, message=message, text=text)
        regions.clock.ms += 5
    all_comes(regions)
    for house in (regions.eu, regions.us):
        for _ in range(2):
            page = house.ok(PHONE, "message.list", conversation=conversation)
            assert [part["text"] for part in page["messages"][0]["parts"]] == ["other"]
            house.lose_hot()
