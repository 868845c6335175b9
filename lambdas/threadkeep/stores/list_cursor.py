"""Where a list of conversations goes on: opaque to clients, and trusted for no more than a place in it."""

from __future__ import annotations

import base64
import binascii
from typing import Annotated, Final

import msgspec
from msgspec import Meta

from threadkeep.domain.errors import Refused
from threadkeep.domain.ids import ID_PATTERN
from threadkeep.domain.json_values import encode


class ListCursor(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """The last conversation read. It holds no key: keys are built anew from who asks."""

    active_at: Annotated[str, Meta(pattern=r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z\Z")]
    conversation: Annotated[str, Meta(pattern=ID_PATTERN)]

    @classmethod
    def from_text(cls, text: str) -> ListCursor:
        """Read what `to_text` wrote.

        Raises:
            Refused: ``bad_request`` if it did not write that.
        """
        try:
            return _DECODER.decode(base64.b64decode(text.encode("ascii"), altchars=b"-_", validate=True))
        except (UnicodeEncodeError, binascii.Error, msgspec.DecodeError) as error:
            raise Refused("bad_request", "`cursor` must be one that a page gave.") from error

    def to_text(self) -> str:
        """The cursor as clients hand it back."""
        return base64.urlsafe_b64encode(encode(self)).decode("ascii")


_DECODER: Final = msgspec.json.Decoder(ListCursor)
