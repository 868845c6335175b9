"""Manifests in memory: the reference, and a fake for tests."""

from __future__ import annotations

from collections.abc import Sequence

from threadkeep.domain.archive import Manifest
from threadkeep.domain.model import ConversationKey
from threadkeep.stores.warm_memory import WarmMemory


class ManifestsMemory:
    """`threadkeep.ports.ManifestStore` beside a warm tier in memory, as manifests lie in the same table."""

    def __init__(self, warm: WarmMemory) -> None:
        self._warm = warm

    def read(self, key: ConversationKey) -> tuple[Manifest, ...]:
        """See `ManifestStore`."""
        self._warm.check_available()
        return tuple(manifest for _, manifest in sorted(self._warm.manifests.get(key, {}).items()))

    def put(self, key: ConversationKey, manifest: Manifest) -> Manifest | None:
        """See `ManifestStore`."""
        self._warm.check_available()
        manifests = self._warm.manifests.setdefault(key, {})
        existing = manifests.get(manifest.first)
        manifests.setdefault(manifest.first, manifest)
        return existing

    def remove_messages(self, key: ConversationKey, messages: Sequence[str]) -> None:
        """See `ManifestStore`."""
        self._warm.check_available()
        held = self._warm.messages.get(key, {})
        for message in messages:
            held.pop(message, None)
