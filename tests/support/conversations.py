"""Conversations and messages to store, with awkward names and awkward JSON."""

from __future__ import annotations

import base64
import random
from pathlib import Path
from typing import Any, Final

from msgspec import Raw

from threadkeep.domain import ids, times
from threadkeep.domain.bounds import ERASURE_SECOND_PASS_MS
from threadkeep.domain.erasure import Tombstone
from threadkeep.domain.json_values import JsonObject, encode, read_object
from threadkeep.domain.model import Conversation, ConversationKey, Message
from threadkeep.domain.ops import Parts

NOW_MS: Final = 1_790_000_000_000
ROUNDTRIP_VALUES: Final = Path(__file__).parents[1] / "data" / "roundtrip-values.json"


def conversation(owner: str = "ada", *, now_ms: int = NOW_MS, **fields: Any) -> Conversation:
    """A new conversation of that time."""
    at = times.to_rfc3339(now_ms)
    return Conversation(
        **{
            "id": ids.mint(now_ms),
            "owner": owner,
            "metadata": {},
            "created_at": at,
            "active_at": at,
            **fields,
        }
    )


def message(key: ConversationKey, parts: Parts | None = None, *, now_ms: int = NOW_MS, **fields: Any) -> Message:
    """A new message of that time; a short one unless told."""
    return Message.new(
        **{
            "id": ids.mint(now_ms),
            "conversation": key.conversation,
            "parent": None,
            "role": "user",
            "status": "complete",
            "parts": text_parts("hello") if parts is None else parts,
            "metadata": {},
            **fields,
        }
    )


def tombstone(owner: str = "ada", *, now_ms: int = NOW_MS, **fields: Any) -> Tombstone:
    """That a conversation was deleted at that time."""
    return Tombstone(
        **{
            "owner": owner,
            "erased_at": times.to_rfc3339(now_ms),
            "reason": "owner",
            "regions": ("eu-central-1",),
            "pitr_days": 35,
            "second_pass_ms": now_ms + ERASURE_SECOND_PASS_MS,
            **fields,
        }
    )


def text_parts(text: str) -> Parts:
    """One text."""
    return ({"type": Raw(b'"text"'), "text": Raw(encode(text))},)


def noise(characters: int, seed: int = 0) -> str:
    """ASCII that hardly compresses (to three quarters), the same at every run."""
    source = random.Random(seed)  # noqa: S311 -- nothing secret
    return base64.b64encode(source.randbytes(characters)).decode()[:characters]


def noise_of_three_bytes(characters: int) -> str:
    """CJK ideographs at random, the same at every run: three bytes each in UTF-8, and hardly to be compressed."""
    source = random.Random(0)  # noqa: S311 -- nothing secret
    return "".join(chr(source.randrange(0x4E00, 0x9FFF)) for _ in range(characters))


def awkward_object() -> JsonObject:
    """The values that stores are known to change, as they were written, and some more."""
    return read_object(ROUNDTRIP_VALUES.read_bytes()) | read_object(
        b'{"huge":1e400,"nul\\u0000name":"a\\u0000b","":"","list":[],"of_empty":[""],"map":{},"spaced":[1, 1.0, 1e0],'
        b'"tenth":0.1,"exact":9007199254740993}'
    )
