"""Produce: a producer's requests from inside the account, for those who stand too far from Valkey to write themselves.

Its event is a form of its own (`ProduceRequest`), which no frame of a client can take: the gateway never calls it, and
whoever does must be allowed to by IAM. So it may act for whatever tenant and user the event names.
"""

from __future__ import annotations

from typing import Any

import msgspec

from threadkeep import container, telemetry
from threadkeep.domain.errors import Refused
from threadkeep.responder.transport import ProduceReply, ProduceRequest, Refusal, read_event, serve


def _handle(event: dict[str, Any], _context: Any) -> dict[str, Any]:
    try:
        reply = serve(container.services(), read_event(event, ProduceRequest))
    except msgspec.ValidationError:
        reply = _refusal(Refused("bad_request", "The event must be a ProduceRequest."))
    except Exception as error:  # noqa: BLE001 -- the one catch-all: a trace may quote what is being written
        telemetry.note_fault("Fault", error)
        reply = _refusal(Refused("internal", "Something failed in the produce function; its log says where."))
    outcome = reply.refused.code if reply.refused else "unavailable" if reply.unavailable else "ok"
    telemetry.count("Produced", outcome=outcome)
    answer: dict[str, Any] = msgspec.to_builtins(reply)
    return answer


def _refusal(refused: Refused) -> ProduceReply:
    return ProduceReply(refused=Refusal.from_refused(refused))


handler = telemetry.instrumented(_handle)
