"""What the route handlers share: parse, one call, reply. Wire codes are mapped here and nowhere else."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from threadkeep import container, telemetry
from threadkeep.domain.commands import Command
from threadkeep.domain.errors import Refused, TierUnavailable
from threadkeep.domain.model import Caller
from threadkeep.gateway.events import read_caller
from threadkeep.gateway.reading import read_command, read_envelope
from threadkeep.gateway.writing import write_error, write_reply
from threadkeep.usecases.limits import meter
from threadkeep.usecases.services import Reply, Services

UseCase = Callable[[Services, Caller, Any], Reply]
Routes = Mapping[type[Command], UseCase]
_FAILED: Final = {"internal": "RequestsFailed", "unavailable": "RequestsUnavailable"}
"""Outcomes that an operator is called for, counted over all actions: the function itself has no error to show."""


def answer(event: dict[str, Any], routes: Routes) -> dict[str, Any]:
    """Serve one message of a connection. Always has a body: it is the reply, sent by the gateway's route response."""
    frame, action, ref = read_envelope(event.get("body") or "")
    known = next((command for command in routes if command.__struct_config__.tag == action), None)
    outcome = "ok"
    try:
        body = write_reply(action, ref, _run(event, frame, known, routes))
    except Refused as refused:
        outcome = refused.code
        body = write_error(ref, refused)
    except TierUnavailable as unavailable:
        outcome = "unavailable"
        telemetry.note_fault("A tier is unavailable", unavailable)
        body = write_error(ref, Refused("unavailable", "A store cannot be reached just now; ask again in a moment."))
    except Exception as error:  # noqa: BLE001 -- the one catch-all: a client never sees a trace
        outcome = "internal"
        telemetry.note_fault("Fault", error)
        body = write_error(ref, Refused("internal", "Something failed here; it has been noted. Ask again in a moment."))
    if outcome in _FAILED:
        telemetry.count(_FAILED[outcome])
    telemetry.count("Requests", action=action if known else "unknown", outcome=outcome)
    return {"statusCode": 200, "body": body.decode()}


def _run(event: dict[str, Any], frame: bytes, known: type[Command] | None, routes: Routes) -> Reply:
    command = read_command(frame)
    if known is None:
        raise Refused("bad_request", "This route does not serve that action.")
    caller = read_caller(event)
    services = container.services()
    if caller.expires_at_ms <= services.clock.now_ms():
        raise Refused("token_expired", "The connection's token has expired; connect again with a new one.")
    if not caller.scopes & command.scopes:
        raise Refused("unauthorized", f"This action wants one of the scopes {', '.join(sorted(command.scopes))}.")
    if command.is_metered():
        meter(services, caller)
    return routes[known](services, caller, command)
