"""One answer, from the request to its durable end."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, Literal

import msgspec

from threadkeep.domain.bounds import SILENT_MS
from threadkeep.domain.errors import Refused, TierUnavailable
from threadkeep.domain.model import ConversationKey
from threadkeep.domain.streams import Facts
from threadkeep.ports import AnswerRequest
from threadkeep.responder.answers import AnswerStream, Model
from threadkeep.responder.endings import INTERNAL, NO_QUESTION, TOO_LARGE, UNAVAILABLE, Ending
from threadkeep.responder.outbox import AnswerTooLarge
from threadkeep.responder.produce import Lost, Pace, Producer
from threadkeep.responder.prompt import Prompt, prompt_from
from threadkeep.responder.pump import Pump, Source
from threadkeep.responder.relay import relay
from threadkeep.responder.timing import SystemTiming, Timing
from threadkeep.responder.transcript import Transcript
from threadkeep.responder.transport import Transport
from threadkeep.usecases.context import read_whole
from threadkeep.usecases.tiers import Tiers

SILENCE_S: Final = SILENT_MS / 1_000
"""With nothing from the model for so long the answer has failed, whether this or the sweeper says so."""
TIME_MAX_S: Final = 14 * 60.0
"""How long an answer may take. A function has 15 minutes, and closing may take most of the last."""

Responded = Literal["complete", "failed", "interrupted"] | Lost
"""What came of a request: the status that the answer was closed with; else why it was not ours to close: somebody else
ended it (its reader, an earlier delivery), or writes it."""


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """How answers are made.

    Attributes:
        system: what the model is told before the conversation.
        context_messages_max, context_tokens_max: how much of the conversation it reads.
        time_max_s: how long an answer may take; what there is by then is kept.
        silence_s: how long the model may say nothing.
        pace: how the producer waits.
    """

    system: str = ""
    context_messages_max: int = 200
    context_tokens_max: int = 32_000
    time_max_s: float = TIME_MAX_S
    silence_s: float = SILENCE_S
    pace: Pace = Pace()


class Answering:
    """Answers requests with a model.

    Args:
        tiers: where the context is read from.
        model: what answers.
        settings: how.
        timing: the time.
        begin: has an answer come in, aside of the caller's thread.
    """

    def __init__(
        self,
        *,
        tiers: Tiers,
        model: Model,
        settings: Settings,
        timing: Timing | None = None,
        begin: Callable[[AnswerStream], Source] = Pump,
    ) -> None:
        self._tiers = tiers
        self._model = model
        self._settings = settings
        self._timing = SystemTiming() if timing is None else timing
        self._begin = begin

    def respond(self, request: AnswerRequest, transport: Transport) -> Responded:
        """Answer. Opens the stream before all else: of two deliveries of one request, one asks the model.

        Raises:
            Refused: there is no place for it: the conversation has gone on (``stale_leaf``), or is gone. The question
                keeps its `reply` id, and can be asked again.
            TierUnavailable: the stream could not be opened, and the whole may be tried again; or what was answered
                could not be made durable.
        """
        until_s = self._timing.now_s() + self._settings.time_max_s
        producer = Producer(
            transport,
            conversation=request.conversation,
            stream=request.reply,
            facts=Facts(parent=request.parent, role="assistant", model=self._model.name),
            fork=request.fork,
            timing=self._timing,
            pace=self._settings.pace,
        )
        lost = producer.open()
        return self._answer(request, producer, until_s) if lost is None else lost

    def _answer(self, request: AnswerRequest, producer: Producer, until_s: float) -> Responded:
        transcript = Transcript(producer.outbox)
        try:
            end = self._have_said(request, producer, transcript, until_s)
        except Refused:
            raise
        except Exception:
            # A fault of ours. The answer must not look alive until its lease runs out.
            _close(producer, transcript, INTERNAL)
            raise
        return _close(producer, transcript, end) if isinstance(end, Ending) else end

    def _have_said(
        self, request: AnswerRequest, producer: Producer, transcript: Transcript, until_s: float
    ) -> Ending | Lost:
        try:
            prompt = self._read_prompt(request)
        except TierUnavailable:
            return UNAVAILABLE
        if not prompt.turns:
            return NO_QUESTION
        return relay(
            self._begin(self._model.answer(prompt)),
            producer,
            transcript,
            timing=self._timing,
            silence_s=self._settings.silence_s,
            until_s=until_s,
        )

    def _read_prompt(self, request: AnswerRequest) -> Prompt:
        messages = read_whole(
            self._tiers,
            ConversationKey(request.tenant, request.conversation),
            request.parent,
            messages_max=self._settings.context_messages_max,
            tokens_max=self._settings.context_tokens_max,
        )
        return prompt_from(messages, system=self._settings.system)


def _close(producer: Producer, transcript: Transcript, ending: Ending) -> Responded:
    try:
        transcript.end(ending.stop_reason)
        end = producer.close(ending.to_seal(transcript.usage))
    except AnswerTooLarge:
        ending = TOO_LARGE
        end = producer.close(ending.to_seal(transcript.usage))
    return ending.status if end == "settled" else end
