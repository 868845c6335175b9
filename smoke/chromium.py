"""One page of a headless Chromium, by its debugging port: no driver is needed for that."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import itertools
import json
import os
import shutil
import signal
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final

from websockets.asyncio.client import ClientConnection, connect

_NAMES: Final = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
_START_S: Final = 20.0
_STOP_S: Final = 5.0
_PAGE: Final = base64.b64encode(b"<!doctype html><title>smoke</title>").decode()


def find_browser() -> str | None:
    """The path of a Chromium; None where there is none."""
    return next(filter(None, map(shutil.which, _NAMES)), None)


class Page:
    """A page of an origin, which nobody was asked for: the browser is handed an empty one."""

    def __init__(self, socket: ClientConnection, session: str) -> None:
        self._socket = socket
        self._session = session
        self._numbers = itertools.count(1)

    async def evaluate(self, expression: str) -> Any:
        """The value of an expression, of its promise if it is one.

        Raises:
            RuntimeError: it failed; its text is not told, since it may hold a token.
        """
        answer = await self._call("Runtime.evaluate", expression=expression, awaitPromise=True, returnByValue=True)
        if "exceptionDetails" in answer:
            raise RuntimeError("the page's script failed")
        return answer["result"].get("value")

    async def go_to(self, origin: str) -> None:
        """Become a page of that origin."""
        await self._call("Fetch.enable", patterns=[{"urlPattern": f"{origin}/*"}])
        await self._call("Page.enable")
        await self._call("Page.navigate", url=f"{origin}/smoke")
        while await self.evaluate("location.origin") != origin:  # noqa: ASYNC110 -- it is another program's
            await asyncio.sleep(0.1)  # each look also serves the page that the browser asks for

    async def _call(self, method: str, **parameters: Any) -> dict[str, Any]:
        number = next(self._numbers)
        await self._send(number, method, parameters)
        async for text in self._socket:
            told = json.loads(text)
            if told.get("method") == "Fetch.requestPaused":
                page = {"requestId": told["params"]["requestId"], "responseCode": 200, "body": _PAGE}
                html = [{"name": "Content-Type", "value": "text/html"}]
                await self._send(next(self._numbers), "Fetch.fulfillRequest", page | {"responseHeaders": html})
            elif told.get("id") == number:
                if "error" in told:
                    raise RuntimeError(f"the browser refused {method}: {told['error'].get('message')}")
                return dict(told["result"])
        raise RuntimeError(f"the browser ended during {method}")

    async def _send(self, number: int, method: str, parameters: dict[str, Any]) -> None:
        call = {"id": number, "method": method, "params": parameters, "sessionId": self._session}
        await self._socket.send(json.dumps(call))


@asynccontextmanager
async def page(browser: str) -> AsyncIterator[Page]:
    """Start the browser with a profile of its own, which goes with it.

    Raises:
        RuntimeError: it did not start.
    """
    with tempfile.TemporaryDirectory(prefix="threadkeep-smoke-", ignore_cleanup_errors=True) as profile:
        words = ["--headless=new", "--remote-debugging-port=0", f"--user-data-dir={profile}", "--no-first-run"]
        # A page whose address nobody knows counts as public, and may not talk to an address of one's own network.
        words += [
            "--disable-gpu",
            "--disable-features=LocalNetworkAccessChecks",
            *(["--no-sandbox"] if os.geteuid() == 0 else []),
            "about:blank",
        ]
        nowhere = asyncio.subprocess.DEVNULL
        process = await asyncio.create_subprocess_exec(
            browser, *words, stdout=nowhere, stderr=nowhere, start_new_session=True
        )
        try:
            port, path = await _address(Path(profile) / "DevToolsActivePort", process)
            async with connect(f"ws://127.0.0.1:{port}{path}", max_size=None, proxy=None) as socket:
                target = await _ask(socket, "Target.createTarget", url="about:blank")
                attached = await _ask(socket, "Target.attachToTarget", targetId=target["targetId"], flatten=True)
                yield Page(socket, attached["sessionId"])
        finally:
            await _stop(process)


async def _stop(process: asyncio.subprocess.Process) -> None:
    """All of its group: a process of its that outlives it would write into the profile while that is deleted."""
    for sign in (signal.SIGTERM, signal.SIGKILL):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, sign)
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(process.wait(), _STOP_S)


async def _address(file: Path, process: asyncio.subprocess.Process) -> tuple[str, str]:
    """Where it listens: it writes that into its profile."""
    try:
        async with asyncio.timeout(_START_S):
            while process.returncode is None:
                lines = await asyncio.to_thread(_lines, file)
                if len(lines) == 2:  # noqa: PLR2004 -- port and path
                    return lines[0], lines[1]
                await asyncio.sleep(0.1)
    except TimeoutError:
        pass
    raise RuntimeError("the browser did not start")


def _lines(file: Path) -> list[str]:
    return file.read_text().splitlines() if file.exists() else []


async def _ask(socket: ClientConnection, method: str, **parameters: Any) -> dict[str, Any]:
    await socket.send(json.dumps({"id": 0, "method": method, "params": parameters}))
    async for text in socket:
        told = json.loads(text)
        if told.get("id") == 0:
            return dict(told["result"])
    raise RuntimeError(f"the browser ended during {method}")
