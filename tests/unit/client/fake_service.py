"""The service behind `fake_server`: conversations, messages and streams in dicts.

Streams are judged by the service's own reference (`threadkeep.domain.streams`), so that the client is tested against
the verdicts that it will meet.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any, cast

import msgspec

from tests.unit.client.fake_store import FakeStore
from threadkeep.domain import ops as reference_ops
from threadkeep.domain import streams
from threadkeep.domain.bounds import FRAME_BYTES_MAX, OPS_BYTES_MAX, PAGE_OPS_BYTES_MAX, UPLOAD_BYTES_MAX
from threadkeep.domain.model import Status

Json = dict[str, Any]
Tell = Callable[[str, Json], Awaitable[None]]
_ENVELOPE_BYTES = 512


class Refused(Exception):  # noqa: N818 -- an answer
    def __init__(self, code: str, *, retryable: bool = False, **more: Any) -> None:
        super().__init__(code)
        self.frame = {"type": "error", "code": code, "message": "a sentence", "retryable": retryable, **more}


@dataclass
class Kept:
    """A settled message, and the epoch that reading it as a log has."""

    message: Json
    epoch: int


@dataclass
class FakeService:
    """Carries requests out; `tell` sends an event to a conversation's viewers."""

    tell: Tell
    lease_ms: int = 600_000
    hot_away: bool = False
    store: FakeStore | None = None
    responder: Callable[[Json], None] | None = None
    conversations: dict[str, Json] = field(default_factory=dict)
    messages: dict[str, Kept] = field(default_factory=dict)
    streams: dict[str, streams.Stream] = field(default_factory=dict)
    homes: dict[str, str] = field(default_factory=dict)  # the conversation of each stream
    _newest: dict[str, str] = field(default_factory=dict)  # of each conversation's messages

    async def carry_out(self, request: Json) -> Json:
        """The fields of the `.ok` reply."""
        action, conversation = request["action"], request.get("conversation")
        if conversation is not None and action != "conversation.create" and conversation not in self.conversations:
            raise Refused("not_found")
        carry_out = getattr(self, "_" + action.replace(".", "_"), None)
        if carry_out is None:
            raise Refused("bad_request")
        return cast("Json", await carry_out(request))

    # --- conversations -------------------------------------------------------------------------------------------

    async def _ping(self, _: Json) -> Json:
        return {"now": "2026-11-29T12:00:00.000Z"}

    async def _conversation_create(self, request: Json) -> Json:
        name = request["conversation"]
        known = name in self.conversations
        now = "2026-11-29T12:00:00.000Z"
        fresh = {"id": name, "owner": "u", "metadata": request.get("metadata", {}), "title": request.get("title")}
        fresh |= {"created_at": now, "active_at": now}
        self.conversations.setdefault(name, fresh)
        return {"conversation": self.conversations[name], **({"duplicate": True} if known else {})}

    async def _conversation_get(self, request: Json) -> Json:
        return {"conversation": self.conversations[request["conversation"]]}

    async def _conversation_update(self, request: Json) -> Json:
        conversation = self.conversations[request["conversation"]]
        conversation |= {name: request[name] for name in ("title", "metadata") if name in request}
        await self.tell(conversation["id"], {"type": "conversation.updated"})
        return {"conversation": conversation}

    async def _conversation_list(self, request: Json) -> Json:
        names = sorted(self.conversations)
        start = int(request.get("cursor", 0))
        end = start + request["limit"]
        items = [self.conversations[name] for name in names[start:end]]
        return {"items": items, "cursor": str(end) if end < len(names) else None}

    async def _conversation_subscribe(self, request: Json) -> Json:
        leaf = self.leaf(request["conversation"])
        return {
            "conversation": request["conversation"],
            "leaf": leaf,
            "live": self._live(request["conversation"]),
            "lease_ms": self.lease_ms,
        }

    async def _conversation_unsubscribe(self, _: Json) -> Json:
        return {}

    def leaf(self, conversation: str) -> str | None:
        newest = self._newest.get(conversation)
        return max(
            [*([newest] if newest else []), *(told["stream"] for told in self._live(conversation))], default=None
        )

    def _live(self, conversation: str) -> list[Json]:
        return [
            {"stream": name, "epoch": stream.epoch, "offset": len(stream.log), "region": "local"}
            | {"parent": stream.facts.parent, "role": stream.facts.role}
            for name, stream in self.streams.items()
            if not stream.settled and self.homes[name] == conversation
        ]

    # --- messages ------------------------------------------------------------------------------------------------

    async def _message_create(self, request: Json) -> Json:
        known = self.messages.get(request["message"])
        if known is not None:
            return {"message": fit(known.message), "duplicate": True}
        conversation = request["conversation"]
        if not request.get("fork") and request["parent"] != self.leaf(conversation):
            raise Refused("conflict", reason="stale_leaf", detail={"leaf": self.leaf(conversation)})
        names = ("conversation", "parent", "role", "parts", "metadata", "model", "status", "reply")
        told = {name: request[name] for name in names if name in request}
        message = self.put(request["message"], **told | {"parts": self._parts(request["parts"])})
        await self.tell(conversation, {"type": "message.created", "message": fit(message)})
        if "reply" in request and "status" not in request and self.responder is not None:
            self.responder(request)
        return {"message": fit(message)}

    async def _message_respond(self, request: Json) -> Json:
        if self.responder is None:
            raise Refused("conflict", reason="no_responder")
        self.responder(request)
        return {"reply": request["reply"]}

    async def _blob_create(self, request: Json) -> Json:
        if request["bytes"] > UPLOAD_BYTES_MAX:
            raise Refused("too_large")
        if self.store is None:
            raise Refused("unavailable", retryable=True)
        return self.store.tell(request)

    def _parts(self, said: Any) -> Any:
        """The parts, or those in the upload that is named in their place."""
        if not isinstance(said, dict):
            return said
        content = None if self.store is None else self.store.objects.get(said["ref"])
        if content is None:
            raise Refused("conflict", reason="upload_missing")
        return json.loads(content)

    def put(self, name: str, *, epoch: int = 1, **fields: Any) -> Json:
        """Store a message."""
        message = {
            "id": name,
            "status": "complete",
            "created_at": "2026-11-29T12:00:00.000Z",
            "metadata": {},
            "tokens": {"count": 1, "estimated": True},
            **fields,
        }
        self.messages[name] = Kept(message, epoch)
        conversation = message.get("conversation", "")
        self._newest[conversation] = max(name, self._newest.get(conversation, name))
        return message

    async def _message_list(self, request: Json) -> Json:
        found = {name: kept.message for name, kept in self.messages.items()}
        found = {name: message for name, message in found.items() if message["conversation"] == request["conversation"]}
        if request.get("leaf") != "all":
            path, name = {}, request.get("leaf") or self.leaf(request["conversation"])
            if name in self.streams and name not in found:
                name = self.streams[name].facts.parent
            if name is not None and name not in found:
                raise Refused("not_found")
            while name is not None:
                path[name] = found[name]
                name = found[name]["parent"]
            found = path
        floor, ceiling = request.get("after", ""), request.get("cursor", "g")
        names = sorted((name for name in found if floor < name < ceiling), reverse=True)
        page = names[: request["limit"]]
        return {
            "messages": [fit(found[name]) for name in page],
            "cursor": page[-1] if len(names) > len(page) else None,
            "tier": "warm",
        }

    # --- streams: without the hot tier only a close that says everything --------------------------------------------

    def _ask_hot(self) -> None:
        if self.hot_away:
            raise Refused("unavailable", retryable=True)

    async def _stream_open(self, request: Json) -> Json:
        name = request["message"]
        self._ask_hot()
        if name in self.messages:
            raise Refused("closed", detail={"settled": fit(self.messages[name].message)})
        writer, held, now_ms = streams.Writer("p", request["producer"]), request.get("epoch"), self.now_ms()
        stream = self.streams.get(name)
        if stream is None:
            leaf = self.leaf(request["conversation"])
            if held is None and not request.get("fork") and request["parent"] != leaf:
                raise Refused("conflict", reason="stale_leaf", detail={"leaf": leaf})
            epoch = streams.next_epoch(known=0, held=held or 0, now_ms=now_ms)
            facts = streams.Facts(parent=request["parent"], role=request["role"], model=request.get("model"))
            stream = streams.Stream(epoch=0, writer=writer, facts=facts, lease_ms=0, silent_ms=0, long_ms=0, log=[])
            verdict: Any = streams.Reopen(epoch, keep_log=False)
        else:
            takeover = request.get("takeover", False)
            verdict = streams.judge_open(stream, writer=writer, held=held, takeover=takeover, now_ms=now_ms)
        if not isinstance(verdict, streams.Reopen):
            raise self._refusal(verdict, name)
        fresh = stream.epoch != verdict.epoch
        stream.epoch, stream.writer = verdict.epoch, writer
        stream.log = stream.log if verdict.keep_log else []
        self.streams[name] = stream
        self.homes[name] = request["conversation"]
        if fresh:
            opened = {"type": "stream.opened", "stream": name, "epoch": stream.epoch, "parent": stream.facts.parent}
            await self.tell(request["conversation"], opened | {"role": stream.facts.role, "region": "local"})
        return {"stream": name, "epoch": stream.epoch, "offset": len(stream.log)}

    def now_ms(self) -> int:
        return int(asyncio.get_running_loop().time() * 1000)

    async def _stream_append(self, request: Json) -> Json:
        name = request["stream"]
        self._ask_hot()
        stream = self.streams.get(name)
        ops = json.dumps(request["ops"], ensure_ascii=False, separators=(",", ":")).encode()
        if len(ops) > OPS_BYTES_MAX:
            raise Refused("too_large")
        reference_ops.decode(ops)
        verdict = streams.judge_append(
            stream,
            principal="p",
            epoch=request["epoch"],
            offset=request["offset"],
            ops=ops,
            now_ms=self.now_ms(),
        )
        if not isinstance(verdict, (streams.Accepted, streams.Duplicate)) or stream is None:
            raise self._refusal(verdict, name)
        if isinstance(verdict, streams.Accepted):
            stream.log.append(ops)
        delta = {"type": "stream.delta", "stream": name, "epoch": stream.epoch, "at": request["offset"]}
        await self.tell(request["conversation"], delta | {"next": verdict.next, "ops": request["ops"]})
        return {"offset": verdict.next}

    async def _stream_close(self, request: Json) -> Json:
        name, epoch, offset = request["stream"], request["epoch"], request["offset"]
        if self.hot_away and "body" in request:
            names = ("conversation", "parent", "role", "model", "metadata", "status", "usage", "error")
            told = {name: request[name] for name in names if name in request}
            return {"message": fit(self.put(name, parts=self._parts(request["body"]), **told))}
        self._ask_hot()
        stream, seal = self.streams.get(name), streams.Seal(status=request["status"])
        verdict = streams.judge_close(stream, principal="p", epoch=epoch, offset=offset, seal=seal)
        if not isinstance(verdict, streams.Seal) or stream is None:
            raise self._refusal(verdict, name)
        stream.sealed_by = (epoch, offset)
        extra = {name: request[name] for name in ("usage", "error") if name in request}
        message = await self.settle(request["conversation"], name, request["status"], **extra)
        return {"message": fit(message)}

    def _refusal(self, verdict: object, name: str) -> Refused:
        match verdict:
            case streams.Unknown():
                return Refused("not_found")
            case streams.Fenced():
                return Refused("fenced")
            case streams.Gap(expected):
                return Refused("gap", detail={"expected": expected})
            case streams.Held():
                return Refused("conflict", reason="held")
            case streams.Closed():
                kept = self.messages.get(name)
                return Refused("closed", detail={"settled": fit(kept.message)} if kept else {})
        return Refused("conflict", reason="diverged")

    async def settle(self, conversation: str, name: str, status: Status, **extra: Any) -> Json:
        """End a stream, as its producer, its reader or the sweeper would."""
        stream = self.streams[name]
        if stream.seal is None:
            stream.seal = streams.Seal(status=status)
            assembly = reference_ops.Assembly()
            for ops in stream.log:
                assembly.apply(reference_ops.decode(ops))
            parts = msgspec.json.decode(msgspec.json.encode(reference_ops.settled(assembly.parts())))
            facts = {"parent": stream.facts.parent, "role": stream.facts.role}
            facts |= {"model": stream.facts.model} if stream.facts.model else {}
            extra |= {"conversation": conversation, "parts": parts, "status": status, **facts}
            self.put(name, epoch=stream.epoch + 1, **extra)
            stream.log, stream.settled = [], True
        message = self.messages[name].message
        await self.tell(conversation, {"type": "message.created", "message": fit(message)})
        return message

    async def _stream_resume(self, request: Json) -> Json:
        name = request["stream"]
        kept, stream = self.messages.get(name), self.streams.get(name)
        if kept is not None:
            log, epoch = as_log(kept.message["parts"]), kept.epoch
            told: Json = {"state": "settled", "message": fit(kept.message)}
        elif stream is not None:
            log, epoch, told = stream.log, stream.epoch, {"state": "live"}
        else:
            raise Refused("not_found")
        at = request["offset"] if request["epoch"] == epoch and request["offset"] <= len(log) else 0
        end, size = at, 0
        while end < len(log) and (end == at or size + len(log[end]) <= PAGE_OPS_BYTES_MAX):
            size += len(log[end])
            end += 1
        said = [op for ops in log[at:end] for op in json.loads(ops)]
        if kept is None:
            merged = reference_ops.merge(reference_ops.decode(msgspec.json.encode(said)))
            said = json.loads(msgspec.json.encode(merged))
        page = {"epoch": epoch, "at": at, "ops": said}
        return page | {"offset": end, "more": end < len(log), **told}


def as_log(parts: list[Json]) -> list[bytes]:
    raw = tuple({name: msgspec.Raw(json.dumps(value).encode()) for name, value in part.items()} for part in parts)
    return [msgspec.json.encode(piece) for piece in reference_ops.pieces(raw)]


def fit(message: Json) -> Json:
    """The message as it travels: without parts where they do not fit a frame."""
    if len(json.dumps(message, ensure_ascii=False).encode()) + _ENVELOPE_BYTES <= FRAME_BYTES_MAX:
        return message
    short = {name: value for name, value in message.items() if name != "parts"}
    return short | {"bytes": len(json.dumps(message["parts"], ensure_ascii=False).encode())}
