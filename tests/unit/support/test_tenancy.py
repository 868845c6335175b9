"""The search for keys without a tenant is not blind: each store is written to with a planted one."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any, ClassVar

import boto3
import pytest

from local.state import Address
from tests.support import tenancy
from tests.support.hot import SetClock, client_of, hot_valkey
from tests.support.moto_table import BUCKET, TABLE, moto_clients
from tests.support.tenancy import Keys
from threadkeep.domain.model import ConversationKey
from threadkeep.stores import hot_keys, object_keys, quotas_valkey, table_keys
from threadkeep.stores.hot_memory import HotMemory
from threadkeep.stores.quotas_valkey import QuotasValkey
from threadkeep.stores.uploads_memory import UploadsMemory
from threadkeep.stores.warm_memory import WarmMemory

KEY = ConversationKey("a/cme.eu", "01a22904-2d4a-752e-bc6b-4623f7ccb7de")
STREAM = "01a22904-2d4b-752e-bc6b-4623f7ccb7de"


@pytest.fixture
def keys(monkeypatch: pytest.MonkeyPatch) -> Keys:
    """What this test writes is heard here, and does not fail it."""
    planted = Keys()
    monkeypatch.setattr(tenancy, "current", planted)
    planted.note_tenants(KEY)
    return planted


# --- Valkey -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "key",
    [
        f"{{{KEY.conversation}}}:c",  # no tenant at all
        f"{{default/{KEY.conversation}}}:c",  # one that nobody asked about
        f"{{{KEY.conversation}/{KEY.conversation}}}:c",  # something else in its place
        f"{{a/cme.eu/{KEY.conversation}}}:c",  # not encoded
        f"{{a%2fcme.eu/{KEY.conversation}}}:c",  # encoded as nobody else does
        f"a%2Fcme.eu/{KEY.conversation}:c",  # in no slot
        "quota:{ann}:r:ann",
        "quota:ann",
        "due:{all}",
        "lock",
    ],
)
@pytest.mark.parametrize("verb", ["SET", "EVALSHA"])
def test_a_key_in_valkey_without_its_tenant_is_found(keys: Keys, key: str, verb: str) -> None:
    keys.note_command(("SET", key, b"x") if verb == "SET" else ("EVALSHA", "0" * 40, 1, key, b"x"))
    assert keys.found() == [f"Valkey: {key}"]


@pytest.mark.parametrize("entry", [f"{KEY.conversation}/{STREAM}", f"//{STREAM}", f"acme/{KEY.conversation}/{STREAM}"])
def test_a_deadline_without_its_tenant_is_found(keys: Keys, entry: str) -> None:
    keys.note_command(("ZADD", "due:{3}", 1_800_000_000_000, entry))
    assert keys.found() == [f"Valkey's deadlines: {entry}"]


def test_every_key_of_a_script_is_looked_at(keys: Keys) -> None:
    right = hot_keys.HotKeys(KEY)
    keys.note_command(("EVALSHA", "0" * 40, 3, right.register, right.tail, "oops", "value", "1"))
    assert keys.found() == ["Valkey: oops"]


def test_what_the_stores_send_to_a_real_valkey_is_heard(
    keys: Keys, valkey_single: Address, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = client_of(valkey_single, is_cluster=False)
    hot_valkey(client).file(KEY, STREAM)
    hot_valkey(client).viewers(KEY)
    QuotasValkey(client).take(KEY.tenant, "a:b")
    assert keys._heard
    assert keys.found() == []
    monkeypatch.setattr(hot_keys, "quote", lambda name, **_: "" if name == KEY.tenant else name)
    monkeypatch.setattr(quotas_valkey, "quote", lambda *_, **__: "everybody")
    hot_valkey(client).file(KEY, STREAM)
    hot_valkey(client).viewers(KEY)
    QuotasValkey(client).take(KEY.tenant, None)
    client.close()
    assert keys.found() == [
        f"Valkey's deadlines: /{KEY.conversation}/{STREAM}",
        f"Valkey: {{/{KEY.conversation}}}:v",
        "Valkey: quota:{everybody}",
    ]


# --- table and buckets ---------------------------------------------------------------------------------------------


@pytest.fixture
def clients(keys: Keys) -> Iterator[tuple[Any, Any]]:
    with moto_clients() as made:
        yield made
    assert isinstance(keys, Keys)


def test_an_item_without_its_tenant_is_found_however_it_is_written(keys: Keys, clients: tuple[Any, Any]) -> None:
    table, _ = clients
    right, wrong = table_keys.partition(KEY), f"#{KEY.conversation}"
    for partition in (right, wrong):
        item = {"pk": {"S": partition}, "sk": {"S": "head"}}
        table.put_item(TableName=TABLE, Item=item)
        assert keys.found() == ([f"the table's pk: {wrong}"] if partition == wrong else [])
    keys.clear()
    table.update_item(TableName=TABLE, Key={"pk": {"S": "head"}, "sk": {"S": "head"}}, UpdateExpression="REMOVE title")
    table.delete_item(TableName=TABLE, Key={"pk": {"S": "acme"}, "sk": {"S": "head"}})
    request = {"PutRequest": {"Item": {"pk": {"S": "batched"}, "sk": {"S": "head"}}}}
    table.batch_write_item(RequestItems={TABLE: [request]})
    assert keys.found() == ["the table's pk: head", "the table's pk: acme", "the table's pk: batched"]


def test_so_is_an_entry_of_an_index(keys: Keys, clients: tuple[Any, Any]) -> None:
    table, _ = clients
    place = {"pk": {"S": table_keys.partition(KEY)}, "sk": {"S": "pulse"}}
    table.put_item(TableName=TABLE, Item=place | {"owner_key": {"S": "ann#0"}, "due_key": {"S": "2026-11-29#3"}})
    table.update_item(
        TableName=TABLE,
        Key=place,
        UpdateExpression="SET #o = :o, due_key = if_not_exists(due_key, :d)",
        ExpressionAttributeNames={"#o": "owner_key"},
        ExpressionAttributeValues={":o": {"S": "a#b#0"}, ":d": {"S": "soon"}},
    )
    assert keys.found() == ["the table's owner_key: ann#0", "the table's owner_key: a#b#0", "the table's due_key: soon"]


def test_an_object_without_its_tenant_is_found_however_it_comes_to_be(keys: Keys, clients: tuple[Any, Any]) -> None:
    _, bucket = clients
    right = object_keys.blob(KEY, "0" * 64)
    bucket.put_object(Bucket=BUCKET, Key=right, Body=b"x")
    assert keys.found() == []
    bucket.put_object(Bucket=BUCKET, Key="x", Body=b"x")
    bucket.copy_object(Bucket=BUCKET, Key=f"blobs/{KEY.conversation}/x", CopySource={"Bucket": BUCKET, "Key": right})
    bucket.create_multipart_upload(Bucket=BUCKET, Key="exports/all")
    bucket.generate_presigned_url("put_object", Params={"Bucket": BUCKET, "Key": "uploads/anybody/x"})
    assert keys.found() == [
        "S3: x",
        f"S3: blobs/{KEY.conversation}/x",
        "S3: exports/all",
        "S3: uploads/anybody/x",
    ]


def test_a_client_made_before_the_test_is_heard_too(keys: Keys) -> None:
    client = boto3.client("s3", region_name="eu-central-1", aws_access_key_id="x", aws_secret_access_key="x")
    client.generate_presigned_url("put_object", Params={"Bucket": BUCKET, "Key": "x"})
    assert keys.found() == ["S3: x"]


# --- memory -------------------------------------------------------------------------------------------------------


def test_what_lies_in_memory_without_its_tenant_is_found(keys: Keys) -> None:
    hot, warm, uploads = HotMemory(SetClock(0), region="eu-central-1"), WarmMemory(), UploadsMemory()
    hot.file(KEY, STREAM)
    warm.active_at[KEY] = "2026-11-29T00:00:00.000Z"
    uploads.objects[object_keys.upload(KEY, "0" * 64)] = b"x"
    assert keys.found() == []
    other = ConversationKey("default", KEY.conversation)
    warm.active_at[other] = "2026-11-29T00:00:00.000Z"
    uploads.objects[KEY.conversation] = b"x"
    assert keys.found() == [f"WarmMemory.active_at: {other!r}", f"UploadsMemory.objects: {KEY.conversation!r}"]


def test_a_tenant_is_known_by_what_stores_are_asked_and_not_by_their_keys(keys: Keys) -> None:
    WarmMemory().read_head(ConversationKey("acme", KEY.conversation))
    WarmMemory().list_conversations("umbrella", "ann", limit=1, cursor=None)
    assert keys.tenants == {KEY.tenant, "acme", "umbrella"}


def test_a_test_that_writes_such_a_key_fails_unless_its_keys_are_none_of_the_services(keys: Keys) -> None:
    class Item:
        funcargs: ClassVar = {"tenant_in_every_key": keys}

    def run() -> None:
        holding = tenancy.pytest_pyfunc_call(Item())  # type: ignore[arg-type]
        next(holding)
        keys.note_command(("SET", "lock", b"x"))
        with contextlib.suppress(StopIteration):
            holding.send(None)

    with pytest.raises(AssertionError, match="keys without the tenant"):
        run()
    keys.is_held = False
    run()


@pytest.mark.parametrize(
    ("key", "is_right"),
    [
        (hot_keys.HotKeys(KEY).tail, True),
        (hot_keys.DEADLINES[0], True),
        ("quota:{acme}:r:ann", True),
        (f"{{/{KEY.conversation}}}:t", False),
        ("quota:{}", False),
        ("lock", False),
    ],
)
def test_what_another_process_wrote_is_told_by_its_form(key: str, is_right: bool) -> None:  # noqa: FBT001 -- a case
    assert tenancy.names_a_tenant(key) is is_right
