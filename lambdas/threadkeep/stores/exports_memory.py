"""Exports in memory: the reference, and a fake for tests."""

from __future__ import annotations

import threading
from collections.abc import Iterable

from threadkeep.domain import times
from threadkeep.domain.bounds import EXPORTS_RUNNING_MAX
from threadkeep.domain.errors import WarmUnavailable
from threadkeep.domain.exports import Export


class ExportsMemory:
    """`threadkeep.ports.ExportStore` on dictionaries.

    Attributes:
        unavailable: while set, every call raises `WarmUnavailable`.
    """

    def __init__(self) -> None:
        self.unavailable = False
        self._exports: dict[tuple[str, str], Export] = {}
        self._places: dict[tuple[str, str], dict[str, int]] = {}
        self._lock = threading.Lock()

    def claim(self, tenant: str, export: Export, *, now_ms: int, until_ms: int) -> bool:
        """See `ExportStore`."""
        self._check_available()
        with self._lock:
            places = self._places.setdefault((tenant, export.owner), {})
            for taken_by in [taken_by for taken_by, until in places.items() if until <= now_ms]:
                del places[taken_by]
            if export.id not in places and len(places) >= EXPORTS_RUNNING_MAX:
                return False
            places[export.id] = until_ms
            return True

    def release(self, tenant: str, export: Export) -> None:
        """See `ExportStore`."""
        self._check_available()
        with self._lock:
            self._places.get((tenant, export.owner), {}).pop(export.id, None)

    def put(self, tenant: str, export: Export) -> bool:
        """See `ExportStore`."""
        self._check_available()
        with self._lock:
            standing = self._exports.get((tenant, export.id))
            if standing is not None and standing.state != "running":
                return False
            self._exports[tenant, export.id] = export
            return True

    def read(self, tenant: str, export: str, *, now_ms: int) -> Export | None:
        """See `ExportStore`."""
        self._check_available()
        found = self._exports.get((tenant, export))
        return None if found is None or times.from_rfc3339(found.expires_at) <= now_ms else found

    def _check_available(self) -> None:
        if self.unavailable:
            raise WarmUnavailable("the exports in memory are told to be unavailable")


class ExportFilesMemory:
    """`threadkeep.ports.ExportFiles` on a dictionary.

    Attributes:
        files: content by tenant and export.
    """

    def __init__(self) -> None:
        self.files: dict[tuple[str, str], bytes] = {}

    def write(self, tenant: str, export: str, pieces: Iterable[bytes]) -> int:
        """See `ExportFiles`."""
        self.files[tenant, export] = b"".join(pieces)
        return len(self.files[tenant, export])

    def presign_get(self, tenant: str, export: str, *, region: str, name: str, lives_s: int) -> str:
        """See `ExportFiles`. A URL that leads nowhere."""
        return f"memory://{region}/exports/{tenant}/{export}?name={name}&lives={lives_s}"
