"""What every `threadkeep.ports.UploadStore` does alike: in memory, and on S3's API."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

import msgspec
import pytest

from tests.support.buckets import ELSEWHERE, HOME, S3Peek, moto_buckets
from tests.support.conversations import NOW_MS
from tests.support.moto_table import BUCKET, REGION, buckets_of, moto_clients
from threadkeep.domain import ids
from threadkeep.domain.bounds import UPLOAD_BYTES_MAX
from threadkeep.domain.model import ConversationKey
from threadkeep.domain.uploads import Upload
from threadkeep.ports import PresignedPut, UploadStore
from threadkeep.stores import object_keys
from threadkeep.stores.uploads_memory import UploadsMemory
from threadkeep.stores.uploads_s3 import UploadsS3

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient
    from mypy_boto3_s3 import S3Client

CONTENT = b'[{"type":"text","text":"long"}]'


class Uploads(msgspec.Struct, frozen=True):
    """A store, and how content comes to lie where a URL points to."""

    store: UploadStore
    place: Callable[[str, bytes], object]
    content_of: Callable[[str], bytes]
    remove: Callable[[str], object]

    def presign(self, key: ConversationKey, content: bytes, media_type: str | None = None) -> PresignedPut:
        return self.store.presign(key, spoken_of(content), media_type=media_type, lives_s=60)

    def upload(self, key: ConversationKey, content: bytes, *, instead: bytes | None = None) -> Upload:
        """Ask to upload a content, and upload it, or another ``instead``."""
        self.place(self.presign(key, content).url, content if instead is None else instead)
        return spoken_of(content)


@pytest.fixture(scope="module")
def clients() -> Iterator[tuple[DynamoDBClient, S3Client]]:
    with moto_clients() as made:
        yield made


@pytest.fixture(params=["memory", "s3"])
def uploads(request: pytest.FixtureRequest) -> Uploads:
    if request.param == "memory":
        memory = UploadsMemory()
        return Uploads(
            memory,
            lambda url, content: memory.objects.update({key_in(url): content}),
            memory.objects.__getitem__,
            memory.objects.__delitem__,
        )
    _, bucket = request.getfixturevalue("clients")
    return Uploads(
        UploadsS3(buckets_of(bucket), REGION),
        lambda url, content: bucket.put_object(Bucket=BUCKET, Key=key_in(url), Body=content),
        lambda key: bytes(bucket.get_object(Bucket=BUCKET, Key=key)["Body"].read()),
        lambda key: bucket.delete_object(Bucket=BUCKET, Key=key),
    )


def key_in(url: str) -> str:
    """The object key that a URL names, of either scheme."""
    return unquote(urlsplit(url).path).removeprefix("/")


def spoken_of(content: bytes) -> Upload:
    return Upload(len(content), hashlib.sha256(content).hexdigest())


def new_key(tenant: str = "acme") -> ConversationKey:
    return ConversationKey(tenant, ids.mint(NOW_MS))


@pytest.mark.parametrize("content", [b"x", CONTENT, bytes(range(256)), b"x" * UPLOAD_BYTES_MAX])
def test_what_is_uploaded_is_read(uploads: Uploads, content: bytes) -> None:
    key = new_key()
    upload = uploads.upload(key, content)
    assert uploads.store.read(key, upload) == content
    assert uploads.store.read(key, upload) == content


def test_nothing_is_read_where_nothing_was_uploaded(uploads: Uploads) -> None:
    key = new_key()
    uploads.presign(key, CONTENT)
    assert uploads.store.read(key, spoken_of(CONTENT)) is None


def test_an_upload_is_of_its_tenant_and_conversation_alone(uploads: Uploads) -> None:
    conversation = ids.mint(NOW_MS)
    owned = ConversationKey("a/b", conversation)
    upload = uploads.upload(owned, CONTENT)
    others = [ConversationKey(tenant, conversation) for tenant in ("a", "b", "a%2Fb", "!uploads", "", "..")]
    assert [uploads.store.read(key, upload) for key in (*others, new_key("a/b"))] == [None] * 7
    assert uploads.store.read(owned, upload) == CONTENT


def test_the_client_is_told_to_say_size_digest_and_type(uploads: Uploads) -> None:
    digest = base64.b64encode(hashlib.sha256(CONTENT).digest()).decode()
    said = {"content-length": str(len(CONTENT)), "x-amz-checksum-sha256": digest}
    assert uploads.presign(new_key(), CONTENT).headers == said
    assert uploads.presign(new_key(), CONTENT, "image/png").headers == said | {"content-type": "image/png"}


@pytest.mark.parametrize(
    ("found", "read"), [(b"", b""), (CONTENT[:-1], CONTENT[:-1]), (CONTENT + b"  more", CONTENT + b" ")]
)
def test_what_lies_there_instead_is_read_as_it_is_and_no_more_than_a_byte_too_much(
    uploads: Uploads, found: bytes, read: bytes
) -> None:
    key = new_key()
    upload = uploads.upload(key, CONTENT, instead=found)
    assert uploads.store.read(key, upload) == read
    assert not upload.is_of(read)


# --- keeping --------------------------------------------------------------------------------------------------


def test_what_is_kept_outlives_the_upload(uploads: Uploads) -> None:
    key = new_key("a/b")
    upload = uploads.upload(key, CONTENT)
    assert [uploads.store.keep(key, upload) for _ in range(2)] == [True, True]
    uploads.remove(object_keys.upload(key, upload.sha256))
    assert uploads.store.keep(key, upload)
    assert uploads.store.read(key, upload) is None
    assert uploads.content_of(f"blobs/a%2Fb/{key.conversation}/{upload.sha256}") == CONTENT


def test_what_is_not_there_cannot_be_kept(uploads: Uploads) -> None:
    key = new_key()
    uploads.presign(key, CONTENT)
    assert not uploads.store.keep(key, spoken_of(CONTENT))


@pytest.mark.parametrize("found", [CONTENT[:-1], CONTENT + b" "])
def test_what_is_of_another_size_cannot_be_kept(uploads: Uploads, found: bytes) -> None:
    key = new_key()
    upload = uploads.upload(key, CONTENT, instead=found)
    assert not uploads.store.keep(key, upload)
    uploads.upload(key, CONTENT)
    assert uploads.store.keep(key, upload)
    assert not uploads.store.keep(key, Upload(upload.size_bytes + 1, upload.sha256))


def test_an_upload_is_kept_for_its_tenant_and_conversation_alone(uploads: Uploads) -> None:
    conversation = ids.mint(NOW_MS)
    upload = uploads.upload(ConversationKey("a", conversation), CONTENT)
    assert not uploads.store.keep(ConversationKey("b", conversation), upload)
    assert not uploads.store.keep(new_key("a"), upload)


# --- downloads ------------------------------------------------------------------------------------------------


def test_what_is_kept_is_downloaded_by_a_url_of_its_own(uploads: Uploads) -> None:
    key = new_key("a/b")
    upload = uploads.upload(key, CONTENT)
    assert uploads.store.presign_get(key, upload, lives_s=60) is None  # nothing names it yet, and it may expire
    uploads.store.keep(key, upload)
    url = uploads.store.presign_get(key, upload, lives_s=60)
    assert url is not None
    assert uploads.content_of(key_in(url)) == CONTENT


def test_there_is_no_url_for_what_is_not_kept_or_is_anothers(uploads: Uploads) -> None:
    conversation = ids.mint(NOW_MS)
    owned = ConversationKey("a/b", conversation)
    upload = uploads.upload(owned, CONTENT)
    uploads.store.keep(owned, upload)
    others = [ConversationKey(tenant, conversation) for tenant in ("a", "b", "a%2Fb", "", "..")] + [new_key("a/b")]
    assert [uploads.store.presign_get(key, upload, lives_s=60) for key in others] == [None] * 6
    for other in (spoken_of(b"other"), Upload(upload.size_bytes + 1, upload.sha256)):
        assert uploads.store.presign_get(owned, other, lives_s=60) is None


@pytest.mark.usefixtures("clients")
def test_what_another_region_kept_is_downloaded_from_there() -> None:
    buckets = moto_buckets()
    key, upload = new_key(), spoken_of(CONTENT)
    S3Peek(buckets[ELSEWHERE]).put(object_keys.blob(key, upload.sha256), CONTENT)
    url = UploadsS3(buckets, HOME).presign_get(key, upload, lives_s=60)
    assert url is not None
    assert urlsplit(url).netloc == f"threadkeep-cold-{ELSEWHERE}.s3.{ELSEWHERE}.amazonaws.com"
