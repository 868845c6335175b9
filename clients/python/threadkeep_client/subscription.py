"""A lease on a conversation's events, renewed until it is left (protocol, section 4)."""

from __future__ import annotations

import asyncio
import contextlib
from typing import Final, Protocol, Self

from threadkeep_client.connection import Connection
from threadkeep_client.errors import ThreadkeepError, WireError
from threadkeep_client.wire import Frame

RENEW_S: Final = 240.0
RENEW_FLOOR_S: Final = 1.0
_LEAVE_S: Final = 5.0


class Subscriber(Protocol):
    """Takes events and, like one, every reply to a subscribe, the first and those of the renewals."""

    def receive(self, frame: Frame) -> None:
        """An event, or `conversation.subscribe.ok`. Must not wait."""
        ...

    def fail(self, error: ThreadkeepError) -> None:
        """The subscription has ended and will not come back."""
        ...


class Subscription:
    """One subscriber's lease on one conversation, over one connection.

    Renewed every 4 min, or at half of what the lease has left where that is sooner (a lease ends with its token), and
    after every reconnect. The service leases to connections: subscriptions of one conversation over one connection
    share the lease, and the last to leave gives it back.

    Args:
        connection: where the events come.
        conversation: its id.
        subscriber: takes them; registered before the request is sent, since events may overtake the reply.
    """

    def __init__(self, connection: Connection, conversation: str, subscriber: Subscriber) -> None:
        self._connection = connection
        self._conversation = conversation
        self._subscriber = subscriber
        self._due = asyncio.Event()
        self._registered = contextlib.ExitStack()
        self._task: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Self:
        """Subscribe.

        Raises:
            WireError: It was refused.
        """
        self._registered.enter_context(self._connection.listening(self._conversation, self._subscriber))
        self._registered.enter_context(self._connection.on_reopen(self.renew))
        try:
            lease_s = await self._subscribe()
        except BaseException:
            self._registered.close()
            raise
        self._task = asyncio.create_task(self._keep(lease_s), name="threadkeep lease")
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._task is not None:
            self._task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._task
        self._registered.close()
        if self._connection.is_listened(self._conversation) or not self._connection.is_up:
            return  # somebody else still needs the lease, or it has gone with its socket
        # A lost farewell costs the service some frames until the lease ends, and nobody anything else.
        with contextlib.suppress(ThreadkeepError):
            await self._connection.request(
                "conversation.unsubscribe", conversation=self._conversation, deadline_s=_LEAVE_S
            )

    def renew(self) -> None:
        """Subscribe again now."""
        self._due.set()

    async def _keep(self, lease_s: float) -> None:
        while True:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(min(RENEW_S, max(RENEW_FLOOR_S, lease_s / 2))):
                    await self._due.wait()
            self._due.clear()
            try:
                lease_s = await self._subscribe()
            except WireError as error:
                if not error.retryable:
                    self._subscriber.fail(error)
                    return
                lease_s = 0.0  # the request used its own deadline up: again, soon
            except ThreadkeepError as error:
                self._subscriber.fail(error)
                return

    async def _subscribe(self) -> float:
        """Subscribe, hand the reply on, and tell how many seconds the lease lasts."""
        reply = await self._connection.request("conversation.subscribe", conversation=self._conversation)
        self._subscriber.receive(reply)
        lease_ms = reply.get("lease_ms")
        return lease_ms / 1000 if isinstance(lease_ms, (int, float)) else 2 * RENEW_S
