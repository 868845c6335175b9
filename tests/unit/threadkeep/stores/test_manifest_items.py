"""A manifest's item: how large it is, and what becomes of one of another age."""

from __future__ import annotations

import hashlib

import pytest

from tests.support.conversations import NOW_MS
from threadkeep.domain import ids
from threadkeep.domain.archive import Manifest, Member
from threadkeep.domain.bounds import MEMBER_MESSAGES_MAX, SEGMENT_BYTES_MAX, SEGMENT_MESSAGES_MAX
from threadkeep.domain.errors import Unreadable
from threadkeep.domain.model import ConversationKey
from threadkeep.stores import object_keys
from threadkeep.stores.manifest_items import manifest_from, manifest_item

KEY = ConversationKey("acme", ids.mint(NOW_MS))


def manifest(members: int) -> Manifest:
    size = SEGMENT_BYTES_MAX // members
    made = tuple(
        Member(
            first=ids.mint(NOW_MS + number),
            last=ids.mint(NOW_MS + number),
            count=MEMBER_MESSAGES_MAX,
            offset=number * size,
            size_bytes=size,
            digest=hashlib.sha256(str(number).encode()).hexdigest(),
        )
        for number in range(members)
    )
    digest = "f" * 64
    return Manifest(
        first=made[0].first,
        last=made[-1].last,
        count=members * MEMBER_MESSAGES_MAX,
        object_key=object_keys.segment(KEY, made[0].first, digest),
        size_bytes=members * size,
        digest=digest,
        regions=("eu-central-1",),
        archived_ms=NOW_MS,
        members=made,
    )


def test_a_manifest_of_ten_thousand_messages_is_read_for_two_and_a_half_units() -> None:
    """A strongly consistent read unit is 4 KB: every read of a cold conversation reads its manifests first."""
    kept = manifest(SEGMENT_MESSAGES_MAX // MEMBER_MESSAGES_MAX)
    item = manifest_item(KEY, kept)
    assert len(item["members"]["B"]) < 10_000 - 500
    assert manifest_from(KEY, item) == kept


def test_an_item_of_an_unknown_format_is_not_guessed_at() -> None:
    item = manifest_item(KEY, manifest(1)) | {"v": {"N": "1"}}
    with pytest.raises(Unreadable, match="format 1"):
        manifest_from(KEY, item)
