"""How much passes the gateway at once."""

from __future__ import annotations

from typing import Final

from botocore.exceptions import ClientError

from smoke.checks.observing import FAILING
from smoke.ground import Ground
from smoke.outcome import Outcome, failed, shown
from smoke.raw import fate, frame
from smoke.registry import check
from stacks import naming
from threadkeep_client.frames import FRAME_BYTES_MAX

_KIB: Final = 1024
_TOO_BIG: Final = 1009
_FRAME_BYTES: Final = 33 * _KIB
_PIECE_BYTES: Final = 30 * _KIB
_INVOKE_BYTES: Final = 7 * _KIB * _KIB
_REFUSED: Final = {"RequestEntityTooLargeException", "RequestTooLargeException", "413"}


def _ping(size: int) -> str:
    """A ping of so many bytes."""
    bare = len(frame("ping", ref="smoke", padding=""))
    return frame("ping", ref="smoke", padding="a" * (size - bare))


@check("frame-24k", turn="alone")
async def our_largest_frame_passes(ground: Ground) -> Outcome:
    """A frame of 24 KiB is ours to use."""
    async with ground.socket() as socket:
        seen = await fate(socket, _ping(FRAME_BYTES_MAX))
    if seen == "ping.ok":
        return shown(f"a frame of {FRAME_BYTES_MAX} bytes was answered", frame_bytes=FRAME_BYTES_MAX)
    return failed(f"a frame of {FRAME_BYTES_MAX} bytes: {seen}")


@check("frame-limit", turn="alone")
async def a_frame_beyond_32_kib_closes(ground: Ground) -> Outcome:
    """One frame of 33 KiB."""
    async with ground.socket() as socket:
        seen = await fate(socket, _ping(_FRAME_BYTES))
    text = f"a frame of {_FRAME_BYTES} bytes: {seen}"
    return shown(text) if seen == _TOO_BIG else failed(text)


@check("message-limit", turn="alone")
async def a_message_beyond_128_kib_closes(ground: Ground) -> Outcome:
    """Fragments of 30 KiB each: four of them are a message that passes, five are not."""
    seen = []
    for count in (4, 5):
        text = _ping(count * _PIECE_BYTES)
        pieces = [text[start : start + _PIECE_BYTES] for start in range(0, len(text), _PIECE_BYTES)]
        async with ground.socket() as socket:
            seen.append(await fate(socket, pieces))
    text = f"120 KiB in fragments: {seen[0]}; 150 KiB: {seen[1]}"
    return shown(text) if seen[0] == "too_large" and seen[1] == _TOO_BIG else failed(text)


@check("invoke-payload-limit")
async def lambda_refuses_a_payload_beyond_6_mb(ground: Ground) -> Outcome:
    """Refused before the function runs; where it is not, the function fails on an event that it cannot read."""
    name = naming.function(ground.target.stage, FAILING)
    try:
        await ground.ask("lambda", "invoke", FunctionName=name, Payload=b'{"padding":"' + b"a" * _INVOKE_BYTES + b'"}')
    except ClientError as error:
        code, status = error.response["Error"]["Code"], error.response["ResponseMetadata"]["HTTPStatusCode"]
        if code in _REFUSED or status == 413:  # noqa: PLR2004 -- content too large
            return shown(f"7 MiB were refused with {code}")
        return failed(f"7 MiB were refused with {code}")
    return failed("7 MiB were taken")
