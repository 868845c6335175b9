"""The scripts of the hot tier: each verb is one, so that judging and writing are one step."""

from __future__ import annotations

import hashlib
from functools import cache
from importlib import resources

import msgspec


class Script(msgspec.Struct, frozen=True):
    """A script as Valkey takes it.

    Attributes:
        name: of its file, for messages.
        text: the whole source.
        sha: by which Valkey knows it once it has run (SHA-1 of the text, as ``EVALSHA`` has it).
    """

    name: str
    text: str
    sha: str


@cache
def script(name: str) -> Script:
    """The script of that name, read once: its first line (the flags), the prelude, its body."""
    folder = resources.files(__name__)
    flags, body = (folder / f"{name}.lua").read_text("utf-8").split("\n", 1)
    prelude = (folder / "prelude.lua").read_text("utf-8")
    text = f"{flags}\n{prelude}\n{body}"
    return Script(name, text, hashlib.sha1(text.encode(), usedforsecurity=False).hexdigest())
