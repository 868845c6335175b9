"""Asking for an answer: the responder, where one is deployed, is started; it streams like any other producer."""

from __future__ import annotations

from threadkeep.domain.commands import RespondMessage
from threadkeep.domain.errors import conflict
from threadkeep.domain.model import Caller
from threadkeep.ports import AnswerRequest
from threadkeep.usecases.checks import mint_or_check
from threadkeep.usecases.leaf import has_parent, parent_missing
from threadkeep.usecases.services import Reply, Services, authorize


def respond(services: Services, caller: Caller, command: RespondMessage) -> Reply:
    """Have a message answered (again). Asked twice with one ``reply`` id, it is answered once."""
    mint_or_check(command.reply, services.clock.now_ms(), parent=command.parent)
    key = authorize(services, caller, command.conversation, fresh=True)
    if not has_parent(services, key, command.parent):
        raise parent_missing()
    ask(
        services,
        caller,
        conversation=command.conversation,
        parent=command.parent,
        reply=command.reply,
        fork=command.fork,
    )
    return {"reply": command.reply}


def ask(services: Services, caller: Caller, *, conversation: str, parent: str, reply: str, fork: bool) -> None:
    """Start the responder.

    Raises:
        Refused: ``conflict``/``no_responder`` where none is deployed.
        TierUnavailable: it could not be started now; the repeated request does it.
    """
    if services.responder is None:
        raise conflict("no_responder", "This deployment has no responder; a producer of yours has to answer.")
    services.responder.start(
        AnswerRequest(
            tenant=caller.tenant, user=caller.user, conversation=conversation, parent=parent, reply=reply, fork=fork
        )
    )
