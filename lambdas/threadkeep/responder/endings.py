"""How an answer can end, as it is sealed: a status, and for all but ``complete`` an error.

The sentences are ours and constant. A provider's own may quote what it was asked.
"""

from __future__ import annotations

from typing import Final, Literal

import msgspec
from msgspec import Raw

from threadkeep.domain.json_values import JsonObject, encode
from threadkeep.domain.streams import Seal
from threadkeep.responder.answers import Cut, End, Ended, Failed


class Ending(msgspec.Struct, frozen=True, kw_only=True):
    """One way to end.

    Attributes:
        status: never ``stopped``, with which a reader ends an answer.
        stop_reason: the provider's word for why the model ended by itself.
    """

    status: Literal["complete", "failed", "interrupted"]
    code: str = ""
    message: str = ""
    retryable: bool = False
    stop_reason: str = ""

    @classmethod
    def from_end(cls, end: End) -> Ending:
        """What the end of a model's events means for the answer."""
        match end:
            case Ended(reason):
                return cls(status="complete", stop_reason=reason)
            case Failed("silent", _):
                return SILENT
            case Failed(code, retryable):
                return cls(status="failed", code=code, message="The model's provider failed.", retryable=retryable)
            case Cut():
                return CUT

    def to_seal(self, usage: JsonObject | None) -> Seal:
        """The seal of an answer that ends so."""
        if not self.code:
            return Seal(status=self.status, usage=usage)
        error = {"code": self.code, "message": self.message, "retryable": self.retryable}
        return Seal(status=self.status, usage=usage, error={name: Raw(encode(value)) for name, value in error.items()})


CUT: Final = Ending(
    status="interrupted",
    code="connection_lost",
    message="The connection to the model broke off.",
    retryable=True,
)
SILENT: Final = Ending(status="failed", code="silent", message="The model said nothing for too long.", retryable=True)
TOO_LONG: Final = Ending(
    status="failed", code="time_limit", message="The answer took longer than it may.", retryable=True
)
TOO_LARGE: Final = Ending(status="failed", code="too_large", message="The answer grew larger than it may.")
NO_QUESTION: Final = Ending(status="failed", code="no_question", message="There is no text to be answered.")
UNAVAILABLE: Final = Ending(
    status="failed", code="unavailable", message="The conversation could not be read just now.", retryable=True
)
INTERNAL: Final = Ending(
    status="failed", code="internal", message="Something failed here; it has been noted.", retryable=True
)
