"""What is said in tests of the client: pieces of an answer, with characters of one to four bytes and joined ones."""

from __future__ import annotations

PIECES = ["The Nile, ", "says one; ", "the Amazon, ", "says another. ", "🏞️ ", "あ", "."]
TEXT = "".join(PIECES)
