"""The file of an export while it grows: pieces in, parts out, and a mark to which it can be taken back."""

from __future__ import annotations

from collections.abc import Iterable

from threadkeep.domain.bounds import EXPORT_PART_BYTES
from threadkeep.domain.exports import Growing
from threadkeep.ports import ExportFiles


class ExportFile:
    """A file of parts, each of `EXPORT_PART_BYTES` but for the last. It holds two of them at most.

    What is written behind the mark is not taken back in the store: whoever goes on from there writes over it.

    Args:
        files: where it lies.
        tenant, export: whose file it is.
        begun: as far as it is; the mark is there.
    """

    def __init__(self, files: ExportFiles, tenant: str, export: str, begun: Growing) -> None:
        self._files = files
        self._tenant = tenant
        self._export = export
        self._upload = begun.upload
        self._parts = list(begun.parts)
        self._held = [begun.held]
        self._held_bytes = len(begun.held)
        self.mark()

    @property
    def size_bytes(self) -> int:
        """All that has been written."""
        return len(self._parts) * EXPORT_PART_BYTES + self._held_bytes

    def add(self, pieces: Iterable[bytes]) -> None:
        """Write on.

        Raises:
            ExportFileGone: its upload is not there any more.
        """
        for piece in pieces:
            self._held.append(piece)
            self._held_bytes += len(piece)
            if self._held_bytes >= EXPORT_PART_BYTES:
                self._send_parts()

    def mark(self) -> None:
        """Remember how far it is."""
        self._marked = (len(self._parts), self._held, len(self._held))

    def marked(self) -> Growing:
        """The file as it was at the mark."""
        parts, held, pieces = self._marked
        return Growing(self._upload, tuple(self._parts[:parts]), b"".join(held[:pieces]))

    def finish(self) -> None:
        """Send what is held, and have the file made of all parts.

        Raises:
            ExportFileGone: its upload is not there any more, or another run has put other parts.
        """
        parts = list(self._parts)
        if self._held_bytes or not parts:
            parts.append(self._send(len(parts) + 1, b"".join(self._held)))
        self._files.finish(self._tenant, self._export, self._upload, parts)

    def abort(self) -> None:
        """Let it go."""
        self._files.abort(self._tenant, self._export, self._upload)

    def _send_parts(self) -> None:
        content = memoryview(b"".join(self._held))
        while len(content) >= EXPORT_PART_BYTES:
            self._parts.append(self._send(len(self._parts) + 1, bytes(content[:EXPORT_PART_BYTES])))
            content = content[EXPORT_PART_BYTES:]
        self._held, self._held_bytes = [bytes(content)], len(content)  # a list of its own: the mark keeps the other

    def _send(self, number: int, content: bytes) -> str:
        return self._files.add(self._tenant, self._export, self._upload, number=number, content=content)
