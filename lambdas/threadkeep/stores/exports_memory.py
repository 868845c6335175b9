"""Exports in memory: the reference, and a fake for tests."""

from __future__ import annotations

from collections.abc import Iterable

from threadkeep.domain.exports import Export


class ExportsMemory:
    """`threadkeep.ports.ExportStore` on a dictionary."""

    def __init__(self) -> None:
        self._exports: dict[tuple[str, str], Export] = {}

    def put(self, tenant: str, export: Export) -> None:
        """See `ExportStore`."""
        self._exports[tenant, export.id] = export

    def read(self, tenant: str, export: str) -> Export | None:
        """See `ExportStore`."""
        return self._exports.get((tenant, export))


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

    def presign_get(self, tenant: str, export: str, *, name: str, lives_s: int) -> str:
        """See `ExportFiles`. A URL that leads nowhere."""
        return f"memory://exports/{tenant}/{export}?name={name}&lives={lives_s}"
