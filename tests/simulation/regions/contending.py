"""Two users who each create under one id, in two regions, at about one instant: what they are told has to hold."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any, Final

from tests.simulation.network import Frame
from tests.simulation.regions.clients import Client
from tests.simulation.regions.trouble import Kind
from threadkeep.domain.model import ConversationKey

if TYPE_CHECKING:
    from tests.simulation.regions.world import World

USERS: Final = ("bob", "carol")
BEGINS_MS_MAX: Final = 15_000
APART_MS: Final = (0, 0, 5, 50, 1_000, 5_000)
MINTED: Final = 0.2


class Contender:
    """One of the two.

    Attributes:
        is_told: whether it was told that the conversation is its own.
        looked: what it was told of it in each region in the end: owned or not, per action; whether it is in its list.
    """

    def __init__(self, client: Client, user: str, conversation: str) -> None:
        self.client = client
        self.user = user
        self.conversation = conversation
        self.is_told = False
        self.read: set[str] = set()
        self.looked: dict[str, set[bool]] = {}

    def go(self) -> None:
        """Create, and if it may, watch, write and read."""
        self.is_told = self._say("conversation.create", times=60, title=self.user) is not None
        if self.is_told:
            self._is_ok("conversation.subscribe")
            parts = [{"type": "text", "text": self.user}]
            self._is_ok("message.create", parent=None, role="user", parts=parts)
            self._read("message.list", leaf="all")

    def look(self) -> None:
        """In the end, in both regions."""
        for region in self.client.sockets:
            self.client.at = region
            found = {self._read(action) for action in ("message.list", "context.read")}
            found.add(self._is_ok("conversation.get"))
            listed = self.client.call("conversation.list", times=5)
            names = [item["id"] for item in listed["items"]] if listed and "code" not in listed else []
            self.looked[region] = {*found, self.conversation in names}

    def _read(self, action: str, **fields: Any) -> bool:
        reply = self._say(action, **fields)
        if reply is None:
            return False
        self.read |= {part["text"] for message in reply["messages"] for part in message["parts"]}
        return True

    def _is_ok(self, action: str, **fields: Any) -> bool:
        return self._say(action, **fields) is not None

    def _say(self, action: str, *, times: int = 10, **fields: Any) -> Frame | None:
        reply = self.client.call(action, conversation=self.conversation, times=times, **fields)
        return None if reply is None or "code" in reply else reply


class Contention:
    """An id, and the two. What is drawn for it comes from a source of its own."""

    def __init__(self, world: World) -> None:
        self.world = world
        self._rng = random.Random(f"contention {world.seed}")  # noqa: S311 -- nothing secret
        self.is_on = world.kind is Kind.EVACUATION or self._rng.random() < 0.3
        self.contenders: list[Contender] = []

    def begin(self) -> None:
        """Some time later; where a region is going to be lost, right before it is."""
        if self.is_on and self.world.kind is not Kind.EVACUATION:
            first = self._rng.choice(list(self.world.regions))
            self.world.scheduler.spawn(lambda: self.begin_at(first), after_ms=self._rng.randint(0, BEGINS_MS_MAX))

    def begin_at(self, first: str) -> None:
        """Now, in that region and then in the other one."""
        conversation = self.world.new_id()
        regions = sorted(self.world.regions, key=lambda region: region != first)
        for region, user in zip(regions, self._rng.sample(USERS, 2), strict=True):
            self.contenders.append(Contender(self.world.client(user, region, user=user), user, conversation))
        self.world.scheduler.spawn(self._go)

    def _go(self) -> None:
        first, _ = self.contenders
        if self._rng.random() < MINTED:
            # The service mints the id, so that nobody claims it; and the other one learns of it at once.
            made = first.client.call("conversation.create", title=first.user, times=3)
            if made is not None and "code" not in made:
                for one in self.contenders:
                    one.conversation = made["conversation"]["id"]
        apart_ms = self._rng.choice(APART_MS)
        for number, one in enumerate(self.contenders):
            self.world.scheduler.spawn(one.go, after_ms=number * apart_ms)

    def look(self) -> None:
        """In the end."""
        for contender in self.contenders:
            contender.look()

    @property
    def owner(self) -> str | None:
        """Whose it is in the end; the replicas are compared elsewhere."""
        head = next(iter(self.world.regions.values())).warm.standing_head(self._key) if self.contenders else None
        return None if head is None else head.conversation.owner

    def judge(self) -> None:
        """What must hold of it.

        Raises:
            AssertionError: a promise was broken.
        """
        owner, told = self.owner, [one.user for one in self.contenders if one.is_told]
        apart = self.world.kind is Kind.EVACUATION
        assert apart or len(told) < 2, f"one id, and both were told that it is theirs: {told}"
        assert apart or not told or told == [owner], f"{told} was told that it is theirs, it is {owner}'s"
        assert not told or owner is not None, "what was acknowledged is nobody's"
        for one in self.contenders:
            assert apart or one.read <= {one.user}, f"{one.user} read what another user wrote: {one.read}"
            for region, looked in one.looked.items():
                assert looked == {one.user == owner}, f"in {region} {one.user} may do {looked} of what is {owner}'s"
            if one.user != owner:
                watching = [name for name in self._viewers() if name.startswith(f"{one.client.name}-")]
                assert not watching, f"{one.user} still watches what is {owner}'s: {watching}"

    def _viewers(self) -> set[str]:
        return {name for region in self.world.regions.values() for name in region.hot.viewers(self._key)}

    @property
    def _key(self) -> ConversationKey:
        return ConversationKey("acme", self.contenders[0].conversation)
