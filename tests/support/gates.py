"""Stores at which readers meet: one that lets nobody through before a gate opens, one that says when it was loaded."""

from __future__ import annotations

import threading
from typing import Any

_PATIENCE_S = 30


class Gated:
    """A cold store that answers once the gate is open, and counts what it is asked for."""

    def __init__(self, store: Any) -> None:
        self._store = store
        self.gate = threading.Event()
        self.reads = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    def read(self, *args: Any, **kwargs: Any) -> Any:
        """See `ColdStore`."""
        self.reads += 1
        assert self.gate.wait(timeout=_PATIENCE_S)
        return self._store.read(*args, **kwargs)


class Loading:
    """A hot tier that says when it was loaded."""

    def __init__(self, store: Any, loaded: threading.Event) -> None:
        self._store = store
        self._loaded = loaded

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    def load(self, *args: Any, **kwargs: Any) -> None:
        """See `HotStore`."""
        self._store.load(*args, **kwargs)
        self._loaded.set()
