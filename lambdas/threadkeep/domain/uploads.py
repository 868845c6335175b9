"""What goes past the frames: bytes that a client uploads first and names afterwards (docs/protocol.md, section 6)."""

from __future__ import annotations

import hashlib
import re
from typing import Final

import msgspec

from threadkeep.domain.bounds import UPLOAD_BYTES_MAX

SHA256_PATTERN: Final = r"^[0-9a-f]{64}\Z"
MEDIA_TYPE_PATTERN: Final = r"^[A-Za-z0-9!#$&^_.+-]{1,63}/[A-Za-z0-9!#$&^_.+-]{1,63}\Z"
_REF: Final = re.compile(r"([0-9a-f]{64})\.([1-9][0-9]{0,14})\Z", re.ASCII)


class Upload(msgspec.Struct, frozen=True):
    """What a client says of its bytes before it uploads them.

    Its ``ref`` says the same again and no more. It names no tenant and no conversation: those are always the
    request's own, so that a ref that went astray names nothing elsewhere.

    Attributes:
        sha256: in lower-case hexadecimal digits.
    """

    size_bytes: int
    sha256: str

    def to_ref(self) -> str:
        """The text by which a client names it; opaque to the client."""
        return f"{self.sha256}.{self.size_bytes}"

    @classmethod
    def from_ref(cls, ref: str) -> Upload | None:
        """Read what `to_ref` built; None where it is nothing of the kind, or larger than any upload."""
        found = _REF.match(ref)
        if found is None or int(found[2]) > UPLOAD_BYTES_MAX:
            return None
        return cls(int(found[2]), found[1])

    def is_of(self, content: bytes) -> bool:
        """Whether these are the very bytes that were spoken of."""
        return len(content) == self.size_bytes and hashlib.sha256(content).hexdigest() == self.sha256
