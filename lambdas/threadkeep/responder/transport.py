"""How a producer's requests reach the use cases: straight, or through the `produce` function where Valkey is too far.

The function takes an event of its own form, and is invoked by who may by IAM: no frame of a client can look like one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeVar

import msgspec
from botocore.exceptions import BotoCoreError, ClientError

from threadkeep.domain.bounds import STREAM_BYTES_MAX
from threadkeep.domain.commands import AppendStream, CloseStream, OpenStream
from threadkeep.domain.errors import Code, Refused, TierUnavailable
from threadkeep.domain.json_values import encode
from threadkeep.domain.model import Caller
from threadkeep.ports import AnswerRequest
from threadkeep.usecases import streams
from threadkeep.usecases.services import Reply, Services

if TYPE_CHECKING:
    from mypy_boto3_lambda import LambdaClient

ProduceCommand = OpenStream | AppendStream | CloseStream

_USE_CASES: Final[Mapping[type, Callable[[Services, Caller, Any], Reply]]] = {
    OpenStream: streams.open_,
    AppendStream: streams.append,
    CloseStream: streams.close,
}
_INVOKE_BYTES_MAX: Final = 6 * 1024 * 1024
"""A synchronous invocation's payload (Lambda quotas, read 2026-11-29: 6 MB)."""
_ENVELOPE_BYTES: Final = 128 * 1024
"""Room for what stands around a body in the event: ids, metadata, usage, error."""
_AS_TEXT: Final = 2
"""So many times its size JSON may take as a text in JSON: every quote and backslash is escaped."""


class Transport(Protocol):
    """Takes the three requests of a producer.

    Attributes:
        body_bytes_max: how large a `body` may be that a close carries.
    """

    @property
    def body_bytes_max(self) -> int:
        """Bytes of the parts' JSON."""
        ...

    def send(self, command: ProduceCommand) -> Reply:
        """The use case's reply, as far as a producer needs it: ``epoch`` and ``offset``.

        Raises:
            Refused: the verdict.
            TierUnavailable: nothing is known of the outcome.
        """
        ...


def producing(tenant: str, user: str) -> Caller:
    """Who writes an answer: in the name of who asked for it, and by itself, over no connection."""
    return Caller(tenant=tenant, user=user, scopes=frozenset({"produce"}), expires_at_ms=2**53, connection="")


class DirectTransport:
    """Calls the use cases in this process."""

    body_bytes_max: Final = STREAM_BYTES_MAX

    def __init__(self, services: Services, caller: Caller) -> None:
        self._services = services
        self._caller = caller

    def send(self, command: ProduceCommand) -> Reply:
        """See `Transport`."""
        return _USE_CASES[type(command)](self._services, self._caller, command)


class ProduceRequest(
    msgspec.Struct,
    frozen=True,
    kw_only=True,
    forbid_unknown_fields=True,
    tag_field="internal",
    tag="threadkeep.produce",
):
    """What the `produce` function is invoked with.

    Attributes:
        command: the command's JSON as a text: the runtime decodes the event, and would change numbers in it.
    """

    tenant: str
    user: str
    command: str


Request = TypeVar("Request", ProduceRequest, AnswerRequest)


def read_event(event: dict[str, Any], kind: type[Request]) -> Request:
    """The event that a function of ours is invoked with.

    Raises:
        msgspec.ValidationError: it is none, or another function's.
    """
    # As the union, whose tag msgspec insists on; of one type alone it lets the tag be absent.
    request = msgspec.convert(event, ProduceRequest | AnswerRequest)
    if not isinstance(request, kind):
        raise msgspec.ValidationError("The event is another function's.")
    return request


class Refusal(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A `Refused`, with what of it a producer heeds."""

    code: Code
    message: str
    reason: str | None = None
    expected: int | None = None
    retry_after_ms: int | None = None

    @classmethod
    def from_refused(cls, refused: Refused) -> Refusal:
        """Of a settled message, which is what may be large in a refusal, a producer needs nothing."""
        return cls(
            code=refused.code,
            message=refused.message,
            reason=refused.reason,
            expected=(refused.detail or {}).get("expected"),
            retry_after_ms=refused.retry_after_ms,
        )

    def to_refused(self) -> Refused:
        """The exception again."""
        detail = None if self.expected is None else {"expected": self.expected}
        return Refused(self.code, self.message, reason=self.reason, detail=detail, retry_after_ms=self.retry_after_ms)


class ProduceReply(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What the `produce` function answers. At most one of ``refused`` and ``unavailable`` is set.

    Attributes:
        epoch, offset: of the reply, where it has them.
        unavailable: a tier could not be reached.
    """

    epoch: int | None = None
    offset: int | None = None
    refused: Refusal | None = None
    unavailable: bool = False


_COMMAND: Final[msgspec.json.Decoder[ProduceCommand]] = msgspec.json.Decoder(ProduceCommand)
_REPLY: Final = msgspec.json.Decoder(ProduceReply)


def serve(services: Services, request: ProduceRequest) -> ProduceReply:
    """The function's side: do it, and say how it went."""
    transport = DirectTransport(services, producing(request.tenant, request.user))
    try:
        reply = transport.send(_COMMAND.decode(request.command))
    except msgspec.DecodeError:
        return ProduceReply(refused=Refusal(code="bad_request", message="The command is none of a producer's."))
    except Refused as refused:
        return ProduceReply(refused=Refusal.from_refused(refused))
    except TierUnavailable:
        return ProduceReply(unavailable=True)
    return ProduceReply(epoch=reply.get("epoch"), offset=reply.get("offset"))


class InvokeTransport:
    """Invokes the `produce` function, and waits for it.

    Args:
        client: a Lambda client; one attempt a call, since the producer repeats by itself, with the same ids.
        function: the function's name.
        caller: as whom.
    """

    body_bytes_max: Final = (_INVOKE_BYTES_MAX - _ENVELOPE_BYTES) // _AS_TEXT

    def __init__(self, client: LambdaClient, function: str, caller: Caller) -> None:
        self._client = client
        self._function = function
        self._caller = caller

    def send(self, command: ProduceCommand) -> Reply:
        """See `Transport`."""
        request = ProduceRequest(tenant=self._caller.tenant, user=self._caller.user, command=encode(command).decode())
        try:
            answer = self._client.invoke(FunctionName=self._function, Payload=encode(request))
            payload = answer["Payload"].read()
        except (BotoCoreError, ClientError) as error:
            raise TierUnavailable("the produce function could not be invoked") from error
        if "FunctionError" in answer:
            raise TierUnavailable("the produce function failed; its own log says why")
        reply = _REPLY.decode(payload)
        if reply.refused is not None:
            raise reply.refused.to_refused()
        if reply.unavailable:
            raise TierUnavailable("a tier behind the produce function is unavailable")
        return {"epoch": reply.epoch, "offset": reply.offset}
