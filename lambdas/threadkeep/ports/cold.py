"""The object stores, as the use cases see them: large bodies, uploads, segments, exports."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import msgspec

from threadkeep.domain.archive import Manifest, Member
from threadkeep.domain.model import ConversationKey, StoredMessage
from threadkeep.domain.uploads import Upload


class BodyStore(Protocol):
    """Bodies too large for an item. Immutable objects of the cold tier. Raises `WarmUnavailable`."""

    def put(self, key: ConversationKey, message: str, body: bytes) -> str:
        """Keep a body; returns its object key, which carries the content's hash."""
        ...

    def get(self, pointer: str) -> bytes:
        """The body again, checked against the hash in its key; from another region's bucket where ours lacks it."""
        ...


class PresignedPut(msgspec.Struct, frozen=True):
    """How a client uploads by itself: an HTTP PUT of the content to the URL, with exactly these headers."""

    url: str
    headers: dict[str, str]


class PresignedGet(msgspec.Struct, frozen=True):
    """How a client downloads by itself: an HTTP GET of the URL, until ``expires_ms`` (ms since the epoch)."""

    url: str
    expires_ms: int


class UploadStore(Protocol):
    """What clients upload past the frames. Objects that expire, in the cold tier. Raises `WarmUnavailable`."""

    def presign(self, key: ConversationKey, upload: Upload, *, media_type: str | None, lives_s: int) -> PresignedPut:
        """Let the client put those bytes, and no others, within so many seconds."""
        ...

    def read(self, key: ConversationKey, upload: Upload) -> bytes | None:
        """What lies there, None if nothing does. At most a byte more than was spoken of, and unchecked."""
        ...

    def keep(self, key: ConversationKey, upload: Upload) -> bool:
        """Let it stay for good; again: it does. False if nothing of that size lies there, nor has been kept."""
        ...

    def presign_get(self, key: ConversationKey, upload: Upload, *, lives_s: int) -> str | None:
        """A URL to get what was kept; None if nothing of that size is kept there."""
        ...


class ColdStore(Protocol):
    """Segments of cold conversations, in every region's bucket. Raises `WarmUnavailable`."""

    def write(self, key: ConversationKey, messages: Sequence[StoredMessage], *, now_ms: int) -> Manifest:
        """Write settled messages (whole, in id order, at most `SEGMENT_MESSAGES_MAX`) as one segment, everywhere.

        A message that no frame could carry goes as a body of its own; the segment holds its page form and points to
        it. Each region's object is read back and checked before this returns. Written again, it is the same object.
        """
        ...

    def read(self, key: ConversationKey, manifest: Manifest, members: Sequence[Member]) -> tuple[StoredMessage, ...]:
        """The messages of neighbouring members, in id order, in page form, by one ranged read.

        Raises:
            SegmentDamaged: no region's bucket gives them as they were written.
        """
        ...

    def read_whole(
        self, key: ConversationKey, manifest: Manifest, member: Member, message: str
    ) -> StoredMessage | None:
        """One message of a member with all its parts; None if the member does not hold it.

        Raises:
            SegmentDamaged: as `read`.
        """
        ...

    def missing_in(self, key: ConversationKey, manifest: Manifest) -> tuple[str, ...]:
        """The regions whose bucket does not hold the segment as it was written, or a body that it points to."""
        ...

    def mend(self, key: ConversationKey, manifest: Manifest) -> None:
        """Put the segment, and the bodies that it points to, into the buckets that `missing_in` names.

        Raises:
            SegmentDamaged: no region's bucket gives it as it was written.
        """
        ...


class ObjectSweep(Protocol):
    """Everything that a region's bucket holds of a conversation, for whoever erases it. Raises `WarmUnavailable`."""

    def remove(self, key: ConversationKey) -> int:
        """Delete bodies, blobs, uploads and segments, every version; how many objects there were."""
        ...


class ExportFiles(Protocol):
    """The files of exports, which live up to two days in the region that wrote them, and the notes of those under way.

    A file is written in parts and is there once it is finished; until then what was finished before stays. Raises
    `WarmUnavailable`.
    """

    def begin(self, tenant: str, export: str) -> str:
        """Begin a file; what its upload is called."""
        ...

    def add(self, tenant: str, export: str, upload: str, *, number: int, content: bytes) -> str:
        """Put a part, from number 1 on, also in place of one; its tag. All but the last have `EXPORT_PART_BYTES`.

        Raises:
            ExportFileGone: there is no such upload.
        """
        ...

    def finish(self, tenant: str, export: str, upload: str, parts: Sequence[str]) -> None:
        """Make the file of its parts, of which there is at least one, by their tags.

        Raises:
            ExportFileGone: there is no such upload, or a part has another tag.
        """
        ...

    def abort(self, tenant: str, export: str, upload: str) -> None:
        """Let an unfinished file go, and its parts. Of one that is not there nothing is left to do."""
        ...

    def note(self, tenant: str, export: str, name: str, content: bytes) -> None:
        """Keep what the next run is to know, under a new name."""
        ...

    def noted(self, tenant: str, export: str, name: str) -> bytes | None:
        """What was kept under a name; None: nothing."""
        ...

    def presign_get(self, tenant: str, export: str, *, region: str, name: str, lives_s: int) -> str:
        """A URL to get it under a file name, from the region that wrote it."""
        ...
