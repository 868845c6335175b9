"""A world of three owners, and what every field of every request is: what the tests of access are generated from."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from typing import Any, Final, Literal

import msgspec
from msgspec import inspect

from tests.support.conversations import tombstone
from tests.support.house import BULKHEADS, PHONE, START_MS, WORKER, Device, Frame, House, message_event
from threadkeep.domain import ids
from threadkeep.domain.bounds import HEAD_CACHE_MS
from threadkeep.domain.commands import COMMANDS, Command
from threadkeep.domain.uploads import Upload

BY_ACTION: Final[dict[str, type[Command]]] = {str(command.__struct_config__.tag): command for command in COMMANDS}
SERVED: Final = sorted(BULKHEADS)
BOB: Final = Device(connection="bob=", user="bob")
UMBRELLA: Final = Device(connection="umbrella=", tenant="umbrella")
"""Another tenant's, with a user of the same name."""

Kind = Literal["names", "mints", "waits", "turn", "bounds", "uploads", "plain"]
FIELDS: Final[dict[str, Kind]] = {
    "conversation": "names",
    "stream": "names",
    "leaf": "names",
    "erasure": "names",
    "export": "names",
    "blob": "names",
    "message": "mints",
    "reply": "mints",
    "parent": "turn",
    "before": "bounds",
    "after": "bounds",
    "cursor": "bounds",
    "parts": "uploads",
    "body": "uploads",
    "ops": "uploads",
    **dict.fromkeys(
        (
            "ref",
            "title",
            "metadata",
            "retention_days",
            "limit",
            "role",
            "fork",
            "model",
            "status",
            "max_messages",
            "max_tokens",
            "format",
            "bytes",
            "sha256",
            "media_type",
            "producer",
            "takeover",
            "epoch",
            "offset",
            "usage",
            "error",
        ),
        "plain",
    ),
}
"""What a field is: ``names`` something that must be there and the caller's · ``mints`` an id · ``waits`` for something
to come · is judged by the ``turn`` · ``bounds`` a page by a place in it, whatever lies there · may name ``uploads`` of
the conversation · names nothing (``plain``)."""
EXCEPTIONS: Final[dict[tuple[str, str], Kind]] = {
    ("conversation.create", "conversation"): "mints",
    ("stream.cancel", "stream"): "waits",  # for its opening
}


def kind_of(action: str, field: str) -> Kind:
    """What the field of the action is. A KeyError says that nobody has thought about it yet."""
    return EXCEPTIONS.get((action, field)) or FIELDS[field]


def fields_of(action: str) -> list[str]:
    """All fields of an action, as they are called on the wire."""
    info = inspect.type_info(BY_ACTION[action])
    assert isinstance(info, inspect.StructType)
    return [field.encode_name for field in info.fields]


def id_fields(action: str) -> list[str]:
    """The fields of an action that take an id."""
    info = inspect.type_info(BY_ACTION[action])
    assert isinstance(info, inspect.StructType)
    return [field.name for field in info.fields if any(_is_id(option) for option in _options(field.type))]


def _options(kind: inspect.Type) -> tuple[inspect.Type, ...]:
    return kind.types if isinstance(kind, inspect.UnionType) else (kind,)


def _is_id(kind: inspect.Type) -> bool:
    return isinstance(kind, inspect.StrType) and "-7" in (kind.pattern or "")


def of_kind(*kinds: Kind) -> list[tuple[str, str]]:
    """Every action and field of these kinds."""
    return [(action, field) for action in SERVED for field in fields_of(action) if kind_of(action, field) in kinds]


ID_FIELDS: Final = [(action, field) for action in SERVED for field in id_fields(action)]
NOT_FOUND: Final = (
    '{"type":"error","ref":"r","code":"not_found","message":"Nothing here goes by that id.","retryable":false}'
)


