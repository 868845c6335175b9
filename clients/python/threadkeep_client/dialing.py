"""Opening a socket: the handshake, and what its failures mean."""

from __future__ import annotations

import logging
from typing import Final
from urllib.parse import urlsplit

from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import InvalidHandshake, InvalidStatus, InvalidURI
from websockets.typing import Subprotocol

from threadkeep_client.errors import ConnectionFailedError, TokenRefusedError

SUBPROTOCOL: Final = Subprotocol("threadkeep.v1")
RECEIVED_BYTES_MAX: Final = 256 * 1024
"""A message; API Gateway passes on 128 KiB at most (quotas for WebSocket APIs, read 2026-11-29)."""
_CLOSE_S: Final = 2.0
_REFUSED: Final = frozenset({401, 403})

_LOG: Final = logging.getLogger("threadkeep_client.socket")
# At DEBUG, websockets logs headers and frames: tokens and what people wrote.
_LOG.setLevel(logging.INFO)


async def dial(url: str, token: str, *, open_s: float) -> ClientConnection:
    """Connect. A server that echoes no subprotocol is borne: a local emulator echoes none.

    Raises:
        TokenRefusedError: 401 or 403.
        ConnectionFailedError: anything else.
    """
    shown = _without_secrets(url)
    try:
        return await connect(
            url,
            additional_headers={"Authorization": f"Bearer {token}"},
            subprotocols=[SUBPROTOCOL],
            open_timeout=open_s,
            close_timeout=_CLOSE_S,
            max_size=RECEIVED_BYTES_MAX,
            logger=_LOG,
        )
    except InvalidStatus as error:
        status = error.response.status_code
        if status in _REFUSED:
            raise TokenRefusedError(f"the token was refused at {shown} (HTTP {status})") from None
        raise ConnectionFailedError(f"no WebSocket at {shown} (HTTP {status})") from None
    except (InvalidURI, ValueError, OverflowError):
        raise ConnectionFailedError(f"{shown} is no WebSocket address: give ws://… or wss://…") from None
    except TimeoutError:
        raise ConnectionFailedError(f"no answer from {shown} within {open_s:g} s") from None
    except OSError as error:
        reason = error.strerror or type(error).__name__
        raise ConnectionFailedError(f"nobody answers at {shown} ({reason})") from None
    except (InvalidHandshake, EOFError) as error:
        raise ConnectionFailedError(f"no WebSocket at {shown} ({type(error).__name__})") from None


def _without_secrets(url: str) -> str:
    """The address as it may be shown: without query and user, which may hold a token or a password."""
    try:
        parts = urlsplit(url)
        return parts._replace(netloc=parts.netloc.rpartition("@")[2], query="", fragment="").geturl()
    except ValueError:
        return "the address"
