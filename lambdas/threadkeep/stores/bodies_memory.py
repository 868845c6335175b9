"""Large bodies in memory: the reference, and a fake for tests."""

from __future__ import annotations

from threadkeep.domain.errors import WarmUnavailable
from threadkeep.domain.model import ConversationKey
from threadkeep.stores import object_keys


class BodiesMemory:
    """`threadkeep.ports.BodyStore` on a dictionary.

    Attributes:
        objects: the bodies by object key.
        unavailable: while set, every call raises `WarmUnavailable`.
    """

    def __init__(self) -> None:
        self.objects: dict[str, bytes] = {}
        self.unavailable = False

    def put(self, key: ConversationKey, message: str, body: bytes) -> str:
        """See `BodyStore`."""
        self._check_available()
        object_key = object_keys.body(key, message, body)
        self.objects.setdefault(object_key, body)
        return object_key

    def get(self, pointer: str) -> bytes:
        """See `BodyStore`. Raises `Unreadable` where it is missing or damaged."""
        self._check_available()
        return object_keys.check_body(pointer, self.objects.get(pointer))

    def _check_available(self) -> None:
        if self.unavailable:
            raise WarmUnavailable("the bodies in memory are told to be unavailable")
