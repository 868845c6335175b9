"""What a viewer tells, and how it waits."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from threadkeep_client.answer import Answer
from threadkeep_client.backoff import Backoff
from threadkeep_client.wire import Message, Op

Kind = Literal["opened", "delta", "restarted", "settled", "created", "updated", "deleted", "lost"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ViewerSettings:
    """How a viewer waits.

    Attributes:
        silent_s: without a frame of a live stream for so long, it subscribes and resumes.
        missing_s: how long a stream that the service does not know is asked for again.
        retry_s: about the pause between two such tries.
        resume_s: deadline of one request for a page.
        frames_max: in the inbox.
        ended_max: ids of settled messages kept, so that late frames of theirs are known as such.
        reach: pauses between attempts to reach another region, in which an answer is streamed.
    """

    silent_s: float = 15.0
    missing_s: float = 60.0
    retry_s: float = 2.0
    resume_s: float = 20.0
    frames_max: int = 1_024
    ended_max: int = 4_096
    reach: Backoff = field(default_factory=lambda: Backoff(base_s=0.2, ceiling_s=20.0))


@dataclass(frozen=True, slots=True, kw_only=True)
class Update:
    """What has changed.

    Attributes:
        kind: `opened`: an answer is followed from now on · `delta`: it grew by `ops` · `restarted`: what was shown
            of it is dropped, it is sent again · `settled`: it has ended as `message` · `created`: a `message` that was
            not streamed,
            e.g. a user's · `lost`: an answer that the service no longer knows: keep what is shown, it will not go on ·
            `updated`, `deleted`: the conversation was.
        id: of the message; of the conversation for `updated` and `deleted`.
        answer: as it stands: its `text` and `parts` go on changing while the viewer is iterated.
        ops: what came.
        message: whole, with its parts.
    """

    kind: Kind
    id: str
    answer: Answer | None = None
    ops: tuple[Op, ...] = ()
    message: Message | None = None
