"""The handshake as a browser makes it."""

from __future__ import annotations

import json
from typing import Final

from smoke.chromium import find_browser, page
from smoke.ground import Ground
from smoke.outcome import Outcome, failed, not_applicable, shown
from smoke.registry import check

_PROTOCOL: Final = "threadkeep.v1"
_CONNECT: Final = """new Promise(done => {
  const socket = new WebSocket(%s, %s);
  socket.onopen = () => { done("protocol " + socket.protocol); socket.close(); };
  socket.onclose = event => done("closed with " + event.code);
})"""


@check("subprotocol-browser", seconds_max=90)
async def a_browser_connects(ground: Ground) -> Outcome:
    """From a page of an allowed origin, with the token beside the subprotocol."""
    allowed = (await ground.function("authorizer"))["Environment"]["Variables"].get("THREADKEEP_ALLOWED_ORIGINS", "")
    if not allowed:
        return not_applicable("`allowed_origins` is empty: no page may connect")
    browser = find_browser()
    if browser is None:
        return not_applicable("no Chromium on this machine's PATH (Debian: apt-get install chromium)")
    seen = await handshake(browser, allowed.split()[0], ground.target.url, ground.target.token)
    return shown("Chromium connects, and is told `threadkeep.v1`") if seen == f"protocol {_PROTOCOL}" else failed(seen)


async def handshake(browser: str, origin: str, url: str, token: str) -> str:
    """What a page of that origin sees: `protocol …`, or `closed with …`."""
    async with page(browser) as shown_page:
        await shown_page.go_to(origin)
        offered = json.dumps([_PROTOCOL, f"bearer.{token}"])
        return str(await shown_page.evaluate(_CONNECT % (json.dumps(url), offered)))
