"""Zstandard (RFC 8878): the standard library's from Python 3.14 on, which the functions run, its backport before.

``compress`` makes one frame; ``decompress`` takes one or several as one, and raises on anything else.
"""

from __future__ import annotations

import sys

if sys.version_info >= (3, 14):
    from compression.zstd import compress, decompress
else:
    from backports.zstd import compress, decompress

__all__ = ["compress", "decompress"]
