"""Produce: a producer's requests from inside the account, for those who stand too far from Valkey to write themselves.

Its event is a form of its own (`ProduceRequest`), which no frame of a client can take: the gateway never calls it, and
whoever does must be allowed to by IAM. So it may act for whatever tenant and user the event names.
"""

from __future__ import annotations

import json
from typing import Any

import msgspec

from threadkeep import container, telemetry
from threadkeep.domain.errors import Refused
from threadkeep.domain.json_values import encode
from threadkeep.responder.transport import DirectTransport, ProduceReply, ProduceRequest, Refusal, producing, serve


def _handle(event: dict[str, Any], _context: Any) -> dict[str, Any]:
    # By way of JSON, not `msgspec.convert`: parts stay the bytes that they are (`Raw`).
    request = msgspec.json.decode(encode(event), type=ProduceRequest)
    try:
        transport = DirectTransport(container.services(), producing(request.tenant, request.user))
        reply = serve(transport, request.command)
    except Exception as error:  # noqa: BLE001 -- the one catch-all: a trace may quote what is being written
        telemetry.note_fault("Fault", error)
        reply = ProduceReply(refused=Refusal.from_refused(Refused("internal", "Something failed; it has been noted.")))
    outcome = reply.refused.code if reply.refused else "unavailable" if reply.unavailable else "ok"
    telemetry.count("Produced", action=str(type(request.command).__struct_config__.tag), outcome=outcome)
    answer: dict[str, Any] = json.loads(encode(reply))
    return answer


handler = telemetry.instrumented(_handle)
