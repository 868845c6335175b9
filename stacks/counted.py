"""What the code counts, and what of it calls somebody: one list, which a test holds against the code."""

from __future__ import annotations

from typing import Final

import msgspec


class Watched(msgspec.Struct, frozen=True, kw_only=True):
    """A metric of ours that has alarms, one for each function that is named.

    Attributes:
        metric: its name.
        by: the functions; elsewhere it may be counted too, but would say nothing more.
        at: in alarm from so many in a minute on.
        minutes: for so many minutes on end.
        outcome: the value of that dimension, where the metric has it.
        at_home: only the home region has the function.
    """

    metric: str
    by: tuple[str, ...]
    at: int = 1
    minutes: int = 1
    outcome: str = ""
    at_home: bool = False

    def alarm(self, function: str) -> str:
        """The name of a function's alarm, as the runbook has it: ``sweeper-streams-awaited``."""
        words = "".join(f"-{letter.lower()}" if letter.isupper() else letter for letter in self.metric)
        return f"{function}{words}" + (f"-{self.outcome}" if self.outcome else "")


WATCHED: Final = (
    Watched(metric="RequestsFailed", by=("connection", "send", "stream", "history")),
    Watched(metric="RequestsUnavailable", by=("connection", "send", "stream", "history"), at=10, minutes=3),
    Watched(metric="RateLimited", by=("send", "stream", "history"), at=600, minutes=5),
    Watched(metric="Handshakes", by=("authorizer",), at=600, minutes=5, outcome="refused"),
    Watched(metric="SegmentsDamaged", by=("history", "exporter")),
    Watched(metric="SegmentsDamaged", by=("archiver",), at_home=True),
    Watched(metric="GapsOpen", by=("history",), at=10, minutes=5),
    Watched(metric="StreamsAwaited", by=("sweeper",), minutes=5),
    Watched(metric="StreamsNotEnded", by=("sweeper",), minutes=5),
    Watched(metric="RetentionsAwaited", by=("archiver",), at_home=True),
)

_WORK: Final = "work that was done: for graphs"
UNWATCHED: Final[dict[str, str]] = {
    "Answers": "an answer that failed here is an error of the function, and ends in a queue that has an alarm",
    "ChangesRead": _WORK,
    "Connections": "one that is refused here came past the authorizer, which counts what it refuses itself",
    "ConversationsCold": _WORK,
    "ConversationsPlanned": _WORK,
    "Disconnections": _WORK,
    "ErasuresBegun": _WORK,
    "Exports": "one that failed by a fault is an error of the function; its owner sees any other failure",
    "GapsClosed": "a gap that was closed: the reader had what was missing",
    "HeadsPutBack": "mended: who lost a contest for an id is named in the log",
    "JobsDone": _WORK,
    "JobsFailed": "a job that failed comes again; what fails to the end is in a queue that has an alarm",
    "LandedLate": "what landed beside a tombstone, and was removed again",
    "MessagesArchived": _WORK,
    "MessagesPutBack": "mended: which message took the place of another is in the log",
    "MessagesRemoved": _WORK,
    "NewsHandedOn": _WORK,
    "Produced": "a refusal is told to the responder, whose answer fails by it",
    "Requests": "by action and outcome, for graphs; what failed is counted over all actions too",
    "SegmentsRestored": "mended: another region's copy was put in place of the damaged one",
    "SegmentsWritten": _WORK,
    "StreamsEnded": "answers that nobody wrote any more: they are kept as `interrupted`, and say so",
    "StreamsExpired": "a retention ended under an answer: as it was asked for, and who writes is told",
    "StreamsFiledAgain": _WORK,
}
"""What is counted and calls nobody, and why not."""
