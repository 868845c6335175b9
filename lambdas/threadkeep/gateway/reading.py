"""From a text frame to a command: cleaned, bounded, decoded. What fails here has read no store."""

from __future__ import annotations

from functools import reduce
from operator import or_
from typing import Any, Final

import msgspec
from msgspec import Raw

from threadkeep.domain.bounds import FRAME_BYTES_MAX, JSON_DEPTH_MAX, NAME_CHARS_MAX
from threadkeep.domain.commands import COMMANDS, Command
from threadkeep.domain.errors import Refused
from threadkeep.domain.json_text import clean, measure
from threadkeep.domain.json_values import complaint, read_text

_COMMAND: Final[msgspec.json.Decoder[Any]] = msgspec.json.Decoder(reduce(or_, COMMANDS))
_ENVELOPE: Final = msgspec.json.Decoder(dict[str, Raw])


def read_envelope(body: str) -> tuple[bytes, str, str | None]:
    """The cleaned frame, its action and its ``ref``: as much as can be said of any JSON object.

    Action and ref are empty and None where there are none to be read.
    """
    frame = clean(body.encode("utf-8", "surrogatepass"))
    if measure(frame).depth > JSON_DEPTH_MAX:
        return frame, "", None
    try:
        envelope = _ENVELOPE.decode(frame)
    except msgspec.DecodeError:
        return frame, "", None
    ref = read_text(envelope.get("ref"))
    return frame, read_text(envelope.get("action")) or "", ref if ref is None or len(ref) <= NAME_CHARS_MAX else None


def read_command(frame: bytes) -> Command:
    """The command in a cleaned frame.

    Raises:
        Refused: ``bad_request``, naming the field; ``too_large``.
    """
    if measure(frame).depth > JSON_DEPTH_MAX:
        raise Refused("bad_request", f"JSON may be nested {JSON_DEPTH_MAX} deep at most.")
    try:
        command: Command = _COMMAND.decode(frame)
    except msgspec.ValidationError as error:
        raise Refused("bad_request", complaint(error, root="the frame", of=COMMANDS)) from error
    except msgspec.DecodeError as error:
        raise Refused("bad_request", "The frame must be a JSON object in UTF-8.") from error
    if len(frame) > FRAME_BYTES_MAX:
        raise Refused("too_large", f"A frame takes at most {FRAME_BYTES_MAX} bytes of UTF-8.")
    return command
