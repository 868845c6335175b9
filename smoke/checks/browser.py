"""What a page does by itself: the handshake, and files past the gateway."""

from __future__ import annotations

import hashlib
import json
from typing import Final

from smoke.chromium import find_browser, page
from smoke.ground import Ground
from smoke.outcome import Outcome, failed, not_applicable, shown
from smoke.raw import exchange, frame
from smoke.registry import check

_PROTOCOL: Final = "threadkeep.v1"
_CONNECT: Final = """new Promise(done => {
  const socket = new WebSocket(%s, %s);
  socket.onopen = () => { done("protocol " + socket.protocol); socket.close(); };
  socket.onclose = event => done("closed with " + event.code);
})"""
_FETCH: Final = """(async () => {
  const upload = %s, content = %s;
  const put = await fetch(upload.url, {method: upload.method, headers: upload.headers, body: content});
  return "put " + put.status;
})().catch(error => "put failed: " + error.message)"""
_FETCH_BACK: Final = """(async () => {
  const got = await fetch(%s, {headers: {range: "bytes=0-"}});
  return [await got.text(), got.headers.get("content-range")];
})().catch(error => ["get failed: " + error.message, null])"""
_CONTENT: Final = "a page put this"


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


@check("files-browser", seconds_max=90)
async def a_page_puts_and_gets_a_file(ground: Ground) -> Outcome:
    """By the URLs of `blob.create` and `blob.get`, from a page of an allowed origin."""
    allowed = (await ground.function("authorizer"))["Environment"]["Variables"].get("THREADKEEP_ALLOWED_ORIGINS", "")
    if not allowed:
        return not_applicable("`allowed_origins` is empty: no page may put or get")
    browser = find_browser()
    if browser is None:
        return not_applicable("no Chromium on this machine's PATH (Debian: apt-get install chromium)")
    content = _CONTENT.encode()
    async with ground.user() as user, ground.socket() as socket, page(browser) as shown_page:
        conversation = await ground.conversation(user)
        await shown_page.go_to(allowed.split()[0])
        asked = {"bytes": len(content), "sha256": hashlib.sha256(content).hexdigest()}
        reply = await exchange(socket, frame("blob.create", conversation=conversation, **asked))
        upload = reply["upload"]
        put = await shown_page.evaluate(_FETCH % (json.dumps(upload), json.dumps(_CONTENT)))
        if put != "put 200":
            return failed(str(put))
        part = {"type": "blob", "ref": upload["ref"], "media_type": "text/plain"} | asked
        await user.create_message(conversation, [part], parent=None)
        reply = await exchange(socket, frame("blob.get", conversation=conversation, blob=upload["ref"]))
        text, place = await shown_page.evaluate(_FETCH_BACK % json.dumps(reply["download"]["url"]))
    expected = f"bytes 0-{len(content) - 1}/{len(content)}"
    if (text, place) != (_CONTENT, expected):
        return failed(f"{text!r}, Content-Range {place}")
    return shown("Chromium puts a file and reads it back, with its size")
