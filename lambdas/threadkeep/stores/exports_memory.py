"""Exports in memory: the reference, and a fake for tests."""

from __future__ import annotations

import hashlib
import itertools
import threading
from collections.abc import Sequence

from threadkeep.domain import times
from threadkeep.domain.bounds import EXPORTS_RUNNING_MAX
from threadkeep.domain.errors import ExportFileGone, WarmUnavailable
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
            if standing is not None and (standing.state, standing.notes) != ("running", export.notes):
                return False
            self._exports[tenant, export.id] = export
            return True

    def hand_on(self, tenant: str, export: Export, *, before: str | None) -> bool:
        """See `ExportStore`."""
        self._check_available()
        with self._lock:
            standing = self._exports.get((tenant, export.id))
            if standing is None or standing.state != "running" or standing.notes not in {before, export.notes}:
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
    """`threadkeep.ports.ExportFiles` on dictionaries.

    Attributes:
        files: content by tenant and export.
        uploads: parts by number, each with its tag, by tenant, and export and upload: files that are not finished.
        notes: content by tenant, and export and name.
    """

    def __init__(self) -> None:
        self.files: dict[tuple[str, str], bytes] = {}
        self.uploads: dict[tuple[str, tuple[str, str]], dict[int, tuple[str, bytes]]] = {}
        self.notes: dict[tuple[str, tuple[str, str]], bytes] = {}
        self._begun = itertools.count(1)

    def begin(self, tenant: str, export: str) -> str:
        """See `ExportFiles`."""
        upload = f"upload-{next(self._begun)}"
        self.uploads[tenant, (export, upload)] = {}
        return upload

    def add(self, tenant: str, export: str, upload: str, *, number: int, content: bytes) -> str:
        """See `ExportFiles`."""
        tag = hashlib.sha256(content).hexdigest()
        self._parts(tenant, export, upload)[number] = (tag, content)
        return tag

    def finish(self, tenant: str, export: str, upload: str, parts: Sequence[str]) -> None:
        """See `ExportFiles`."""
        found = self._parts(tenant, export, upload)
        if [found.get(number, ("",))[0] for number in range(1, len(parts) + 1)] != list(parts):
            raise ExportFileGone("a part is not there, or another")
        self.files[tenant, export] = b"".join(found[number][1] for number in range(1, len(parts) + 1))
        del self.uploads[tenant, (export, upload)]

    def abort(self, tenant: str, export: str, upload: str) -> None:
        """See `ExportFiles`."""
        self.uploads.pop((tenant, (export, upload)), None)

    def note(self, tenant: str, export: str, name: str, content: bytes) -> None:
        """See `ExportFiles`."""
        self.notes[tenant, (export, name)] = content

    def noted(self, tenant: str, export: str, name: str) -> bytes | None:
        """See `ExportFiles`."""
        return self.notes.get((tenant, (export, name)))

    def _parts(self, tenant: str, export: str, upload: str) -> dict[int, tuple[str, bytes]]:
        found = self.uploads.get((tenant, (export, upload)))
        if found is None:
            raise ExportFileGone("there is no such upload")
        return found

    def presign_get(self, tenant: str, export: str, *, region: str, name: str, lives_s: int) -> str:
        """See `ExportFiles`. A URL that leads nowhere."""
        return f"memory://{region}/exports/{tenant}/{export}?name={name}&lives={lives_s}"
