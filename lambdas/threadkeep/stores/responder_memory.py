"""Requests for answers kept in memory: the reference, and a fake for tests."""

from __future__ import annotations

from threadkeep.domain.errors import TierUnavailable
from threadkeep.ports import AnswerRequest


class ResponderMemory:
    """`threadkeep.ports.Responder` that remembers what it was asked.

    Attributes:
        requests: what was taken on, in order.
        unavailable: while set, nothing is taken on.
    """

    def __init__(self) -> None:
        self.requests: list[AnswerRequest] = []
        self.unavailable = False

    def start(self, request: AnswerRequest) -> None:
        """See `Responder`."""
        if self.unavailable:
            raise TierUnavailable("the responder in memory is told to be unavailable")
        self.requests.append(request)
