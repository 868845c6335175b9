"""A manifest and its item in the table."""

from __future__ import annotations

import uuid
from typing import Any, Final

import msgspec

from threadkeep.domain.archive import Manifest, Member
from threadkeep.domain.errors import Unreadable
from threadkeep.domain.model import ConversationKey
from threadkeep.schema import SORT_KEY, SORT_SEGMENT
from threadkeep.stores import object_keys
from threadkeep.stores.warm_items import Item, number, primary_key, text

_FORMAT: Final = "2"
"""The first one's segments were packed by gzip; no release has written it."""


class _PackedMember(msgspec.Struct, frozen=True, array_like=True):
    """A member in some 90 bytes, a third of what its JSON takes: a manifest of 10,000 messages is read often."""

    first: bytes
    last: bytes
    count: int
    size_bytes: int
    digest: bytes


_MEMBERS: Final = msgspec.msgpack.Decoder(tuple[_PackedMember, ...])


def manifest_item(key: ConversationKey, manifest: Manifest) -> dict[str, Any]:
    """The item of a manifest. Its object key follows from the rest, and offsets from sizes: members lie end to end."""
    packed = tuple(
        _PackedMember(
            uuid.UUID(member.first).bytes,
            uuid.UUID(member.last).bytes,
            member.count,
            member.size_bytes,
            bytes.fromhex(member.digest),
        )
        for member in manifest.members
    )
    return primary_key(key, SORT_SEGMENT + manifest.first) | {
        "v": {"N": _FORMAT},
        "digest": text(manifest.digest),
        "regions": {"L": [text(region) for region in manifest.regions]},
        "archived": number(manifest.archived_ms),
        "members": {"B": msgspec.msgpack.encode(packed)},
    }


def manifest_from(key: ConversationKey, item: Item) -> Manifest:
    """The manifest again.

    Raises:
        Unreadable: the item is of an unknown format.
    """
    sort_key = item[SORT_KEY]["S"]
    if item["v"]["N"] != _FORMAT:
        raise Unreadable(key.conversation, sort_key, f"its item is of format {item['v']['N']}, not {_FORMAT}")
    members: list[Member] = []
    offset = 0
    for packed in _MEMBERS.decode(item["members"]["B"]):
        members.append(
            Member(
                first=str(uuid.UUID(bytes=packed.first)),
                last=str(uuid.UUID(bytes=packed.last)),
                count=packed.count,
                offset=offset,
                size_bytes=packed.size_bytes,
                digest=packed.digest.hex(),
            )
        )
        offset += packed.size_bytes
    first, digest = sort_key.removeprefix(SORT_SEGMENT), item["digest"]["S"]
    return Manifest(
        first=first,
        last=members[-1].last,
        count=sum(member.count for member in members),
        object_key=object_keys.segment(key, first, digest),
        size_bytes=offset,
        digest=digest,
        regions=tuple(region["S"] for region in item["regions"]["L"]),
        archived_ms=int(item["archived"]["N"]),
        members=tuple(members),
    )
