"""The whole service in memory: every request goes through the real handler of its bulkhead, as the gateway calls it."""

from __future__ import annotations

import dataclasses
import importlib
import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

import msgspec
import pytest

from tests.support import canaries
from tests.support.conversations import text_parts
from tests.support.hot import SetClock
from threadkeep import container
from threadkeep.domain import ids
from threadkeep.domain.bounds import FRAME_BYTES_MAX
from threadkeep.domain.erasure import Terms
from threadkeep.domain.model import ConversationKey, Message, StoredMessage
from threadkeep.domain.rates import Rate, Rates
from threadkeep.schema import ROUTES
from threadkeep.stores.cold_memory import ColdMemory
from threadkeep.stores.due_memory import DueMemory
from threadkeep.stores.erasures_memory import ErasuresMemory
from threadkeep.stores.exports_memory import ExportFilesMemory, ExportsMemory
from threadkeep.stores.hot_memory import HotMemory
from threadkeep.stores.manifests_memory import ManifestsMemory
from threadkeep.stores.push_memory import PushMemory
from threadkeep.stores.queue_memory import QueueMemory
from threadkeep.stores.quotas_memory import QuotasMemory
from threadkeep.stores.replaced_memory import ReplacedMemory
from threadkeep.stores.responder_memory import ResponderMemory
from threadkeep.stores.uploads_memory import UploadsMemory
from threadkeep.stores.warm_memory import WarmMemory
from threadkeep.usecases.services import Services

Frame = dict[str, Any]

REGION: Final = "eu-central-1"
START_MS: Final = 1_800_000_000_000
FAR_S: Final = 4_000_000_000
"""An expiry that no test reaches, in seconds as tokens have it."""
BULKHEADS: Final = {action: bulkhead for bulkhead, actions in ROUTES.items() for action in actions}


UNLIMITED: Final = Rates(user=Rate(per_s=1e6, burst=10**9), tenant=Rate(per_s=1e6, burst=10**9), streams_max=10**9)
"""For tests of everything but the limits, whose clocks stand still."""


class Device(msgspec.Struct, frozen=True, kw_only=True):
    """A connection, and whom the authorizer vouched for on it."""

    connection: str
    user: str = "ann"
    tenant: str = "acme"
    scope: str = "chat"
    expires_s: int = FAR_S

    def vouched(self) -> dict[str, Any]:
        """The authorizer's context, as it arrives: strings, and a number of the gateway's own."""
        return {
            "tenant": self.tenant,
            "sub": self.user,
            "scope": self.scope,
            "exp": str(self.expires_s),
            "principalId": self.user,
            "integrationLatency": 3,
        }


class LambdaContext:
    """What a handler is given beside its event."""

    function_name = "threadkeep-test"
    memory_limit_in_mb = 512
    invoked_function_arn = "arn:aws:lambda:eu-central-1:000000000000:function:threadkeep-test"
    aws_request_id = "00000000-0000-4000-8000-000000000000"


PHONE: Final = Device(connection="phone=")
LAPTOP: Final = Device(connection="laptop=")
WORKER: Final = Device(connection="worker=", user="responder", scope="produce")
"""A server: it produces for every user of the tenant."""


