"""What a request may be refused with.

`Refused` is the one exception that becomes an error frame as it stands; everything else that is raised becomes a
bare ``internal`` and an alarm. The codes and their precedence are those of docs/protocol.md, section 2.

::

    Exception
    ├── Refused            an answer of the protocol, for the client
    ├── Unreadable         what is stored is damaged, or of a format that this version does not know
    └── TierUnavailable    a store could not be reached or would not take it
        ├── HotUnavailable     Valkey: the caller degrades
        └── WarmUnavailable    DynamoDB or S3: becomes `unavailable`
            ├── WarmThrottled      refused for want of capacity, so nothing was written
            └── ArchiveDamaged     no region has what was archived as it was written
"""

from __future__ import annotations

from typing import Any, Final, Literal

Code = Literal[
    "bad_request",
    "too_large",
    "token_expired",
    "unauthorized",
    "rate_limited",
    "not_found",
    "conflict",
    "fenced",
    "closed",
    "gap",
    "unavailable",
    "internal",
]

RETRYABLE_CODES: Final = frozenset({"rate_limited", "unavailable", "internal"})
RETRYABLE_REASONS: Final = frozenset({"parent_open", "parent_missing"})


class Refused(Exception):  # noqa: N818 -- an expected answer, not an error of the service
    """A refusal of the protocol.

    Args:
        code: one of the protocol's codes.
        message: a sentence for people; says what to do, holds nothing of the request's content.
        reason: with ``conflict``, which one.
        detail: ``leaf`` (``stale_leaf``), ``expected`` (``gap``), ``settled`` (``closed``).
        retry_after_ms: with ``rate_limited``, when it is worth asking again.
    """

    def __init__(
        self,
        code: Code,
        message: str,
        *,
        reason: str | None = None,
        detail: dict[str, Any] | None = None,
        retry_after_ms: int | None = None,
    ) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.reason = reason
        self.detail = detail
        self.retry_after_ms = retry_after_ms

    @property
    def retryable(self) -> bool:
        """Whether the same request, repeated, may succeed."""
        return self.code in RETRYABLE_CODES or self.reason in RETRYABLE_REASONS


def not_found() -> Refused:
    """The one answer for an id that is foreign, deleted or never existed: alike to the byte."""
    return Refused("not_found", "Nothing here goes by that id.")


def conflict(reason: str, message: str, **detail: Any) -> Refused:
    """A ``conflict`` with its reason."""
    return Refused("conflict", message, reason=reason, detail=detail or None)


class Unreadable(Exception):  # noqa: N818 -- named for the state that it reports
    """What is stored cannot be read: it is damaged, or of a format that this version does not know.

    Args:
        conversation: the conversation it belongs to.
        item: the message's id, or the sort key of another item.
        why: what is wrong with it.
    """

    def __init__(self, conversation: str, item: str, why: str) -> None:
        super().__init__(f"{item} of conversation {conversation} cannot be read: {why}")
        self.conversation = conversation
        self.item = item


class TierUnavailable(Exception):  # noqa: N818 -- named for the state that it reports
    """A store could not be reached in time or refused for lack of room; nothing is known of the outcome."""


class HotUnavailable(TierUnavailable):
    """Valkey cannot be reached, or is out of memory."""


class WarmUnavailable(TierUnavailable):
    """DynamoDB or S3 cannot be reached, or throttles."""


class WarmThrottled(WarmUnavailable):
    """Refused for want of capacity: nothing was written."""


class ExportFileGone(Exception):  # noqa: N818 -- named for the state that it reports
    """The upload of an export's file is not there any more, or another run has put other parts in place of some."""


class ArchiveDamaged(WarmUnavailable):
    """No region can give a segment that may hold the message. Asked again, it is sought again: buckets are mended."""
