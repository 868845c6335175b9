"""The loop between a model and a conversation: takes what the model says, and has the producer say it in time."""

from __future__ import annotations

from threadkeep.responder.answers import Cut, Ended, Failed
from threadkeep.responder.endings import SILENT, TOO_LARGE, TOO_LONG, Ending
from threadkeep.responder.outbox import AnswerTooLarge
from threadkeep.responder.produce import Lost, Producer
from threadkeep.responder.pump import Source
from threadkeep.responder.timing import Timing
from threadkeep.responder.transcript import Transcript


def relay(
    source: Source, producer: Producer, transcript: Transcript, *, timing: Timing, silence_s: float, until_s: float
) -> Ending | Lost:
    """Relay until the model ends, or is to be ended: how the answer is to be closed, or why it no longer can be.

    Stops the source in any case. Looks around at least once a beat, however silent the model.

    Args:
        source: of the model's events.
        producer: open.
        transcript: of the producer's outbox.
        timing: the time.
        silence_s: how long the model may say nothing.
        until_s: when the answer has to end, by ``timing``.

    Raises:
        Refused: the conversation is gone.
    """
    heard_s = timing.now_s()
    try:
        while True:
            event = source.take(producer.due_in_s())
            if isinstance(event, Ended | Failed | Cut):
                return Ending.from_end(event)
            if event is not None:
                transcript.take(event)
                heard_s = timing.now_s()
            elif timing.now_s() - heard_s >= silence_s:
                return SILENT
            if timing.now_s() >= until_s:
                return TOO_LONG
            if producer.due_in_s() <= 0:
                lost = producer.send()
                if lost is not None:
                    return lost
    except AnswerTooLarge:
        return TOO_LARGE
    finally:
        source.stop()
