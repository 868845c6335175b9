"""What users and tokens say must stand in no log line, metric or trace: looked for in all that the suite puts out.

Everything that a test sends through a handler is a canary: prompts, answers, titles, metadata, tokens. While tests run,
each line that any logger writes, each metric that is printed and each trace that is sent is kept, and searched when the
test has ended.
"""

from __future__ import annotations

import contextlib
import json
import logging
from collections.abc import Iterator, Mapping
from typing import Any, Final

import pytest
from aws_lambda_powertools.metrics.provider.cloudwatch_emf import cloudwatch
from aws_xray_sdk.core.emitters.udp_emitter import UDPEmitter

CHARS_MIN: Final = 8
"""Shorter texts of tests ("hello", "a") are words of anybody's."""
TOKEN_CHARS_MIN: Final = 20
SECRET_FIELDS: Final = ("parts", "ops", "body", "title", "metadata", "usage", "error", "model")


class Canaries:
    """Secrets sung into the house, and all that was heard outside."""

    def __init__(self) -> None:
        self.secrets: set[str] = set()
        self.heard: list[str] = []

    def note(self, secret: str) -> None:
        """It must be heard nowhere."""
        if len(secret) >= CHARS_MIN:
            self.secrets.add(secret)

    def note_request(self, request: Mapping[str, Any]) -> None:
        """What the user says in a request."""
        for field in SECRET_FIELDS:
            for text in _texts(request.get(field)):
                self.note(text)

    def note_event(self, event: Mapping[str, Any]) -> None:
        """What a gateway's event brings along: a request, or a token wherever a handshake may carry one."""
        with contextlib.suppress(ValueError, RecursionError):  # what is no request says nothing
            request = json.loads(event.get("body") or "null")
            if isinstance(request, dict):
                self.note_request(request)
        for name, value in (event.get("headers") or {}).items():
            if name.lower() in {"authorization", "sec-websocket-protocol"}:
                for word in value.replace(",", " ").split():
                    if "." in (token := word.removeprefix("bearer.")) and len(token) >= TOKEN_CHARS_MIN:
                        self.note(token)
        token = (event.get("queryStringParameters") or {}).get("token")
        if token:
            self.note(token)

    def found(self) -> list[str]:
        """What was heard of a secret, line by line."""
        # As a reader of the log sees it, and as JSON spells it.
        spelled = {form for secret in self.secrets for form in (secret, json.dumps(secret)[1:-1])}
        return [line for line in self.heard if any(form in line for form in spelled)]


def _texts(value: Any) -> Iterator[str]:
    match value:
        case str():
            yield value
        case dict():
            for inner in value.values():
                yield from _texts(inner)
        case list() | tuple():
            for inner in value:
                yield from _texts(inner)


current = Canaries()
"""Those of the test that runs; replaced by the next one's."""


@contextlib.contextmanager
def listening(canaries: Canaries) -> Iterator[None]:
    """Hear what loggers write, metrics print and traces send meanwhile."""
    with pytest.MonkeyPatch.context() as patch:
        emit, send = logging.StreamHandler.emit, UDPEmitter.send_entity

        def emit_heard(handler: logging.StreamHandler[Any], record: logging.LogRecord) -> None:
            canaries.heard.append(handler.format(record))
            emit(handler, record)

        def send_heard(emitter: UDPEmitter, entity: Any) -> None:
            canaries.heard.append(str(entity.serialize()))
            send(emitter, entity)

        def print_heard(*words: Any, **how: Any) -> None:
            canaries.heard.append(" ".join(map(str, words)))
            print(*words, **how)  # noqa: T201 -- in place of the one that it stands in front of

        patch.setattr(logging.StreamHandler, "emit", emit_heard)
        patch.setattr(UDPEmitter, "send_entity", send_heard)
        # Its own `print` in front of the built-in one: the module prints metrics and nothing else.
        patch.setattr(cloudwatch, "print", print_heard, raising=False)
        yield


@pytest.fixture(autouse=True)
def no_leaks() -> Iterator[Canaries]:
    """Every test is held to it; one that plants a leak takes it out again with `clear`."""
    global current  # noqa: PLW0603 -- the house cannot be handed it: fixtures build houses in many ways
    current = Canaries()
    with listening(current):
        yield current
    assert not current.found(), "what a user said, or a token, stands in the logs"
