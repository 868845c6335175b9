"""The hot tier as a fleet of functions uses it: a connection for each, and whatever is noted of its absence."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from local.state import Address
from tests.support.gateway.bulkheads import REGION
from threadkeep import telemetry
from threadkeep.config import HotConfig
from threadkeep.domain.errors import HotUnavailable
from threadkeep.domain.model import ConversationKey
from threadkeep.domain.streams import AppendVerdict, Limits
from threadkeep.stores.hot_valkey import HotValkey
from threadkeep.stores.valkey_client import Library, ValkeyClient, connect


class _ClientPerThread(ValkeyClient, threading.local):
    """A sandbox serves one invocation at a time: no connection is dropped under another's command."""


class CountingHot(HotValkey):
    """Counts the verdicts on appends by their names: a test looks for what has to have happened."""

    def __init__(self, client: ValkeyClient, *, limits: Limits | None = None) -> None:
        super().__init__(client, region=REGION, limits=limits)
        self.verdicts: Counter[str] = Counter()

    def append(self, key: ConversationKey, stream: str, **said: Any) -> AppendVerdict:
        """See `HotStore.append`."""
        verdict = super().append(key, stream, **said)
        self.verdicts[type(verdict).__name__] += 1
        return verdict


@contextmanager
def hot_tier(address: Address, limits: Limits | None = None) -> Iterator[CountingHot]:
    """The hot tier in that Valkey, each thread with a connection of its own."""
    opened: list[Library] = []

    def connected() -> Library:
        library = connect(HotConfig(host=address.host, port=address.port), region=REGION, is_cluster=False)
        opened.append(library)
        return library

    try:
        yield CountingHot(_ClientPerThread(connected), limits=limits)
    finally:
        for library in opened:
            library.close()  # type: ignore[no-untyped-call]


@contextmanager
def absence_borne() -> Iterator[list[str]]:
    """Meanwhile handlers may note that the hot tier is away, and nothing else; gives what they said of it.

    Within the block of a deployment, which holds every other fault against them.
    """
    note, away = telemetry.note_fault, list[str]()

    def noting(what: str, error: BaseException) -> None:
        if isinstance(error, HotUnavailable):
            away.append(str(error))
        else:
            note(what, error)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(telemetry, "note_fault", noting)
        yield away
