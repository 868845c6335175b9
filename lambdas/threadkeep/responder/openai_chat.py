"""Models behind OpenAI's chat completions, as OpenAI, vLLM, Ollama and many others serve them (recalled 2026-11-29)."""

from __future__ import annotations

import contextlib
import json
import socket
import threading
from collections.abc import Callable, Iterator
from typing import Any, Final

import httpx

from threadkeep.responder.answers import Cut, Ended, Event, Failed
from threadkeep.responder.openai_chunks import ChunkReader
from threadkeep.responder.openai_errors import failure_from
from threadkeep.responder.prompt import AssistantTurn, Prompt, UserTurn
from threadkeep.responder.sse import EventReader, EventTooLarge

_DONE: Final = "[DONE]"
_ERROR_BODY_BYTES_MAX: Final = 64 * 1024


class OpenAIChat:
    """`Model` at an endpoint.

    Args:
        base_url: up to where ``/chat/completions`` follows.
        name: the model's.
        api_key: gives the key, at each answer so that it may change; None: the endpoint wants none.
        connect_s: how long connecting may take.
        silence_s: how long a read may take; nothing at all for so long ends the answer as ``silent``.
    """

    def __init__(
        self,
        *,
        base_url: str,
        name: str,
        api_key: Callable[[], str] | None = None,
        connect_s: float = 10.0,
        silence_s: float = 300.0,
    ) -> None:
        self._url = base_url.rstrip("/") + "/chat/completions"
        self._name = name
        self._api_key = api_key
        self._timeout = httpx.Timeout(silence_s, connect=connect_s, write=connect_s, pool=connect_s)

    @property
    def name(self) -> str:
        """See `Model`."""
        return self._name

    def answer(self, prompt: Prompt) -> ChatStream:
        """See `Model`."""
        request = {
            "model": self._name,
            "messages": list(messages_from(prompt)),
            "stream": True,
            "stream_options": {"include_usage": True},
        }
        # Servers that look at the encoding of an event stream compress it in blocks, and hold it back for that.
        headers = {"Accept": "text/event-stream", "Accept-Encoding": "identity"}
        if self._api_key is not None:
            headers["Authorization"] = f"Bearer {self._api_key()}"
        return ChatStream(self._url, headers=headers, request=request, timeout=self._timeout)


class ChatStream:
    """One answer, read from one connection of its own: it may be cut without harm to others."""

    def __init__(self, url: str, *, headers: dict[str, str], request: Any, timeout: httpx.Timeout) -> None:
        self._url = url
        self._headers = headers
        self._request = request
        self._timeout = timeout
        self._lock = threading.Lock()
        self._socket: socket.socket | None = None
        self._is_cancelled = False

    def __iter__(self) -> Iterator[Event]:
        """See `AnswerStream`."""
        chunks = ChunkReader()
        try:
            # Nothing of the environment (proxies, .netrc) has a say in where a conversation is sent.
            with (
                httpx.Client(timeout=self._timeout, trust_env=False) as client,
                client.stream(
                    "POST",
                    self._url,
                    headers=self._headers,
                    json=self._request,
                    extensions={"trace": self._note_socket},
                ) as response,
            ):
                if response.status_code != httpx.codes.OK:
                    yield _refused(response)
                    return
                yield from self._read(response, chunks)
        except (httpx.ConnectError, httpx.ConnectTimeout):
            yield Failed("unreachable", retryable=True)
        except httpx.TimeoutException:
            yield chunks.end(Failed("silent", retryable=True))
        except (httpx.TransportError, httpx.DecodingError):
            yield chunks.end(Cut())

    def cancel(self) -> None:
        """See `AnswerStream`. Wakes a read that waits: closing the socket alone would not."""
        with self._lock:
            self._is_cancelled = True
            self._shut()

    @staticmethod
    def _read(response: httpx.Response, chunks: ChunkReader) -> Iterator[Event]:
        events = EventReader()
        try:
            for read in response.iter_bytes():
                for data in events.feed(read):
                    if data == _DONE:
                        yield chunks.end(Ended(""))
                        return
                    for event in chunks.take(json.loads(data)):
                        yield event
                        if isinstance(event, Failed):
                            return
        except (EventTooLarge, ValueError, RecursionError):  # msgspec's errors are ValueErrors
            yield Failed("malformed_stream", retryable=True)
            return
        yield chunks.end(Cut())

    def _note_socket(self, event: str, info: dict[str, Any]) -> None:
        """Keep hold of the connection's socket: httpx's trace (docs "Extensions", read 2026-11-29) shows it at once."""
        if event in {"connection.connect_tcp.complete", "connection.start_tls.complete"}:
            with self._lock:
                self._socket = info["return_value"].get_extra_info("socket")
                if self._is_cancelled:
                    self._shut()

    def _shut(self) -> None:
        if self._socket is not None:
            with contextlib.suppress(OSError):  # closed already
                # The plain socket's: that of TLS would say goodbye first, while another thread reads.
                socket.socket.shutdown(self._socket, socket.SHUT_RDWR)


def messages_from(prompt: Prompt) -> Iterator[dict[str, Any]]:
    """The prompt as the API has it."""
    if prompt.system:
        yield {"role": "system", "content": prompt.system}
    for turn in prompt.turns:
        match turn:
            case UserTurn(text):
                yield {"role": "user", "content": text}
            case AssistantTurn(text, ()):
                yield {"role": "assistant", "content": text}
            case AssistantTurn(text, uses):
                calls = [
                    {
                        "id": use.call_id,
                        "type": "function",
                        "function": {"name": use.name, "arguments": use.arguments},
                    }
                    for use in uses
                ]
                yield {"role": "assistant", "content": text or None, "tool_calls": calls}
                for use in uses:
                    yield {"role": "tool", "tool_call_id": use.call_id, "content": use.output}


def _refused(response: httpx.Response) -> Failed:
    """What an answer other than 200 says."""
    body = b""
    for read in response.iter_bytes():
        body += read
        if len(body) > _ERROR_BODY_BYTES_MAX:
            break
    try:
        told = json.loads(body)
    except (ValueError, RecursionError):
        told = None
    return failure_from(told, status=response.status_code)
