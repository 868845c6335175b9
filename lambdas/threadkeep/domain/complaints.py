"""What is wrong with a request, in words that people read: which field, and what it must be.

msgspec says it in a programmer's words, with patterns and its own names of types (msgspec 0.23, `_core.c`, read
2026-11-29). Here each kind of what it says becomes a sentence; nothing is quoted of what stands in the request.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from typing import Final

from msgspec import inspect

from threadkeep.domain.ids import ID_OR_ALL_PATTERN, ID_PATTERN
from threadkeep.domain.uploads import MEDIA_TYPE_PATTERN, SHA256_PATTERN

SPELLINGS: Final = {
    ID_PATTERN: "an id: a UUID of version 7, in lower case",
    ID_OR_ALL_PATTERN: "an id (a UUID of version 7, in lower case) or `all`",
    SHA256_PATTERN: "a SHA-256: 64 hex digits, in lower case",
    MEDIA_TYPE_PATTERN: "a media type, such as `image/png`",
}
"""What each pattern of a request stands for."""
_TYPES: Final = {
    "str": "a string",
    "int": "a whole number",
    "float": "a number",
    "bool": "true or false",
    "null": "null",
    "object": "an object",
    "array": "a list",
}
_UNITS: Final = {"str": "characters", "array": "items", "object": "fields"}
_PLACE: Final = re.compile(r"(?s)\A(?P<what>.*) - at (?P<key>`key` in )?`\$(?P<path>[^`]*)`\Z")
"""The last of its like: what stands before may quote a string that looks the same."""
_LAST: Final = re.compile(r"(?:\.(?P<field>[^.\[\]]+)|(?P<index>\[\d+\]))\Z")
CHOICES_MAX: Final = 10
"""More are not named: nobody would read them."""
_NO_CHOICES: Final[Mapping[str, tuple[str, ...]]] = {}
_KINDS: Final = [
    (re.compile(pattern, re.DOTALL), words)
    for pattern, words in (
        (r"Object missing required field `(?P<field>.*)`", "is missing"),
        (r"Object contains unknown field `(?P<field>.*)`", "is a field that is not known here"),
        (r"Invalid value\b.*", "is none of those that there are"),
        (r"Invalid enum value\b.*", "is none of the values that it may be"),
        (r"Expected `str` matching regex (?P<pattern>.*)", "must be {spelling}"),
        (r"Expected `\w+` of length >= 1", "must not be empty"),
        (r"Expected `(?P<type>\w+)` of length >= (?P<least>\d+)", "must have at least {least} {units}"),
        (r"Expected `(?P<type>\w+)` of length <= (?P<most>\d+)", "may have at most {most} {units}"),
        (r"Expected `(?:int|float)` >= (?P<least>\S+)", "must be a number of at least {least}"),
        (r"Expected `(?:int|float)` <= (?P<most>\S+)", "must be a number of at most {most}"),
        (r"Expected `int`, got `float`", "must be a whole number, without a fraction"),
        (r"Expected `(?P<types>[^`]+)`, got `(?P<got>[^`]+)`", "must be {types}, not {got}"),
        (r"Expected `array` of (?:at least )?length (?P<least>\d+).*", "must have {least} items"),
        (r"Expected `(?P<types>[^`]+)`", "must be {types}"),
        (r".*out of range.*", "is a number that is too large"),
    )
]


@cache
def choices_of(*structs: type) -> dict[str, tuple[str, ...]]:
    """What the fields of some structs may be, where that is one of a few words.

    A field that differs among them is not there. Structs that are arrays have their tags under `[0]`.
    """
    found: dict[str, set[tuple[str, ...]]] = {}
    tags: list[str] = []
    for told in inspect.multi_type_info(structs):
        if not isinstance(told, inspect.StructType):
            continue
        if told.array_like and isinstance(told.tag, str):
            tags.append(told.tag)
        for field in told.fields:
            found.setdefault(field.encode_name, set()).add(_words_of(field.type))
    same = {name: next(iter(words)) for name, words in found.items() if len(words) == 1}
    return {name: words for name, words in {**same, "[0]": tuple(tags)}.items() if 0 < len(words) <= CHOICES_MAX}


def _words_of(told: inspect.Type) -> tuple[str, ...]:
    inner = told.types if isinstance(told, inspect.UnionType) else (told,)
    values = [value for one in inner if isinstance(one, inspect.LiteralType) for value in one.values]
    return tuple(value for value in values if isinstance(value, str))


def in_words(complaint: str, *, root: str = "it", choices: Mapping[str, tuple[str, ...]] = _NO_CHOICES) -> str:
    """A sentence for what msgspec complains of.

    Args:
        complaint: its words.
        root: what a complaint about the whole is about.
        choices: as `choices_of` gives them.
    """
    place = _PLACE.match(complaint)
    what, path = (place["what"], place["path"] or "") if place else (complaint, "")
    for kind, words in _KINDS:
        match = kind.fullmatch(what)
        if match is not None:
            found = match.groupdict()
            field = found.get("field")
            subject = _subject(path if field is None else f"{path}.{field}", root)
            if place and place["key"]:
                subject = f"a name in {subject}"
            named = _at(path, choices) if what.startswith("Invalid ") else ()
            if named:
                return _sentence(f"{subject} must be one of {', '.join(f'`{word}`' for word in named)}")
            return _sentence(f"{subject} {words.format_map(_filled(found))}")
    return _sentence(f"{_subject(path, root)} is no JSON, or cut off")


def _at(path: str, choices: Mapping[str, tuple[str, ...]]) -> tuple[str, ...]:
    last = _LAST.search(path)
    return () if last is None else choices.get(last["field"] or last["index"], ())


def _filled(found: dict[str, str | None]) -> dict[str, str]:
    filled = {name: value for name, value in found.items() if value is not None}
    for name in ("least", "most"):
        if name in filled and filled[name].lstrip("-").isdecimal():
            filled[name] = f"{int(filled[name]):,}"
    for name in ("types", "got"):
        if name in filled:
            filled[name] = " or ".join(_TYPES.get(one, f"a {one}") for one in filled[name].split(" | "))
    filled["units"] = _UNITS.get(filled.get("type", ""), "items")
    if "pattern" in filled:
        filled["spelling"] = next(
            (words for pattern, words in SPELLINGS.items() if repr(pattern) == filled["pattern"]), "spelled otherwise"
        )
    return filled


def _subject(path: str, root: str) -> str:
    """`parts[0].text`, as the request has it; what stands under any name is `…`."""
    return f"`{path.removeprefix('.').replace('[...]', '[…]')}`" if path else root


def _sentence(text: str) -> str:
    return f"{text[0].upper()}{text[1:]}."
