"""However a tree lies in hot tail, table and segments, and whatever happens between pages, it reads alike."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import takewhile
from typing import Any
from unittest import mock
from uuid import UUID

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.conversations import message, text_parts
from tests.support.house import House, serving
from tests.support.tiers import damage
from threadkeep.domain import ids
from threadkeep.domain.archive import Damaged
from threadkeep.domain.commands import ListMessages, ReadContext
from threadkeep.domain.json_values import encode
from threadkeep.domain.model import Caller, Conversation, ConversationKey, StoredMessage
from threadkeep.stores import segments
from threadkeep.usecases import context, listing
from threadkeep.usecases.roots import note_root

ANN = Caller(tenant="acme", user="ann", scopes=frozenset({"chat"}), expires_at_ms=2**50, connection="c")
CREATED_MS = 1_700_000_000_000
STEP_MS = 1_000
MEMBER = 3
"""Messages of a member: a few messages are many."""


class World:
    """A conversation, where each of its messages lies, and what is known of it.

    Attributes:
        parents: of every message that was ever put.
        roles: of each.
    """

    def __init__(self) -> None:
        self.house = House()
        self.key = ConversationKey("acme", ids.mint(CREATED_MS))
        at = "2023-11-14T22:13:20.000Z"
        head = Conversation(id=self.key.conversation, owner="ann", metadata={}, created_at=at, active_at=at)
        self.house.warm.create_conversation("acme", head)
        self.parents: dict[str, str | None] = {}
        self.roles: dict[str, str] = {}

    @property
    def warm(self) -> list[str]:
        return sorted(self.house.warm.messages.get(self.key, {}))

    @property
    def archived(self) -> set[str]:
        manifests = self.house.manifests.read(self.key)
        read = (self.house.cold.read(self.key, manifest, manifest.members) for manifest in manifests)
        return {stored.message.id for found in read for stored in found}

    def put(self, parent: str | None, ms: int, role: str = "user") -> str:
        """A message of that time, or of the first after its parent; as whoever writes it says of a root."""
        time_ms = ms if parent is None else max(ms, ids.time_ms(parent) + 1)
        # Not `ids.mint`: what hypothesis draws must not hang on chance.
        identifier = str(UUID(int=time_ms << 80 | 0x7 << 76 | 0x2 << 62 | len(self.parents)))
        new = message(self.key, text_parts("x" * (ms % 7)), id=identifier, parent=parent, role=role)
        note_root(self.house.services, self.key, identifier, parent=parent, role=new.role, may_fork=True)
        assert self.house.warm.put_message("acme", StoredMessage(new)) is None
        self.parents[identifier] = parent
        self.roles[identifier] = role
        return identifier

    def archive(self, chosen: list[str]) -> None:
        stored = [self.house.warm.messages[self.key][identifier] for identifier in sorted(chosen)]
        if stored and not any(one.first == stored[0].message.id for one in self.house.manifests.read(self.key)):
            self.house.clock.ms += 1
            self.house.manifests.put(self.key, self.house.cold.write(self.key, stored, now_ms=self.house.clock.ms))

    def sweep(self, chosen: list[str]) -> None:
        """The table loses what a segment has."""
        self.house.manifests.remove_messages(self.key, sorted(self.archived & set(chosen)))

    def warm_up(self, count: int) -> None:
        """The tail holds some of the newest messages, and knows which one is the newest."""
        everything = sorted(self.parents)
        held = [self.stored(identifier) for identifier in everything[len(everything) - count :]]
        self.house.hot.load(self.key, held, owner="ann", newest=everything[-1] if everything else None)

    def subscribe(self) -> None:
        """Somebody does, and the hot tier is told of the newest message, whatever it has lost or never heard of."""
        if not self.house.hot.unavailable:
            self.house.hot.load(self.key, (), owner="ann", newest=max(self.parents))

    def stored(self, identifier: str) -> StoredMessage:
        warm = self.house.warm.messages[self.key].get(identifier)
        if warm is not None:
            return warm
        manifests = self.house.manifests.read(self.key)
        read = (self.house.cold.read(self.key, manifest, manifest.members) for manifest in manifests)
        return next(stored for found in read for stored in found if stored.message.id == identifier)

    def path(self, leaf: str | None) -> list[str]:
        found = []
        while leaf is not None:
            found.append(leaf)
            leaf = self.parents[leaf]
        return found

    def begins(self, path: list[str], limit: int) -> tuple[list[str], str | None]:
        """What a context of so many messages of a path holds, oldest first, and where it goes on."""
        is_ahead = len(path) > limit and self.roles[path[-1]] == "system"
        count = max(1, limit - is_ahead)
        following = path[count] if count < len(path) else None
        return [*(path[-1:] if is_ahead else []), *path[:count][::-1]], following

    def damage(self, chosen: Callable[[set[str]], bool]) -> set[str]:
        """Some members are lost, as chosen by their messages, each with those that lie nowhere else; these."""
        found: dict[bool, set[str]] = {True: set(), False: set(self.warm)}
        for manifest in self.house.manifests.read(self.key):
            read = [self.house.cold.read(self.key, manifest, [member]) for member in manifest.members]
            held = [{stored.message.id for stored in messages} for messages in read]
            lost = [chosen(messages) for messages in held]
            for messages, is_lost in zip(held, lost, strict=True):
                found[is_lost] |= messages
            for number in [number for number, is_lost in enumerate(lost) if is_lost]:
                damage(self.house, manifest, number)
        return found[True] - found[False]

    # --- reading ----------------------------------------------------------------------------------------------

    def page(self, **fields: Any) -> tuple[list[str], str | None]:
        command = ListMessages(conversation=self.key.conversation, **fields)
        reply = listing.list_messages(self.house.services, ANN, command)
        assert "damaged" not in reply
        return _ids(reply), reply["cursor"]

    def to_the_end(self, read: Callable[..., dict[str, Any]], command: Any) -> tuple[list[str], list[Damaged]]:
        """All that pages show, the newest page first, and the damage that they tell of."""
        shown: list[str] = []
        told: list[Damaged] = []
        for _ in range(200):
            reply = read(self.house.services, ANN, command)
            found = _ids(reply)
            shown += found[::-1] if read is context.read else found
            told += reply.get("damaged", ())
            if reply["cursor"] is None:
                return shown, told
            command = msgspec.structs.replace(command, cursor=reply["cursor"])
        raise AssertionError("the pages come to no end")

    def context(self, **fields: Any) -> tuple[list[str], str | None]:
        reply = context.read(self.house.services, ANN, ReadContext(conversation=self.key.conversation, **fields))
        return _ids(reply), reply["cursor"]


def _ids(reply: dict[str, Any]) -> list[str]:
    return [one["id"] for one in msgspec.json.decode(encode(reply["messages"]))]


@contextmanager
def small_members() -> Iterator[None]:
    with mock.patch.object(segments, "MEMBER_MESSAGES_MAX", MEMBER):
        yield


@st.composite
def worlds(draw: st.DrawFn, *, branches: bool = True) -> World:
    """A tree, some of it archived, some of that in two segments, some of that gone from the table, some hot."""
    world = World()
    for number in range(draw(st.integers(0, 16))):
        names = sorted(world.parents)
        # Mostly a chain; roots, branches and messages that came late between.
        is_next = not branches or draw(st.integers(0, 3)) > 0
        parent = names[-1] if is_next and names else draw(st.sampled_from([None, *names]))
        late = draw(st.booleans()) and not is_next
        role = draw(st.sampled_from(["user", "system"]))
        world.put(parent, CREATED_MS + STEP_MS * (draw(st.integers(0, number)) if late else number + 1), role)
    for _ in range(draw(st.integers(0, 4))):
        world.archive([one for one in world.warm if draw(st.integers(0, 2))])
        world.sweep([one for one in world.warm if draw(st.booleans())])
    if draw(st.booleans()):
        world.warm_up(draw(st.integers(0, len(world.parents))))
    world.house.hot.unavailable = draw(st.integers(0, 4)) == 0
    world.house.warm.lagging = {one for one in world.warm if draw(st.integers(0, 5)) == 0}
    return world


def happen(draw: Callable[[st.SearchStrategy[Any]], Any], world: World) -> None:
    """Something between two pages."""
    names = sorted(world.parents)
    match draw(st.sampled_from(["nothing", "insert", "insert", "archive", "sweep", "lose", "away"])):
        case "insert":
            ms = CREATED_MS + STEP_MS * draw(st.integers(0, 20))
            made = world.put(draw(st.sampled_from([None, *names])), ms, draw(st.sampled_from(["user", "system"])))
            if not world.house.hot.unavailable:
                world.house.hot.fill(world.key, world.stored(made))
        case "archive":
            world.archive([one for one in world.warm if draw(st.booleans())])
        case "sweep":
            world.sweep(world.warm)
        case "lose":
            world.house.lose_hot()
        case "away":
            world.house.hot.unavailable = not world.house.hot.unavailable


@settings(deadline=None, max_examples=300)
@given(worlds(), st.integers(1, 7), st.data())
def test_any_split_gives_the_pages_of_the_plain_list(world: World, limit: int, data: st.DataObject) -> None:
    with small_members():
        everything = sorted(world.parents, reverse=True)
        for page in range(0, len(everything) + 1, limit):
            before = everything[page - 1] if page else None
            expected = everything[page : page + limit]
            assert world.page(leaf="all", limit=limit, before=before)[0] == expected
        leaf = data.draw(st.sampled_from([None, *everything]))
        path = world.path(leaf or (everything[0] if everything else None))
        cursor = None
        for at in range(0, max(1, len(path)), limit):
            found, cursor = world.page(leaf=leaf, limit=limit, cursor=cursor)
            assert found == path[at : at + limit]
            assert cursor == (path[at + limit] if at + limit < len(path) else None)
        if path:
            at = data.draw(st.integers(0, len(path) - 1))
            assert world.page(leaf=leaf, before=path[at], limit=limit)[0] == path[at + 1 : at + 1 + limit]
            after = world.page(leaf=leaf, after=path[at], limit=100)[0]
            assert after == path[:at]
        for _ in range(2):  # the second as the first has left the hot tier
            assert world.context(leaf=leaf, max_messages=limit) == world.begins(path, limit)
        for _ in range(data.draw(st.integers(0, 2))):
            happen(data.draw, world)
        if path:
            assert world.context(leaf=path[0], max_messages=limit) == world.begins(path, limit)
            world.subscribe()
            newest = world.path(max(world.parents))
            assert world.context(max_messages=limit) == world.begins(newest, limit)
            assert world.page(limit=limit)[0] == newest[:limit]


@settings(deadline=None, max_examples=300)
@given(worlds(), st.integers(1, 5), st.data())
def test_whatever_happens_between_pages_each_message_comes_exactly_once(
    world: World, limit: int, data: st.DataObject
) -> None:
    with small_members():
        at_first = set(world.parents)
        leaf = data.draw(st.sampled_from(["all", *sorted(at_first)]))
        found: list[str] = []
        cursor: str | None = None
        while cursor is not None or not found:
            page, cursor = world.page(leaf=leaf, limit=limit, cursor=cursor)
            found += page
            if cursor is None:
                break
            for _ in range(data.draw(st.integers(0, 3))):
                happen(data.draw, world)
        assert found == sorted(set(found), reverse=True)
        if leaf == "all":
            assert at_first <= set(found)
            assert set(found) <= set(world.parents)
        else:
            assert found == world.path(leaf)


@settings(deadline=None, max_examples=300)
@given(st.booleans().flatmap(lambda branches: worlds(branches=branches)), st.integers(1, 7), st.data())
def test_damage_hides_nothing_but_what_is_told(world: World, limit: int, data: st.DataObject) -> None:
    """Of every branch all is shown that can be read. A path is right down to the damage, and below without branches."""
    with small_members(), serving(world.house):
        lost = world.damage(lambda _: data.draw(st.booleans()))
        everything = sorted(world.parents, reverse=True)
        conversation = world.key.conversation
        for before in (
            None,
            *data.draw(st.lists(st.sampled_from(everything), max_size=2) if everything else st.just([])),
        ):
            shown, told = world.to_the_end(
                listing.list_messages, ListMessages(conversation=conversation, leaf="all", before=before, limit=limit)
            )
            asked = [message for message in everything if before is None or message < before]
            assert shown == [message for message in asked if message not in lost]
            assert lost & set(asked) <= set(_within(everything, told))
        leaf = data.draw(st.sampled_from([None, *everything]))
        path = world.path(leaf or (everything[0] if everything else None))
        reads: list[tuple[Callable[..., dict[str, Any]], Any]] = [
            (listing.list_messages, ListMessages(conversation=conversation, leaf=leaf, limit=limit)),
            (context.read, ReadContext(conversation=conversation, leaf=leaf, max_messages=limit)),
        ]
        for read, command in reads:
            found, told = world.to_the_end(read, command)
            hidden = set(path) - set(found)
            whole = list(takewhile(lambda message: message not in lost, path))
            assert read is context.read or found[: len(whole)] == whole
            assert not hidden & set(whole)
            assert whole != path or set(found) <= set(path)
            assert hidden <= set(_within(everything, told)) or set(path) != set(everything)
            if not told:
                assert not hidden


@settings(deadline=None, max_examples=300)
@given(st.integers(1, 12), st.integers(0, 2), st.integers(1, 7), st.data())
def test_damage_that_reaches_around_a_path_hides_none_of_it(
    length: int, strays: int, limit: int, data: st.DataObject
) -> None:
    """All that can be read is of one path: it is shown, however what is lost, with roots dated back, lies around it."""
    world = World()
    path: list[str] = []
    with small_members(), serving(world.house):
        for number in range(length):
            path.insert(0, world.put(path[0] if path else None, CREATED_MS + STEP_MS * (number + 1)))
        others = {world.put(None, CREATED_MS + STEP_MS * data.draw(st.integers(0, length))) for _ in range(strays)}
        segment = {
            message: data.draw(st.integers(1 if message in others else 0, 3)) for message in sorted(world.parents)
        }
        for number in range(1, 4):
            world.archive([message for message in world.warm if segment[message] == number])
            world.sweep(world.warm)
        lost = world.damage(lambda held: bool(held & others) or data.draw(st.booleans()))
        conversation = world.key.conversation
        for read, command in (
            (listing.list_messages, ListMessages(conversation=conversation, leaf=path[0], limit=limit)),
            (context.read, ReadContext(conversation=conversation, leaf=path[0], max_messages=limit)),
        ):
            found, told = world.to_the_end(read, command)
            assert found == [message for message in path if message not in lost]
            assert lost & set(path) <= set(_within(path, told))
            # What reaches around a page's end may be told by both pages, each time as the same.
            count = sum(stretch.count for stretch in set(told))
            assert count <= len(lost)
            assert others or count == len(lost)
            assert read is context.read or limit < length or len(told) == len(set(told))


def _within(messages: list[str], told: list[Damaged]) -> list[str]:
    return [one for one in messages if any(stretch.first <= one <= stretch.last for stretch in told)]
