"""Models on Amazon Bedrock, by ``converse_stream``.

Its events are those of the service model of bedrock-runtime 2023-09-30 in botocore 1.43.106.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final, Protocol

import msgspec
from botocore.exceptions import BotoCoreError, ClientError, ReadTimeoutError
from urllib3.exceptions import HTTPError
from urllib3.exceptions import TimeoutError as HTTPTimeoutError

from threadkeep.responder.answers import (
    Cut,
    End,
    Ended,
    Event,
    Failed,
    ReasoningPiece,
    TextPiece,
    ToolCallBegun,
    ToolCallEnded,
    ToolCallPiece,
    Usage,
    code_from,
)
from threadkeep.responder.prompt import AssistantTurn, Prompt, UserTurn

_RETRYABLE: Final = frozenset(
    {
        "InternalServerException",
        "ModelNotReadyException",
        "ModelStreamErrorException",
        "ModelTimeoutException",
        "ServiceUnavailableException",
        "ThrottlingException",
    }
)
_FAILURES: Final = frozenset({"malformed_model_output", "malformed_tool_use"})
"""Stop reasons that are none."""


class ConverseClient(Protocol):
    """What is used of a bedrock-runtime client."""

    def converse_stream(self, **request: Any) -> Mapping[str, Any]:
        """Begin an answer."""
        ...


class Bedrock:
    """`Model` on Bedrock.

    Args:
        client: a bedrock-runtime client. Its read timeout bounds the model's silence, and how long an answer that
            nobody wants any more goes on: botocore gives no hold of the connection to cut it.
        name: id of a model or an inference profile.
    """

    def __init__(self, client: ConverseClient, name: str) -> None:
        self._client = client
        self._name = name

    @property
    def name(self) -> str:
        """See `Model`."""
        return self._name

    def answer(self, prompt: Prompt) -> ConverseStream:
        """See `Model`."""
        return ConverseStream(self._client, request_from(prompt, self._name))


class ConverseStream:
    """One answer."""

    def __init__(self, client: ConverseClient, request: dict[str, Any]) -> None:
        self._client = client
        self._request = request
        self._is_cancelled = False

    def __iter__(self) -> Iterator[Event]:
        """See `AnswerStream`."""
        reader = _Reader()
        try:
            stream = self._client.converse_stream(**self._request)["stream"]
            try:
                for event in stream:
                    if self._is_cancelled:
                        return
                    yield from reader.take(event)
            finally:
                stream.close()
        except ClientError as error:  # also what comes in mid-stream
            yield _failed(error)
        except (ReadTimeoutError, HTTPTimeoutError):
            yield reader.end(Failed("silent", retryable=True))
        except (BotoCoreError, HTTPError):
            yield reader.end(Cut() if reader.has_begun else Failed("unreachable", retryable=True))
        else:
            yield reader.end(Cut())

    def cancel(self) -> None:
        """See `AnswerStream`: at its next event."""
        self._is_cancelled = True


class _Reader:
    """Takes the events of one answer in order.

    Attributes:
        has_begun: there was one.
    """

    def __init__(self) -> None:
        self.has_begun = False
        self._stop_reason: str | None = None
        self._calls: dict[int, int] = {}

    def take(self, event: Mapping[str, Any]) -> Iterator[Event]:
        """The events of one of Bedrock's. Kinds and blocks that are not ours (images, citations) say nothing."""
        self.has_begun = True
        match event:
            case {"contentBlockStart": {"contentBlockIndex": index, "start": {"toolUse": tool}}}:
                self._calls[index] = len(self._calls)
                yield ToolCallBegun(self._calls[index], tool["toolUseId"], tool["name"])
            case {"contentBlockDelta": {"contentBlockIndex": index, "delta": {"toolUse": {"input": arguments}}}}:
                if index in self._calls and arguments:
                    yield ToolCallPiece(self._calls[index], arguments)
            case {"contentBlockDelta": {"delta": {"text": text}}}:
                yield TextPiece(text)
            case {"contentBlockDelta": {"delta": {"reasoningContent": {"text": text}}}}:
                yield ReasoningPiece(text)
            case {"contentBlockStop": {"contentBlockIndex": index}} if index in self._calls:
                yield ToolCallEnded(self._calls[index])
            case {"messageStop": {"stopReason": reason}}:
                self._stop_reason = reason  # the usage comes behind it
            case {"metadata": {"usage": {"inputTokens": input_tokens, "outputTokens": output_tokens}}}:
                yield Usage(input_tokens, output_tokens)

    def end(self, otherwise: End) -> End:
        """How the answer ended, now that nothing more comes: as it was said, else otherwise."""
        if self._stop_reason is None:
            return otherwise
        if self._stop_reason in _FAILURES:
            return Failed(self._stop_reason, retryable=True)
        return Ended(code_from(self._stop_reason, "other"))


def request_from(prompt: Prompt, name: str) -> dict[str, Any]:
    """The prompt as the API has it: roles in turns, results of tools as the user's."""
    messages: list[dict[str, Any]] = []
    for role, content in _contents(prompt):
        if messages and messages[-1]["role"] == role:
            messages[-1]["content"] += content
        else:
            messages.append({"role": role, "content": content})
    request: dict[str, Any] = {"modelId": name, "messages": messages}
    if prompt.system:
        request["system"] = [{"text": prompt.system}]
    if prompt.tools:
        # Without it the API refuses a conversation in which tools were ever used (langgenius/dify #17545).
        request["toolConfig"] = {"tools": [_tool(tool) for tool in prompt.tools]}
    return request


def _contents(prompt: Prompt) -> Iterable[tuple[str, list[dict[str, Any]]]]:
    for turn in prompt.turns:
        match turn:
            case UserTurn(text):
                yield "user", [{"text": text}]
            case AssistantTurn(text, uses):
                said: list[dict[str, Any]] = [{"text": text}] if text else []
                called = [
                    {
                        "toolUse": {
                            "toolUseId": use.call_id,
                            "name": use.name,
                            "input": msgspec.json.decode(use.arguments),
                        }
                    }
                    for use in uses
                ]
                yield "assistant", said + called
                if uses:
                    yield (
                        "user",
                        [{"toolResult": {"toolUseId": use.call_id, "content": [{"text": use.output}]}} for use in uses],
                    )


def _tool(name: str) -> dict[str, Any]:
    return {"toolSpec": {"name": name, "inputSchema": {"json": {"type": "object"}}}}


def _failed(error: ClientError) -> Failed:
    """By its code, which an answer of its own writes ``ThrottlingException`` and a stream ``throttlingException``."""
    told = str(error.response.get("Error", {}).get("Code", ""))
    code = code_from(told[:1].upper() + told[1:], "provider_error")
    return Failed(code, retryable=code in _RETRYABLE)
