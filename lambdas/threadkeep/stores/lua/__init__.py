"""The scripts of the hot tier: each verb is one, so that judging and writing are one step."""

from __future__ import annotations

import hashlib
from functools import cache
from importlib import resources
from typing import Final

import msgspec

_WITH: Final = "-- with "


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
    """The script of that name, read once.

    Its source is its first line (the flags), the prelude, what its second line asks for (``-- with leaf``: the rules
    of ``leaf.lua``), its body.
    """
    folder = resources.files(__name__)
    flags, body = (folder / f"{name}.lua").read_text("utf-8").split("\n", 1)
    shared = ["prelude"]
    if body.startswith(_WITH):
        asked, body = body.removeprefix(_WITH).split("\n", 1)
        shared += asked.split(", ")
    rules = [(folder / f"{each}.lua").read_text("utf-8") for each in shared]
    text = "\n".join([flags, *rules, body])
    return Script(name, text, hashlib.sha1(text.encode(), usedforsecurity=False).hexdigest())