class House:
    """Stores in memory, a clock that tests set, and the handlers in front.

    Every reply and every frame pushed is held to the bound of a frame; an ``internal`` is a failure of the test,
    unless it asks for it by `post`.
    """

    def __init__(self, region: str = REGION, clock: SetClock | None = None) -> None:
        self.clock = clock or SetClock(START_MS)
        self.hot = HotMemory(self.clock, region=region)
        self.warm = WarmMemory()
        self.manifests = ManifestsMemory(self.warm)
        self.due = DueMemory(self.warm)
        self.replaced = ReplacedMemory(self.warm)
        self.cold = ColdMemory(region)
        self.uploads = UploadsMemory(self.cold.buckets[region].objects)  # they lie in one bucket
        self.erasures = ErasuresMemory(self.warm)
        self.exports = ExportsMemory()
        self.export_files = ExportFilesMemory()
        self.erase_queue = QueueMemory()
        self.tell_queue = QueueMemory()
        self.export_queue = QueueMemory()
        self.archive_queue = QueueMemory()
        self.quotas = QuotasMemory(self.clock, UNLIMITED)
        self.own_quotas = QuotasMemory(self.clock, UNLIMITED)
        self.push = PushMemory()
        self.responder = ResponderMemory()
        self.services = Services(
            hot=self.hot,
            warm=self.warm,
            uploads=self.uploads,
            manifests=self.manifests,
            cold=self.cold,
            erasures=self.erasures,
            exports=self.exports,
            export_files=self.export_files,
            objects=self.cold,
            terms=Terms(regions=(region,)),
            erase_queue=self.erase_queue,
            tell_queue=self.tell_queue,
            export_queue=self.export_queue,
            archive_queue=self.archive_queue,
            due=self.due,
            replaced=self.replaced,
            quotas=self.quotas,
            own_quotas=self.own_quotas,
            push=self.push,
            clock=self.clock,
            sleep=self.sleep,
            region=region,
            responder=self.responder,
        )

    def sleep(self, seconds: float) -> None:
        """So much time passes, at once."""
        self.clock.ms += round(seconds * 1_000)

    # --- as a client --------------------------------------------------------------------------------------------

    def say(self, device: Device, action: str, **fields: Any) -> Frame:
        """Send a request over the device's connection; the reply."""
        request = {"action": action, "ref": "r", **fields}
        reply = self.post(device, json.dumps(request, ensure_ascii=False, separators=(",", ":")))
        assert reply["ref"] == "r"
        assert reply["type"] in {f"{action}.ok", "error"}
        assert reply.get("code") != "internal", reply
        return reply

    def ok(self, device: Device, action: str, **fields: Any) -> Frame:
        """Send a request that must succeed; the reply."""
        reply = self.say(device, action, **fields)
        assert reply["type"] == f"{action}.ok", reply
        return reply

    def post(self, device: Device, body: str, *, route: str | None = None, **context: Any) -> Frame:
        """Send any text; the reply. ``context`` replaces what the gateway says of it (``authorizer``, …)."""
        answer = self.invoke(message_event(device, body, route=route, **context))
        assert answer["statusCode"] == 200
        frame = answer["body"]
        assert len(frame.encode()) <= FRAME_BYTES_MAX
        reply: Frame = json.loads(frame)
        return reply

    def invoke(self, event: dict[str, Any]) -> dict[str, Any]:
        """Call the handler that the event's route leads to, as Lambda does."""
        canaries.current.note_event(event)
        bulkhead = BULKHEADS.get(event["requestContext"]["routeKey"], "connection")
        handler = importlib.import_module(f"handlers.{bulkhead}").handler
        answer: dict[str, Any] = handler(json.loads(json.dumps(event)), LambdaContext())
        return answer

    def frames(self, device: Device) -> list[Frame]:
        """The events that the device was sent, in order."""
        sent = self.push.frames_of(device.connection)
        assert all(len(frame) <= FRAME_BYTES_MAX for frame in sent)
        return [json.loads(frame) for frame in sent]

    def replace(self, **stores: Any) -> None:
        """Put other stores in place of some, for the handlers alone."""
        self.services = dataclasses.replace(self.services, **stores)

    def lose_hot(self) -> None:
        """The hot tier loses all that it holds."""
        self.hot._conversations.clear()

    # --- the usual beginnings -----------------------------------------------------------------------------------

    def new_id(self) -> str:
        """An id greater than all before: a millisecond passes."""
        self.clock.ms += 1
        return ids.mint(self.clock.ms)

    def conversation(self, owner: Device = PHONE, **fields: Any) -> str:
        """A new conversation; its id."""
        identifier: str = self.ok(owner, "conversation.create", conversation=self.new_id(), **fields)["conversation"][
            "id"
        ]
        return identifier

    def message(self, conversation: str, parent: str | None = None, text: str = "hello", **fields: Any) -> str:
        """A message under that parent, by the owner's phone unless ``by`` another; its id."""
        said = {"message": self.new_id(), "parent": parent, "role": "user", "parts": [text_part(text)]} | fields
        by = said.pop("by", PHONE)
        identifier: str = self.ok(by, "message.create", conversation=conversation, **said)["message"]["id"]
        return identifier

    def stream(self, conversation: str, parent: str | None = None, **fields: Any) -> Frame:
        """A new live stream under that parent, by the worker; its place: conversation, stream, epoch, offset."""
        said = {"message": self.new_id(), "parent": parent, "role": "assistant", "producer": "run-1"} | fields
        by = said.pop("by", WORKER)
        opened = self.ok(by, "stream.open", conversation=conversation, **said)
        return {"conversation": conversation} | {name: opened[name] for name in ("stream", "epoch", "offset")}

    def key(self, conversation: str, tenant: str = "acme") -> ConversationKey:
        """The conversation's key in the stores."""
        return ConversationKey(tenant, conversation)


