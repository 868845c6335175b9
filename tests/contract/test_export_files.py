"""What every `threadkeep.ports.ExportFiles` does alike: in memory, and on S3's API."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final
from urllib.parse import parse_qs, unquote, urlsplit

import msgspec
import pytest

from tests.support.buckets import ELSEWHERE, HOME, REGIONS, S3Peek, moto_buckets
from tests.support.conversations import NOW_MS
from tests.support.moto_table import moto_clients
from threadkeep.domain import ids
from threadkeep.domain.bounds import EXPORT_PART_BYTES
from threadkeep.domain.errors import ExportFileGone
from threadkeep.ports import ExportFiles
from threadkeep.stores.buckets_s3 import Bucket
from threadkeep.stores.export_files_s3 import ExportFilesS3
from threadkeep.stores.exports_memory import ExportFilesMemory

TENANT: Final = "a/b"


class Files(msgspec.Struct, frozen=True):
    """A store, and what lies in it.

    Attributes:
        content: of an export's file; None where there is none.
        uploads: of files that are not finished, of an export.
    """

    store: ExportFiles
    content: Callable[[str], bytes | None]
    uploads: Callable[[str], int]

    def begin(self, export: str, *contents: bytes) -> tuple[str, list[str]]:
        """Begin a file of these parts; its upload, and their tags."""
        upload = self.store.begin(TENANT, export)
        return upload, [
            self.store.add(TENANT, export, upload, number=number, content=content)
            for number, content in enumerate(contents, start=1)
        ]

    def write(self, export: str, *contents: bytes) -> None:
        """Have a file of these parts."""
        upload, tags = self.begin(export, *contents)
        self.store.finish(TENANT, export, upload, tags)


@pytest.fixture(scope="module")
def s3() -> Iterator[dict[str, Bucket]]:
    with moto_clients():
        yield moto_buckets()


@pytest.fixture(params=["memory", "s3"])
def files(request: pytest.FixtureRequest) -> Files:
    if request.param == "memory":
        memory = ExportFilesMemory()
        return Files(
            memory,
            lambda export: memory.files.get((TENANT, export)),
            lambda export: len([key for key in memory.uploads if key[0] == TENANT and key[1][0] == export]),
        )
    buckets: dict[str, Bucket] = request.getfixturevalue("s3")
    home = S3Peek(buckets[HOME])

    def content(export: str) -> bytes | None:
        found = home.listed(f"exports/a%2Fb/{export}")
        return home.get(f"exports/a%2Fb/{export}") if f"exports/a%2Fb/{export}" in found else None

    def uploads(export: str) -> int:
        found = home.bucket.client.list_multipart_uploads(Bucket=home.bucket.name).get("Uploads", [])
        return len([upload for upload in found if upload["Key"] == f"exports/a%2Fb/{export}"])

    return Files(ExportFilesS3(buckets, HOME), content, uploads)


@pytest.mark.parametrize("sizes", [[0], [1], [EXPORT_PART_BYTES], [EXPORT_PART_BYTES, EXPORT_PART_BYTES, 5]], ids=str)
def test_a_file_is_its_parts_one_after_the_other(files: Files, sizes: list[int]) -> None:
    export = ids.mint(NOW_MS)
    contents = [bytes([65 + number]) * size for number, size in enumerate(sizes)]
    upload, tags = files.begin(export, *contents)
    assert (files.content(export), files.uploads(export)) == (None, 1)
    files.store.finish(TENANT, export, upload, tags)
    assert (files.content(export), files.uploads(export)) == (b"".join(contents), 0)


def test_written_again_it_is_the_new_file_once_that_is_finished(files: Files) -> None:
    export = ids.mint(NOW_MS)
    files.write(export, b"one, and longer")
    upload, tags = files.begin(export, b"other")
    assert files.content(export) == b"one, and longer"
    files.store.finish(TENANT, export, upload, tags)
    assert files.content(export) == b"other"


def test_a_part_put_again_takes_the_place_of_what_was_there_and_others_stay(files: Files) -> None:
    """A run that goes on from its notes writes over what a run that died had written behind them."""
    export = ids.mint(NOW_MS)
    first, second = b"x" * EXPORT_PART_BYTES, b"y" * EXPORT_PART_BYTES
    upload, tags = files.begin(export, first, b"z" * EXPORT_PART_BYTES, b"longer than it will be")
    again = files.store.add(TENANT, export, upload, number=2, content=second)
    files.store.finish(TENANT, export, upload, [tags[0], again])
    assert files.content(export) == first + second


def test_no_file_is_made_of_the_parts_of_two_runs(files: Files) -> None:
    export = ids.mint(NOW_MS)
    upload, tags = files.begin(export, b"x" * EXPORT_PART_BYTES, b"end")
    files.store.add(TENANT, export, upload, number=1, content=b"y" * EXPORT_PART_BYTES)
    with pytest.raises(ExportFileGone):
        files.store.finish(TENANT, export, upload, tags)
    assert files.content(export) is None


def test_of_a_file_that_is_let_go_no_parts_are_left(files: Files) -> None:
    """Parts are paid for, and belong to no object that anybody would find."""
    export = ids.mint(NOW_MS)
    upload, _ = files.begin(export, b"x")
    files.store.abort(TENANT, export, upload)
    assert (files.content(export), files.uploads(export)) == (None, 0)
    files.store.abort(TENANT, export, upload)


def test_a_finished_file_stays_whoever_lets_go_of_its_upload(files: Files) -> None:
    export = ids.mint(NOW_MS)
    upload, tags = files.begin(export, b"x")
    files.store.finish(TENANT, export, upload, tags)
    files.store.abort(TENANT, export, upload)
    assert files.content(export) == b"x"


def test_an_upload_that_is_gone_is_told() -> None:
    """Of S3 `tests.unit.threadkeep.stores.test_export_files_s3` says so: moto itself breaks on either request."""
    store, export = ExportFilesMemory(), ids.mint(NOW_MS)
    upload = store.begin(TENANT, export)
    tag = store.add(TENANT, export, upload, number=1, content=b"x")
    store.abort(TENANT, export, upload)
    with pytest.raises(ExportFileGone):
        store.add(TENANT, export, upload, number=1, content=b"x")
    with pytest.raises(ExportFileGone):
        store.finish(TENANT, export, upload, [tag])


def test_what_is_noted_is_read_under_its_name_alone(files: Files) -> None:
    export, other = ids.mint(NOW_MS), ids.mint(NOW_MS)
    content = b"\0\xff" * 1_000
    files.store.note(TENANT, export, "one", content)
    files.store.note(TENANT, export, "two", b"")
    assert files.store.noted(TENANT, export, "one") == content
    assert files.store.noted(TENANT, export, "two") == b""
    assert files.content(export) is None
    for tenant, of, name in ((TENANT, export, "three"), (TENANT, other, "one"), ("a", export, "one")):
        assert files.store.noted(tenant, of, name) is None


@pytest.mark.parametrize("region", REGIONS)
def test_a_link_is_of_the_region_that_wrote_the_file_and_gives_it_a_name(s3: dict[str, Bucket], region: str) -> None:
    export = ids.mint(NOW_MS)
    url = ExportFilesS3(s3, ELSEWHERE).presign_get(
        "a/b", export, region=region, name='Käse "2026".jsonl\r\nX: y', lives_s=900
    )
    parts = urlsplit(url)
    assert parts.netloc == f"threadkeep-cold-{region}.s3.{region}.amazonaws.com"
    assert unquote(parts.path) == f"/exports/a%2Fb/{export}"
    query = parse_qs(parts.query)
    assert query["X-Amz-Expires"] == ["900"]
    assert query["response-content-disposition"] == [
        "attachment; filename*=UTF-8''K%C3%A4se%20%222026%22.jsonl%0D%0AX%3A%20y"
    ]
