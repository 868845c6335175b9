"""What every `threadkeep.ports.ExportFiles` does alike: in memory, and on S3's API."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from urllib.parse import parse_qs, unquote, urlsplit

import msgspec
import pytest

from tests.support.buckets import ELSEWHERE, HOME, REGIONS, S3Peek, moto_buckets
from tests.support.conversations import NOW_MS
from tests.support.moto_table import moto_clients
from threadkeep.domain import ids
from threadkeep.ports import ExportFiles
from threadkeep.stores.buckets_s3 import Bucket
from threadkeep.stores.export_files_s3 import ExportFilesS3
from threadkeep.stores.exports_memory import ExportFilesMemory

PART_BYTES = 8 * 1024 * 1024


class Files(msgspec.Struct, frozen=True):
    """A store, and the files that lie in it: None where there is none."""

    store: ExportFiles
    content: Callable[[str, str], bytes | None]


@pytest.fixture(scope="module")
def s3() -> Iterator[dict[str, Bucket]]:
    with moto_clients():
        yield moto_buckets()


@pytest.fixture(params=["memory", "s3"])
def files(request: pytest.FixtureRequest) -> Files:
    if request.param == "memory":
        memory = ExportFilesMemory()
        return Files(memory, lambda tenant, export: memory.files.get((tenant, export)))
    buckets: dict[str, Bucket] = request.getfixturevalue("s3")
    home = S3Peek(buckets[HOME])

    def content(tenant: str, export: str) -> bytes | None:
        assert tenant == "a/b"
        (object_key,) = home.listed(f"exports/a%2Fb/{export}") or (None,)
        return None if object_key is None else home.get(object_key)

    return Files(ExportFilesS3(buckets, HOME), content)


@pytest.mark.parametrize(
    "sizes",
    [[], [0], [1], [10, 20, 0, 30], [PART_BYTES - 1, 1], [PART_BYTES + 1], [3 * PART_BYTES, 5], [1_000_000] * 20],
    ids=str,
)
def test_a_file_is_its_pieces_one_after_the_other(files: Files, sizes: list[int]) -> None:
    export = ids.mint(NOW_MS)
    pieces = [bytes([65 + number]) * size for number, size in enumerate(sizes)]
    assert files.store.write("a/b", export, iter(pieces)) == sum(sizes)
    assert files.content("a/b", export) == b"".join(pieces)


def test_written_again_it_is_the_new_file(files: Files) -> None:
    export = ids.mint(NOW_MS)
    for content in (b"one, and longer", b"other"):
        files.store.write("a/b", export, [content])
    assert files.content("a/b", export) == b"other"


def test_a_file_that_breaks_off_is_not_there(files: Files) -> None:
    export = ids.mint(NOW_MS)

    def pieces() -> Iterator[bytes]:
        yield b"x" * (PART_BYTES + 1)
        raise OSError("the history broke off")

    with pytest.raises(OSError, match="broke off"):
        files.store.write("a/b", export, pieces())
    assert files.content("a/b", export) is None


def test_of_a_file_that_breaks_off_no_parts_are_left(s3: dict[str, Bucket]) -> None:
    """Parts are paid for, and belong to no object that anybody would find."""

    def pieces() -> Iterator[bytes]:
        yield b"x" * (PART_BYTES + 1)
        raise OSError("the history broke off")

    with pytest.raises(OSError, match="broke off"):
        ExportFilesS3(s3, HOME).write("a/b", ids.mint(NOW_MS), pieces())
    client, name = s3[HOME]
    assert client.list_multipart_uploads(Bucket=name).get("Uploads", []) == []


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