class Answer:
    """A conversation with one question, and an answer to it that may be opened."""

    def __init__(self, house: House) -> None:
        self.house = house
        self.conversation = house.conversation()
        self.question = house.message(self.conversation)
        self.stream = house.new_id()

    def open(self, by: Device = WORKER, **fields: Any) -> Frame:
        """Try to open it; the reply."""
        said = {"message": self.stream, "parent": self.question, "role": "assistant", "producer": "run-1"} | fields
        return self.house.say(by, "stream.open", conversation=self.conversation, **said)

    def place(self, opened: Frame, offset: int) -> Frame:
        """Where to append or close."""
        return {"stream": opened["stream"], "epoch": opened["epoch"], "offset": offset}

    def append(self, opened: Frame, offset: int, text: str, by: Device = WORKER) -> Frame:
        """Append one piece of text; the reply."""
        ops = [["text", 0, text]]
        return self.house.say(
            by, "stream.append", conversation=self.conversation, ops=ops, **self.place(opened, offset)
        )

    def written(self, *texts: str, **fields: Any) -> Frame:
        """Open it and write that; what the opening said."""
        opened = self.open(**fields)
        for offset, text in enumerate(texts):
            assert self.append(opened, offset, text)["offset"] == offset + 1
        return opened

    def close(self, opened: Frame, offset: int, by: Device = WORKER, **fields: Any) -> Frame:
        """Close it; the reply."""
        said = {"status": "complete"} | self.place(opened, offset) | fields
        return self.house.say(by, "stream.close", conversation=self.conversation, **said)

    def resumed(self, epoch: int = 0, offset: int = 0) -> Frame:
        """A page of it."""
        return self.house.ok(
            WORKER, "stream.resume", conversation=self.conversation, stream=self.stream, epoch=epoch, offset=offset
        )

    def store_another(self) -> None:
        """Another message comes to stand under its id, past the hot tier: as of another region."""
        other = Message.new(
            id=self.stream,
            conversation=self.conversation,
            parent=self.question,
            role="assistant",
            status="complete",
            parts=text_parts("another"),
            metadata={},
        )
        assert self.house.warm.put_message("acme", StoredMessage(other, 1)) is None


def message_event(device: Device, body: str, *, route: str | None = None, **context: Any) -> dict[str, Any]:
    """A message as the gateway hands it over; its route is the body's action where there is such a route."""
    if route is None:
        try:
            action = json.loads(body)["action"]
        except (ValueError, TypeError, KeyError):
            action = None
        route = action if isinstance(action, str) and action in BULKHEADS else "$default"
    request = _context(device, route, "MESSAGE") | {"messageId": "bWVzc2FnZQ=="} | context
    return {"requestContext": request, "body": body, "isBase64Encoded": False}


def connect_event(device: Device, *, headers: dict[str, str] | None = None, **context: Any) -> dict[str, Any]:
    """A handshake that the authorizer has let through."""
    request = _context(device, "$connect", "CONNECT") | context
    return {"headers": headers or {}, "requestContext": request, "isBase64Encoded": False}


def disconnect_event(device: Device) -> dict[str, Any]:
    """The end of a connection."""
    return {"headers": {}, "requestContext": _context(device, "$disconnect", "DISCONNECT"), "isBase64Encoded": False}


def _context(device: Device, route: str, kind: str) -> dict[str, Any]:
    return {
        "routeKey": route,
        "eventType": kind,
        "messageDirection": "IN",
        "stage": "test",
        "requestId": "cmVxdWVzdA==",
        "extendedRequestId": "cmVxdWVzdA==",
        "connectedAt": START_MS,
        "requestTimeEpoch": START_MS,
        "domainName": "example.execute-api.eu-central-1.amazonaws.com",
        "apiId": "example",
        "identity": {"sourceIp": "127.0.0.1"},
        "connectionId": device.connection,
        "authorizer": device.vouched(),
    }


def text_part(text: str) -> dict[str, str]:
    """A part of text."""
    return {"type": "text", "text": text}


@contextmanager
def serving(house: House) -> Iterator[House]:
    """The handlers serve from this house meanwhile."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(container, "services", lambda: house.services)
        patch.setenv("POWERTOOLS_SERVICE_NAME", "threadkeep-test")
        patch.setenv("POWERTOOLS_METRICS_NAMESPACE", "Threadkeep")
        yield house


@pytest.fixture
def house() -> Iterator[House]:
    """A new house, served."""
    with serving(House()) as served:
        yield served
