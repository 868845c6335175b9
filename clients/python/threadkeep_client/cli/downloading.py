"""Fetching a file by a link that runs out: what has come is kept, and a download that breaks off goes on there."""

from __future__ import annotations

import asyncio
import sys
import threading
import urllib.error
import urllib.request
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from http.client import HTTPException, HTTPResponse
from pathlib import Path
from typing import IO, Final
from urllib.parse import urlsplit

from threadkeep_client.backoff import Backoff
from threadkeep_client.cli.errors import CommandError

_CHUNK_BYTES: Final = 256 * 1024
_SILENCE_S: Final = 60.0
"""How long the store may say nothing while a file comes."""
_FAILURES_MAX: Final = 5
"""In a row, without a byte between them."""
_PAUSES: Final = Backoff(base_s=1.0, ceiling_s=10.0, floor_s=1.0)
_REFUSALS: Final = range(400, 500)

Progress = Callable[[int, int | None], None]
"""Told how many bytes have come, and of how many, if that is known."""


class _BrokenOffError(Exception):
    """It did not come to its end; the message says why."""


async def download(
    url: str, renew: Callable[[], Awaitable[str]], path: Path | None, progress: Progress = lambda *_: None
) -> int:
    """Fetch a file; how many bytes it has. A file appears under its name whole, or not at all.

    Args:
        url: of HTTP.
        renew: gives a link that has not run out.
        path: where to; None: standard output.
        progress: told after every piece.

    Raises:
        CommandError: It cannot be had, or not be written.
    """
    with _output(path) as file:
        fetching = _Fetching(file, progress)
        failures, pauses = 0, _PAUSES.pauses()
        while True:
            before = fetching.size
            try:
                await _in_thread(fetching, url)
            except _BrokenOffError as error:
                failures = 1 if fetching.size > before else failures + 1
                if failures == _FAILURES_MAX:
                    raise CommandError(f"the export cannot be downloaded: {error}") from error
            else:
                return fetching.size
            await asyncio.sleep(next(pauses))
            url = await renew()


async def _in_thread(fetching: _Fetching, url: str) -> None:
    """Whoever is cancelled waits for the thread, which ends at its next piece: nobody else may close its file."""
    running = asyncio.ensure_future(asyncio.to_thread(fetching.fetch, url))
    try:
        await asyncio.shield(running)
    except asyncio.CancelledError:
        fetching.stopped.set()
        await asyncio.wait([running])
        raise


def check_place(path: Path) -> None:
    """See whether a file may be written there, before it is made. Nothing stays of that.

    Raises:
        CommandError: It may not.
    """
    if path.is_dir():
        raise CommandError(f"{path} cannot be written: it is a folder")
    with _told(path):
        _part(path).open("ab").close()
    _part(path).unlink()


def _part(path: Path) -> Path:
    return path.with_name(f"{path.name}.part")


@contextmanager
def _told(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise CommandError(f"{path} cannot be written: {error.strerror or error}") from error


@contextmanager
def _output(path: Path | None) -> Iterator[IO[bytes]]:
    """Where the bytes go; a file takes its name when the block has ended well."""
    if path is None:
        yield sys.stdout.buffer
        sys.stdout.buffer.flush()
        return
    part = _part(path)
    try:
        with _told(path):
            with part.open("wb") as file:
                yield file
            part.replace(path)
    finally:
        part.unlink(missing_ok=True)


class _Fetching:
    """One file, in as many requests as it takes.

    Attributes:
        size: how many bytes have been written.
        stopped: set by whoever wants no more of it.
    """

    def __init__(self, file: IO[bytes], progress: Progress) -> None:
        self.size = 0
        self.stopped = threading.Event()
        self._file = file
        self._progress = progress

    def fetch(self, url: str) -> None:
        """Fetch what is missing.

        Raises:
            _BrokenOffError: It did not come whole.
            CommandError: It is not to be had.
            OSError: It cannot be written.
        """
        if urlsplit(url).scheme not in {"http", "https"}:
            raise CommandError("the link to the export is none of HTTP")
        headers = {"range": f"bytes={self.size}-"} if self.size else {}
        request = urllib.request.Request(url, headers=headers)  # noqa: S310 -- looked at above
        try:
            answer: HTTPResponse = urllib.request.urlopen(request, timeout=_SILENCE_S)  # noqa: S310 -- likewise
        except urllib.error.HTTPError as refused:
            refused.close()
            if refused.code in _REFUSALS and not self.size:
                raise CommandError(f"the file of the export cannot be had: HTTP {refused.code}") from refused
            raise _BrokenOffError(f"HTTP {refused.code}") from refused
        except (OSError, HTTPException) as error:
            raise _BrokenOffError(str(error)) from error
        with answer:
            self._take(answer)

    def _take(self, answer: HTTPResponse) -> None:
        # A store that knows no ranges sends it from its beginning.
        known = 0 if answer.status == 206 else self.size  # noqa: PLR2004 -- HTTP's own number: partial content
        told = answer.headers.get("content-length")
        total = None if told is None else int(told) + self.size - known
        while not self.stopped.is_set():
            try:
                chunk = answer.read(_CHUNK_BYTES)
            except (OSError, HTTPException) as error:
                raise _BrokenOffError(str(error)) from error
            if not chunk:
                break
            fresh, known = chunk[known:], max(0, known - len(chunk))
            self._file.write(fresh)
            self.size += len(fresh)
            self._progress(self.size, total)
        if total is not None and self.size != total and not self.stopped.is_set():
            raise _BrokenOffError(f"{self.size:,} of {total:,} bytes came")