class World:
    """Three conversations of three owners, each with a question and a live answer."""

    def __init__(self, house: House) -> None:
        self.house = house
        self.own = self._talk(PHONE, WORKER)
        self.bobs = self._talk(BOB, WORKER)
        self.umbrellas = self._talk(UMBRELLA, msgspec.structs.replace(WORKER, tenant="umbrella"))
        self.deleted = self._talk(PHONE, WORKER)
        for talk, owner in ((self.own, PHONE), (self.bobs, BOB), (self.umbrellas, UMBRELLA), (self.deleted, PHONE)):
            talk["export"] = house.ok(owner, "export.create", format="jsonl")["export"]["id"]
        expired = house.exports._exports.pop(("acme", self.deleted["export"]))
        house.exports.release("acme", expired)
        house.warm.gone[house.key(self.deleted["conversation"])] = tombstone("ann")
        house.clock.ms += HEAD_CACHE_MS

    def _talk(self, owner: Device, worker: Device) -> Frame:
        conversation = self.house.conversation(owner)
        question = self.house.message(conversation, by=owner)
        place = self.house.stream(conversation, question, by=worker)
        erased = self.house.conversation(owner)
        self.house.ok(owner, "conversation.delete", conversation=erased)
        named = {"parent": question, "leaf": question, "erasure": erased, "blob": self._blob(owner, place)}
        return place | named

    def _blob(self, owner: Device, place: Frame) -> str:
        """An upload that a message of the conversation keeps; its ref."""
        content = place["conversation"].encode()  # another in each: a ref says what it is of
        said = {"bytes": len(content), "sha256": hashlib.sha256(content).hexdigest()}
        upload = self.house.ok(owner, "blob.create", conversation=place["conversation"], **said)["upload"]
        assert self.house.uploads.put(upload["url"], upload["headers"], content)
        part = {"type": "blob", **said, "ref": upload["ref"]}
        self.house.message(place["conversation"], parts=[part], fork=True, by=owner)
        ref: str = upload["ref"]
        return ref

    def request(self, action: str) -> Frame:
        """What the action needs at least, all of it one's own."""
        info = inspect.type_info(BY_ACTION[action])
        assert isinstance(info, inspect.StructType)
        samples = self.own | {
            "role": "user",
            "parts": [],
            "producer": "run-9",
            "ops": [],
            "status": "complete",
            "bytes": 1,
            "sha256": "0" * 64,
            "format": "jsonl",
            "reply": ids.mint(START_MS, after=self.own["parent"]),
        }
        return {field.encode_name: samples[field.name] for field in info.fields if field.required}

    def contents(self) -> str:
        """All that is kept and all that was told, to see that it has not changed."""
        house = self.house
        hot = [
            (key, talk.streams, talk.leases, talk.stopped)
            for key, talk in house.hot._conversations.items()
            if talk.streams or talk.leases or talk.stopped
        ]
        warm = (house.warm._heads, house.warm.messages, house.warm.gone, house.erasures.lines)
        jobs = (house.export_queue.jobs, house.tell_queue.jobs, house.erase_queue.jobs, house.responder.requests)
        objects = (sorted(house.uploads.objects), house.exports._exports, house.export_files.files)
        return repr((warm, hot, house.push.frames, objects, jobs))

    def minted(self) -> str:
        """A new id, greater than all before."""
        return self.house.new_id()

    def naming_upload(self, field: str, ref: str) -> Frame:
        """The field so that it names the upload, with all that it needs beside it."""
        upload = Upload.from_ref(ref)
        assert upload is not None
        part = {"type": "blob", "bytes": upload.size_bytes, "sha256": upload.sha256, "ref": ref}
        if field == "ops":
            return {"ops": [["part", 0, part]]}
        if field == "body":  # counts where the hot tier does not know the stream
            return {"body": [part], "parent": self.own["parent"], "role": "assistant", "stream": self.house.new_id()}
        return {field: [part]}

    def never(self, field: str) -> str:
        """What has never been there, of the form that the field takes."""
        return Upload(1, "0" * 64).to_ref() if field == "blob" else ids.mint(START_MS)


def device_for(action: str) -> Device:
    """A person where a person may do that, else a server."""
    return PHONE if "chat" in BY_ACTION[action].scopes else WORKER


def event(device: Device, action: str, request: Frame) -> dict[str, Any]:
    """The request as the gateway hands it over."""
    return message_event(device, json.dumps({"action": action, "ref": "r", **request}))


def foreign(world: World, action: str, field: str) -> Iterator[tuple[str, str]]:
    """What a field may name that is not the caller's or not there, each with what it is."""
    yield "another tenant's", world.umbrellas[field]
    yield "never been", world.never(field)
    # Its owner is given the same erasure again, and may ask after it.
    if action != "conversation.delete" and field != "erasure":
        yield "deleted", world.deleted[field]
    if device_for(action) is PHONE or field != "conversation":  # a server produces for every user of its tenant
        yield "another user's", world.bobs[field]
    if field == "stream":
        yield "a conversation's", world.own["conversation"]
    if field == "erasure":
        yield "not deleted", world.own["conversation"]
