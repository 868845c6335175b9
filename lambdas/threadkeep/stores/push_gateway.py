"""Frames to viewers by the gateway's ``@connections`` API."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from typing import TYPE_CHECKING, Final

from botocore.exceptions import ClientError

from threadkeep.domain.bounds import FAN_OUT_WAIT_MS, VIEWERS_MAX
from threadkeep.ports import Delivery
from threadkeep.stores.aws_config import PUSH_THREADS_MAX
from threadkeep.stores.aws_faults import code_of, status_of

if TYPE_CHECKING:
    from mypy_boto3_apigatewaymanagementapi import ApiGatewayManagementApiClient

_GONE: Final = 410
_LOG: Final = logging.getLogger(__name__)


class GatewayPush:
    """`threadkeep.ports.Push` on a WebSocket API, to `PUSH_THREADS_MAX` viewers at a time.

    A viewer that a frame did not reach, whatever the reason, notices the gap and resumes: so nothing is sent twice
    from here, and one viewer's failure is no other's.

    Args:
        client: for the API's ``@connections`` URL, built with `threadkeep.stores.aws_config.PUSH`.
        wait_ms: how long a producer waits for its viewers' frames.
    """

    def __init__(self, client: ApiGatewayManagementApiClient, *, wait_ms: int = FAN_OUT_WAIT_MS) -> None:
        self._client = client
        self._wait_s = wait_ms / 1_000
        self._pool = ThreadPoolExecutor(max_workers=PUSH_THREADS_MAX, thread_name_prefix="push")

    def send(self, connections: Sequence[str], frame: bytes) -> Delivery:
        """See `Push`. What has not begun when the wait ends is not sent any more; nor beyond `VIEWERS_MAX`."""
        posts = {
            self._pool.submit(self._post, connection, frame): connection for connection in connections[:VIEWERS_MAX]
        }
        done, late = wait(posts, timeout=self._wait_s)
        for post in late:
            post.cancel()
        outcomes = {connection: _outcome(post) if post in done else "late" for post, connection in posts.items()}
        outcomes |= dict.fromkeys(connections[VIEWERS_MAX:], "beyond_bound")
        unserved = {name: outcome for name, outcome in outcomes.items() if outcome not in {"sent", "gone"}}
        if unserved:
            _LOG.warning("viewers not served: %s of %s", dict(Counter(unserved.values())), len(connections))
        return Delivery(
            gone=tuple(name for name, outcome in outcomes.items() if outcome == "gone"), late=tuple(unserved)
        )

    def hint(self, connections: Sequence[str], frame: bytes) -> None:
        """See `Push`."""
        for connection in connections[:VIEWERS_MAX]:
            self._pool.submit(self._post, connection, frame)

    def _post(self, connection: str, frame: bytes) -> None:
        self._client.post_to_connection(ConnectionId=connection, Data=frame)


def _outcome(post: Future[None]) -> str:
    """``sent``, ``gone``, or the name of the error."""
    error = post.exception()
    if error is None:
        return "sent"
    if isinstance(error, ClientError):
        return "gone" if status_of(error) == _GONE else code_of(error)
    return type(error).__name__
