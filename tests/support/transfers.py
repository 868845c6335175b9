"""What a client moves in more than one request: uploads, messages past a frame, exports."""

from __future__ import annotations

import hashlib
import json
from typing import Any

import msgspec

from tests.support.house import LAPTOP, PHONE, Device, Frame, House
from threadkeep.domain import ops
from threadkeep.domain.exports import ExportJob
from threadkeep.domain.json_values import encode
from threadkeep.usecases.exporting import make

MAKING_MS = 10 * 60_000


def as_json(value: Any) -> bytes:
    """As clients write JSON: without needless escapes or spaces."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()


def upload(house: House, conversation: str, content: bytes, *, by: Device = PHONE) -> dict[str, Any]:
    """Upload a content; its ``ref``, ``bytes`` and ``sha256``, as a `blob` part names them."""
    said = {"bytes": len(content), "sha256": hashlib.sha256(content).hexdigest()}
    told = house.ok(by, "blob.create", conversation=conversation, **said)["upload"]
    assert house.uploads.put(told["url"], told["headers"], content)
    return {"ref": told["ref"]} | said


def send_large(house: House, conversation: str, parts: Any, **fields: Any) -> Frame:
    """Send a message by an upload of its parts; the message as the reply shows it."""
    by = fields.pop("by", PHONE)
    ref = upload(house, conversation, as_json(parts), by=by)["ref"]
    said = {"parent": None, "role": "user", "message": house.new_id(), "fork": True} | fields
    message: Frame = house.ok(by, "message.create", conversation=conversation, parts={"ref": ref}, **said)["message"]
    return message


def read_parts(house: House, conversation: str, message: str, *, by: Device = LAPTOP) -> Any:
    """A settled message's parts, page by page."""
    assembly = ops.Assembly()
    epoch = offset = 0
    while True:
        page = house.ok(by, "stream.resume", conversation=conversation, stream=message, epoch=epoch, offset=offset)
        if "parts" in page.get("message", {}):
            return page["message"]["parts"]
        assembly.apply(msgspec.json.decode(encode(page["ops"]), type=list[ops.PieceOp]))
        epoch, offset = page["epoch"], page["offset"]
        if not page["more"]:
            return json.loads(encode(assembly.parts()))


def read_all(house: House, conversation: str, *, by: Device = LAPTOP) -> list[Frame]:
    """All messages of every branch, oldest first."""
    found: list[Frame] = []
    cursor: dict[str, str] = {}
    while True:
        page = house.ok(by, "message.list", conversation=conversation, leaf="all", limit=100, **cursor)
        found += page["messages"]
        if page["cursor"] is None:
            return found[::-1]
        cursor = {"cursor": page["cursor"]}


def export(house: House, conversation: str, *, form: str = "jsonl", by: Device = PHONE) -> str:
    """The text of an export of one conversation."""
    asked = house.ok(by, "export.create", format=form, conversation=conversation)["export"]
    until_ms = house.clock.now_ms() + MAKING_MS
    assert make(house.services, ExportJob(tenant=by.tenant, export=asked["id"]), until_ms=until_ms) == "done"
    return house.export_files.files[by.tenant, asked["id"]].decode()
