"""What every `threadkeep.ports.ColdStore` does alike: in memory, and on S3's API."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import msgspec
import pytest
from msgspec import UNSET

from tests.support.buckets import ELSEWHERE, HOME, REGIONS, MemoryPeek, Peek, S3Peek, moto_buckets
from tests.support.conversations import NOW_MS, awkward_object, message, noise, text_parts
from tests.support.moto_table import moto_clients
from threadkeep.domain import ids, times
from threadkeep.domain.archive import Manifest, Member, SegmentDamaged
from threadkeep.domain.bounds import (
    FRAME_BYTES_MAX,
    MEMBER_BYTES_MAX,
    MEMBER_MESSAGES_MAX,
    SEGMENT_BYTES_MAX,
    SEGMENT_MESSAGES_MAX,
)
from threadkeep.domain.errors import WarmUnavailable
from threadkeep.domain.json_values import encode, read_object
from threadkeep.domain.model import ConversationKey, StoredMessage
from threadkeep.ports import ColdStore
from threadkeep.stores.buckets_s3 import Bucket
from threadkeep.stores.cold_memory import ColdMemory
from threadkeep.stores.cold_s3 import ColdS3
from threadkeep.stores.warm_items import in_page
from threadkeep.stores.zstandard import decompress

Break = Callable[[Peek, str], None]


class Cold(msgspec.Struct, frozen=True):
    """A store in its home region, and the buckets behind it."""

    store: ColdStore
    buckets: dict[str, Peek]


@pytest.fixture(scope="module")
def s3() -> Iterator[dict[str, Bucket]]:
    with moto_clients():
        yield moto_buckets()


@pytest.fixture(params=["memory", "s3"])
def cold(request: pytest.FixtureRequest) -> Cold:
    if request.param == "memory":
        memory = ColdMemory(*REGIONS)
        return Cold(memory, {region: MemoryPeek(bucket) for region, bucket in memory.buckets.items()})
    buckets: dict[str, Bucket] = request.getfixturevalue("s3")
    return Cold(ColdS3(buckets, HOME), {region: S3Peek(bucket) for region, bucket in buckets.items()})


@pytest.fixture
def key() -> ConversationKey:
    return ConversationKey("a/b c", ids.mint(NOW_MS))


def conversation(key: ConversationKey, count: int, **fields: Any) -> list[StoredMessage]:
    """So many messages, each under the one before."""
    said: list[StoredMessage] = []
    for number in range(count):
        parent = said[-1].message.id if said else None
        parts = text_parts(f"message {number} says what the others do not say")
        told = {"parts": parts, "parent": parent, "role": ("user", "assistant")[number % 2]} | fields
        said.append(StoredMessage(message(key, now_ms=NOW_MS + number, **told), number))
    return said


def long_message(key: ConversationKey, *, now_ms: int = NOW_MS, seed: int = 0, size: int = 0) -> StoredMessage:
    """One whose parts no frame could carry."""
    return StoredMessage(message(key, text_parts(noise(size or FRAME_BYTES_MAX + 1, seed)), now_ms=now_ms), 7)


def remove(bucket: Peek, object_key: str) -> None:
    bucket.delete(object_key)


def flip_a_bit(bucket: Peek, object_key: str) -> None:
    content = bytearray(bucket.get(object_key))
    content[len(content) // 2] ^= 1
    bucket.put(object_key, bytes(content))


def empty(bucket: Peek, object_key: str) -> None:
    bucket.put(object_key, b"")


BREAKS = pytest.mark.parametrize("spoil", [remove, flip_a_bit, empty])


# --- what is written is read ----------------------------------------------------------------------------------


def test_what_is_written_is_read_by_member_and_in_id_order(cold: Cold, key: ConversationKey) -> None:
    said = conversation(key, 2 * MEMBER_MESSAGES_MAX + 50)
    manifest = cold.store.write(key, said, now_ms=NOW_MS)
    assert (manifest.first, manifest.last, manifest.count) == (said[0].message.id, said[-1].message.id, len(said))
    assert [member.count for member in manifest.members] == [100, 100, 50]
    assert list(cold.store.read(key, manifest, manifest.members)) == said
    assert list(cold.store.read(key, manifest, manifest.members[1:])) == said[100:]
    for place, member in enumerate(manifest.members):
        own = said[place * 100 : place * 100 + 100]
        assert (member.first, member.last) == (own[0].message.id, own[-1].message.id)
        assert list(cold.store.read(key, manifest, [member])) == own


def test_members_asked_for_out_of_order_or_with_a_gap_come_in_order(cold: Cold, key: ConversationKey) -> None:
    said = conversation(key, 3 * MEMBER_MESSAGES_MAX)
    manifest = cold.store.write(key, said, now_ms=NOW_MS)
    first, second, third = manifest.members
    assert list(cold.store.read(key, manifest, [third, first])) == [*said[:100], *said[200:]]
    assert list(cold.store.read(key, manifest, [second, first])) == said[:200]


def test_the_manifest_says_where_and_when_and_how_much(cold: Cold, key: ConversationKey) -> None:
    manifest = cold.store.write(key, conversation(key, 3), now_ms=NOW_MS + 5)
    assert manifest.object_key == (
        f"segments/a%2Fb%20c/{key.conversation}/{manifest.first}-{manifest.digest}.jsonl.zst"
    )
    assert (manifest.regions, manifest.archived_ms) == (REGIONS, NOW_MS + 5)
    for bucket in cold.buckets.values():
        assert len(bucket.get(manifest.object_key)) == manifest.size_bytes
    assert sum(member.size_bytes for member in manifest.members) == manifest.size_bytes


def test_json_of_clients_comes_back_byte_for_byte(cold: Cold, key: ConversationKey) -> None:
    awkward = awkward_object()
    part = read_object(b'{"type":"data"}') | awkward
    said = conversation(
        key, 3, parts=(part, part), metadata=awkward, usage=awkward, error=awkward, model="m/1", reply=ids.mint(NOW_MS)
    )
    manifest = cold.store.write(key, said, now_ms=NOW_MS)
    assert encode(cold.store.read(key, manifest, manifest.members)) == encode(said)


def test_line_breaks_in_a_clients_json_come_back_and_break_no_line(cold: Cold, key: ConversationKey) -> None:
    spread = read_object(b'{"type":"data","spread":{\r\n"a":[1.0,\n2],\n\n"breaks":",\\"breaks\\":[1]"}\r}')
    said = conversation(key, 2, parts=(spread,), metadata=spread)
    manifest = cold.store.write(key, said, now_ms=NOW_MS)
    assert encode(cold.store.read(key, manifest, manifest.members)) == encode(said)
    lines = decompress(cold.buckets[HOME].get(manifest.object_key)).decode().splitlines()
    assert [json.loads(line)["metadata"] for line in lines] == [json.loads(encode(spread))] * 2


def test_a_line_is_the_message_with_its_epoch_and_without_the_time_of_its_id(cold: Cold, key: ConversationKey) -> None:
    (stored,) = said = conversation(key, 1)
    manifest = cold.store.write(key, said, now_ms=NOW_MS)
    (line,) = decompress(cold.buckets[HOME].get(manifest.object_key)).splitlines()
    told = json.loads(encode(stored.message)) | {"epoch": 0}
    assert told.pop("created_at") == times.to_rfc3339(ids.time_ms(stored.message.id))
    assert json.loads(line) == told


def test_one_ranged_read_gives_neighbouring_members(cold: Cold, key: ConversationKey) -> None:
    manifest = cold.store.write(key, conversation(key, 5 * MEMBER_MESSAGES_MAX), now_ms=NOW_MS)
    with cold.buckets[HOME].counted() as at_home, cold.buckets[ELSEWHERE].counted() as elsewhere:
        cold.store.read(key, manifest, manifest.members[1:4])
    assert (at_home.ranged_reads, at_home.whole_reads) == (1, 0)
    assert (elsewhere.ranged_reads, elsewhere.whole_reads) == (0, 0)


def test_a_segment_of_ordinary_messages_is_one_put_a_region(cold: Cold, key: ConversationKey) -> None:
    with ExitStack() as stack:
        calls = [stack.enter_context(bucket.counted()) for bucket in cold.buckets.values()]
        cold.store.write(key, conversation(key, 500), now_ms=NOW_MS)
    assert [told.puts for told in calls] == [1, 1]


def test_a_member_takes_so_many_bytes_and_no_more(cold: Cold, key: ConversationKey) -> None:
    said = [StoredMessage(message(key, text_parts(noise(20_000, seed)), now_ms=NOW_MS + seed), 0) for seed in range(40)]
    manifest = cold.store.write(key, said, now_ms=NOW_MS)
    content = cold.buckets[HOME].get(manifest.object_key)
    raw = [len(decompress(content[member.offset : member.offset + member.size_bytes])) for member in manifest.members]
    assert all(MEMBER_BYTES_MAX // 2 < size <= MEMBER_BYTES_MAX for size in raw[:-1])
    assert list(cold.store.read(key, manifest, manifest.members)) == said


def test_written_again_it_is_the_same_object(cold: Cold, key: ConversationKey) -> None:
    said = [*conversation(key, 150), long_message(key, now_ms=NOW_MS + 1_000)]
    first = cold.store.write(key, said, now_ms=NOW_MS)
    again = cold.store.write(key, said, now_ms=NOW_MS + 60_000)
    assert msgspec.structs.replace(again, archived_ms=NOW_MS) == first
    for bucket in cold.buckets.values():
        assert bucket.listed(f"segments/a%2Fb%20c/{key.conversation}/") == [first.object_key]
        assert len(bucket.listed(f"bodies/a%2Fb%20c/{key.conversation}/")) == 1


def test_segments_may_overlap(cold: Cold, key: ConversationKey) -> None:
    said = conversation(key, 30)
    early, late = (cold.store.write(key, part, now_ms=NOW_MS) for part in (said[:20], [*said[5:10], *said[15:]]))
    assert list(cold.store.read(key, early, early.members)) == said[:20]
    assert list(cold.store.read(key, late, late.members)) == [*said[5:10], *said[15:]]


@pytest.mark.parametrize("others", ["a", "a%2Fb%20c", "", ".."])
def test_a_manifest_is_read_in_its_own_conversation_alone(cold: Cold, key: ConversationKey, others: str) -> None:
    manifest = cold.store.write(key, conversation(key, 2), now_ms=NOW_MS)
    for foreign in (ConversationKey(others, key.conversation), ConversationKey(key.tenant, ids.mint(NOW_MS))):
        with pytest.raises(ValueError, match="not this conversation's"):
            cold.store.read(foreign, manifest, manifest.members)
        with pytest.raises(ValueError, match="not this conversation's"):
            cold.store.missing_in(foreign, manifest)


# --- what makes no segment ------------------------------------------------------------------------------------


def test_what_is_out_of_order_doubled_foreign_or_nothing_is_no_segment(cold: Cold, key: ConversationKey) -> None:
    one, other = conversation(key, 2)
    (foreign,) = conversation(ConversationKey(key.tenant, ids.mint(NOW_MS)), 1)
    for wrong in ([other, one], [one, one], [one, foreign], []):
        with pytest.raises(ValueError, match="segment"):
            cold.store.write(key, wrong, now_ms=NOW_MS)
    with pytest.raises(ValueError, match="parts"):
        cold.store.write(key, [StoredMessage(one.message.without_parts(), 0)], now_ms=NOW_MS)
    for bucket in cold.buckets.values():
        assert bucket.listed(f"segments/a%2Fb%20c/{key.conversation}/") == []


def test_a_segment_is_bounded_in_messages_and_in_bytes(cold: Cold, key: ConversationKey) -> None:
    template = message(key)
    many = [
        StoredMessage(msgspec.structs.replace(template, id=ids.mint(NOW_MS + number)), 0)
        for number in range(SEGMENT_MESSAGES_MAX + 1)
    ]
    with pytest.raises(ValueError, match="at most"):
        cold.store.write(key, many, now_ms=NOW_MS)
    large = text_parts(noise(FRAME_BYTES_MAX - 1_000))
    heavy = [
        StoredMessage(message(key, large, now_ms=NOW_MS + number), 0)
        for number in range(SEGMENT_BYTES_MAX // (FRAME_BYTES_MAX - 1_000) + 1)
    ]
    with pytest.raises(ValueError, match="at most"):
        cold.store.write(key, heavy, now_ms=NOW_MS)


# --- larger than a frame --------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [FRAME_BYTES_MAX + 1, 3_000_000])
def test_a_long_message_is_shown_without_its_parts_and_read_whole_by_its_body(
    cold: Cold, key: ConversationKey, size: int
) -> None:
    short, late = conversation(key, 1)[0], long_message(key, now_ms=NOW_MS + 10, size=size)
    manifest = cold.store.write(key, [short, late], now_ms=NOW_MS)
    assert cold.store.read(key, manifest, manifest.members) == (short, in_page(late))
    assert in_page(late).message.parts is UNSET
    assert manifest.size_bytes < 2_000
    (member,) = manifest.members
    assert cold.store.read_whole(key, manifest, member, late.message.id) == late
    assert cold.store.read_whole(key, manifest, member, short.message.id) == short
    assert cold.store.read_whole(key, manifest, member, ids.mint(NOW_MS)) is None
    for bucket in cold.buckets.values():
        (body,) = bucket.listed(f"bodies/a%2Fb%20c/{key.conversation}/")
        assert body.split("/")[3] == late.message.id


@BREAKS
def test_a_body_that_is_not_as_it_was_comes_from_another_region(cold: Cold, key: ConversationKey, spoil: Break) -> None:
    late = long_message(key)
    manifest = cold.store.write(key, [late], now_ms=NOW_MS)
    (body,) = cold.buckets[HOME].listed(f"bodies/a%2Fb%20c/{key.conversation}/")
    (member,) = manifest.members
    spoil(cold.buckets[HOME], body)
    assert cold.store.read_whole(key, manifest, member, late.message.id) == late
    spoil(cold.buckets[ELSEWHERE], body)
    with pytest.raises(SegmentDamaged) as damaged:
        cold.store.read_whole(key, manifest, member, late.message.id)
    assert damaged.value.members == (member,)
    assert cold.store.read(key, manifest, [member]) == (in_page(late),)


# --- damage ---------------------------------------------------------------------------------------------------


@BREAKS
def test_what_the_own_region_does_not_give_as_it_was_comes_from_another(
    cold: Cold, key: ConversationKey, spoil: Break
) -> None:
    said = conversation(key, 250)
    manifest = cold.store.write(key, said, now_ms=NOW_MS)
    spoil(cold.buckets[HOME], manifest.object_key)
    assert list(cold.store.read(key, manifest, manifest.members)) == said
    assert cold.store.read_whole(key, manifest, manifest.members[1], said[120].message.id) == said[120]


@BREAKS
def test_what_no_region_gives_as_it_was_is_damaged_and_never_given_out(
    cold: Cold, key: ConversationKey, spoil: Break
) -> None:
    manifest = cold.store.write(key, conversation(key, 20), now_ms=NOW_MS)
    for bucket in cold.buckets.values():
        spoil(bucket, manifest.object_key)
    with pytest.raises(SegmentDamaged) as damaged:
        cold.store.read(key, manifest, manifest.members)
    assert damaged.value.members == manifest.members
    with pytest.raises(SegmentDamaged):
        cold.store.read_whole(key, manifest, manifest.members[0], manifest.first)


def test_only_the_members_that_are_damaged_everywhere_are_named_and_the_others_read(
    cold: Cold, key: ConversationKey
) -> None:
    said = conversation(key, 400)
    manifest = cold.store.write(key, said, now_ms=NOW_MS)
    first, second, third, fourth = manifest.members
    damage(cold.buckets[HOME], manifest, second, third)
    damage(cold.buckets[ELSEWHERE], manifest, third, fourth)
    with pytest.raises(SegmentDamaged) as damaged:
        cold.store.read(key, manifest, manifest.members)
    assert damaged.value.members == (third,)
    assert list(cold.store.read(key, manifest, [first, second])) == said[:200]
    assert list(cold.store.read(key, manifest, [fourth])) == said[300:]


def test_of_a_truncated_segment_the_members_before_the_cut_are_read(cold: Cold, key: ConversationKey) -> None:
    said = conversation(key, 250)
    manifest = cold.store.write(key, said, now_ms=NOW_MS)
    first, second, third = manifest.members
    for bucket in cold.buckets.values():
        bucket.put(manifest.object_key, bucket.get(manifest.object_key)[: second.offset + second.size_bytes - 1])
    assert list(cold.store.read(key, manifest, [first])) == said[:100]
    for members in ([first, second, third], [second, third]):
        with pytest.raises(SegmentDamaged) as damaged:
            cold.store.read(key, manifest, members)
        assert damaged.value.members == (second, third)
    with pytest.raises(SegmentDamaged):
        cold.store.read(key, manifest, [third])  # the object ends before it begins


def test_a_digest_that_does_not_fit_is_damage(cold: Cold, key: ConversationKey) -> None:
    manifest = cold.store.write(key, conversation(key, 3), now_ms=NOW_MS)
    wrong = msgspec.structs.replace(manifest.members[0], digest="0" * 64)
    with pytest.raises(SegmentDamaged):
        cold.store.read(key, manifest, [wrong])


def damage(bucket: Peek, manifest: Manifest, *members: Member) -> None:
    content = bytearray(bucket.get(manifest.object_key))
    for member in members:
        content[member.offset + member.size_bytes // 2] ^= 1
    bucket.put(manifest.object_key, bytes(content))


# --- a region that does not answer ----------------------------------------------------------------------------


def test_while_the_own_region_does_not_answer_another_is_read(cold: Cold, key: ConversationKey) -> None:
    said = [*conversation(key, 3), long_message(key, now_ms=NOW_MS + 10)]
    manifest = cold.store.write(key, said, now_ms=NOW_MS)
    (member,) = manifest.members
    with cold.buckets[HOME].away():
        assert cold.store.read(key, manifest, [member])[:3] == tuple(said[:3])
        assert cold.store.read_whole(key, manifest, member, said[3].message.id) == said[3]


@BREAKS
def test_nothing_is_called_damaged_while_a_region_does_not_answer(
    cold: Cold, key: ConversationKey, spoil: Break
) -> None:
    late = long_message(key)
    manifest = cold.store.write(key, [late], now_ms=NOW_MS)
    (body,) = cold.buckets[HOME].listed(f"bodies/a%2Fb%20c/{key.conversation}/")
    spoil(cold.buckets[HOME], body)
    with cold.buckets[ELSEWHERE].away():
        with pytest.raises(WarmUnavailable):
            cold.store.read_whole(key, manifest, manifest.members[0], late.message.id)
        spoil(cold.buckets[HOME], manifest.object_key)
        with pytest.raises(WarmUnavailable):
            cold.store.read(key, manifest, manifest.members)
        with pytest.raises(WarmUnavailable):
            cold.store.missing_in(key, manifest)


def test_nothing_is_written_unless_every_region_takes_it(cold: Cold, key: ConversationKey) -> None:
    said = conversation(key, 3)
    with cold.buckets[ELSEWHERE].away(), pytest.raises(WarmUnavailable):
        cold.store.write(key, said, now_ms=NOW_MS)
    manifest = cold.store.write(key, said, now_ms=NOW_MS)
    assert cold.store.missing_in(key, manifest) == ()


# --- what is missing, and mended ------------------------------------------------------------------------------


@BREAKS
@pytest.mark.parametrize("region", REGIONS)
def test_a_region_without_the_segment_as_it_was_is_named_and_mended(
    cold: Cold, key: ConversationKey, spoil: Break, region: str
) -> None:
    said = [*conversation(key, 150), long_message(key, now_ms=NOW_MS + 1_000)]
    manifest = cold.store.write(key, said, now_ms=NOW_MS)
    assert cold.store.missing_in(key, manifest) == ()
    written = cold.buckets[region].get(manifest.object_key)
    spoil(cold.buckets[region], manifest.object_key)
    assert cold.store.missing_in(key, manifest) == (region,)
    cold.store.mend(key, manifest)
    assert cold.buckets[region].get(manifest.object_key) == written
    assert cold.store.missing_in(key, manifest) == ()


@pytest.mark.parametrize("region", REGIONS)
def test_a_region_without_a_body_that_the_segment_points_to_is_named_and_mended(
    cold: Cold, key: ConversationKey, region: str
) -> None:
    late = long_message(key)
    manifest = cold.store.write(key, [late], now_ms=NOW_MS)
    (body,) = cold.buckets[region].listed(f"bodies/a%2Fb%20c/{key.conversation}/")
    cold.buckets[region].delete(body)
    assert cold.store.missing_in(key, manifest) == (region,)
    cold.store.mend(key, manifest)
    assert cold.store.missing_in(key, manifest) == ()
    assert cold.buckets[region].listed(f"bodies/a%2Fb%20c/{key.conversation}/") == [body]


@BREAKS
def test_what_no_region_has_is_missing_in_all_and_cannot_be_mended(
    cold: Cold, key: ConversationKey, spoil: Break
) -> None:
    manifest = cold.store.write(key, conversation(key, 3), now_ms=NOW_MS)
    for bucket in cold.buckets.values():
        spoil(bucket, manifest.object_key)
    assert cold.store.missing_in(key, manifest) == REGIONS
    with pytest.raises(SegmentDamaged):
        cold.store.mend(key, manifest)


def test_what_lies_under_its_key_already_and_is_another_is_replaced(cold: Cold, key: ConversationKey) -> None:
    """An attempt that was not ours, or bits that fell over: a write that found something must still look at it."""
    said = [*conversation(key, 3), long_message(key, now_ms=NOW_MS + 10)]
    manifest = cold.store.write(key, said, now_ms=NOW_MS)
    for bucket in cold.buckets.values():
        for object_key in (manifest.object_key, *bucket.listed(f"bodies/a%2Fb%20c/{key.conversation}/")):
            flip_a_bit(bucket, object_key)
    assert cold.store.write(key, said, now_ms=NOW_MS) == manifest
    assert cold.store.missing_in(key, manifest) == ()
    assert cold.store.read_whole(key, manifest, manifest.members[0], said[3].message.id) == said[3]
