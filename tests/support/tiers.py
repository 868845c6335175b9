"""Histories in several tiers: messages put past the handlers, moved into segments, and what reading them asks for."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from tests.support.conversations import message, text_parts
from tests.support.house import House
from threadkeep.domain import ids
from threadkeep.domain.archive import Manifest
from threadkeep.domain.model import StoredMessage
from threadkeep.domain.ops import Parts

READS = {"read_head", "read_messages", "read_message", "has_message", "newest_id", "read"}


class Calls:
    """Counts what the handlers ask of the stores, from when it is made."""

    def __init__(self, house: House) -> None:
        self.made: list[tuple[str, str, dict[str, Any]]] = []
        house.replace(
            **{name: _Noting(name, getattr(house, name), self.made) for name in ("hot", "warm", "manifests", "cold")}
        )

    @property
    def counted(self) -> Counter[str]:
        """How often each was called, as ``store.method``."""
        return Counter(f"{store}.{method}" for store, method, _ in self.made)

    def of(self, store: str, method: str) -> list[dict[str, Any]]:
        """The keyword arguments of each such call."""
        return [said for name, called, said in self.made if (name, called) == (store, method)]

    def forget(self) -> None:
        """Count anew."""
        self.made.clear()


class _Noting:
    def __init__(self, name: str, store: Any, made: list[tuple[str, str, dict[str, Any]]]) -> None:
        self._name = name
        self._store = store
        self._made = made

    def __getattr__(self, method: str) -> Any:
        call = getattr(self._store, method)

        def noted(*args: Any, **kwargs: Any) -> Any:
            self._made.append((self._name, method, kwargs))
            return call(*args, **kwargs)

        return noted if callable(call) else call


class Tale:
    """A conversation whose messages are put straight into the table.

    Attributes:
        ids: of all of them, in the order in which they were put.
    """

    def __init__(self, house: House, *, conversation: str | None = None) -> None:
        self.house = house
        self.conversation = house.conversation() if conversation is None else conversation
        self.key = house.key(self.conversation)
        self.ids: list[str] = []

    def put(self, parent: str | None, text: str = "hello", *, parts: Parts | None = None, **fields: Any) -> str:
        """One message; a new one unless ``id`` says which."""
        said = {"id": self.house.new_id(), "parent": parent} | fields
        new = message(self.key, text_parts(text) if parts is None else parts, **said)
        assert self.house.warm.put_message(self.key.tenant, StoredMessage(new)) is None
        self.ids.append(new.id)
        return new.id

    def chain(self, length: int, parent: str | None = None, *, text: str = "hello", **fields: Any) -> list[str]:
        """So many, each under the one before."""
        made: list[str] = []
        for _ in range(length):
            parent = self.put(parent, text, **fields)
            made.append(parent)
        return made

    def old_id(self, ms: int) -> str:
        """An id of that time."""
        return ids.mint(ms)

    def archive(self, messages: Sequence[str], *, keep: bool = False) -> Manifest:
        """Write them as one segment; the table loses them unless it is to ``keep`` them."""
        house = self.house
        stored = [house.warm.messages[self.key][identifier] for identifier in sorted(messages)]
        manifest = house.cold.write(self.key, stored, now_ms=house.clock.ms)
        assert house.manifests.put(self.key, manifest) is None
        if not keep:
            house.manifests.remove_messages(self.key, messages)
        return manifest

    def rest(self, days: int = 40) -> None:
        """So much time passes."""
        self.house.clock.ms += days * 24 * 60 * 60_000

    def damage(self, manifest: Manifest, number: int) -> None:
        """No bucket has that member any more as it was written."""
        damage(self.house, manifest, number)


def damage(house: House, manifest: Manifest, number: int) -> None:
    """Let no bucket have that member of a segment any more as it was written."""
    member = manifest.members[number]
    for bucket in house.cold.buckets.values():
        content = bytearray(bucket.objects[manifest.object_key])
        content[member.offset + member.size_bytes // 2] ^= 0xFF
        bucket.objects[manifest.object_key] = bytes(content)
