"""A ref says what was spoken of, and is nothing that could be forged into more."""

from __future__ import annotations

import hashlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from threadkeep.domain.bounds import NAME_CHARS_MAX, UPLOAD_BYTES_MAX
from threadkeep.domain.uploads import Upload

DIGEST = hashlib.sha256(b"body").hexdigest()


@given(st.integers(1, UPLOAD_BYTES_MAX), st.binary(min_size=32, max_size=32))
def test_a_ref_comes_back_as_what_was_spoken_of(size_bytes: int, digest: bytes) -> None:
    upload = Upload(size_bytes, digest.hex())
    assert Upload.from_ref(upload.to_ref()) == upload
    assert len(upload.to_ref()) <= NAME_CHARS_MAX


@pytest.mark.parametrize(
    "ref",
    [
        "",
        DIGEST,
        f"{DIGEST}.",
        f"{DIGEST}.0",
        f"{DIGEST}.-1",
        f"{DIGEST}.04",
        f"{DIGEST}.4\n",
        f"{DIGEST}.4 ",
        f"{DIGEST}.\u0664",
        f"{DIGEST}.{UPLOAD_BYTES_MAX + 1}",
        f"{DIGEST}.{'9' * 100}",
        f"{DIGEST.upper()}.4",
        f"{DIGEST[:-1]}.4",
        f"../{DIGEST}.4",
        f"{DIGEST[:-3]}../.4",
    ],
)
def test_what_nobody_gave_is_no_ref(ref: str) -> None:
    assert Upload.from_ref(ref) is None


@pytest.mark.parametrize(("content", "right"), [(b"body", True), (b"bodx", False), (b"bod", False), (b"body ", False)])
def test_content_is_held_to_size_and_digest(content: bytes, right: bool) -> None:  # noqa: FBT001 -- a parameter
    assert Upload(4, DIGEST).is_of(content) is right


def test_a_content_of_the_right_digest_but_another_size_is_not_what_was_spoken_of() -> None:
    assert not Upload(5, DIGEST).is_of(b"body")
