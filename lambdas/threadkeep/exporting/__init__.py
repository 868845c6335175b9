"""Export files, form by form: pure writers that are given messages one after the other, and give bytes.

docs/protocol.md, section 7, says what the forms hold. None holds a conversation as a whole.
"""

from __future__ import annotations

from typing import Final

from threadkeep.domain.exports import Format
from threadkeep.exporting.chatgpt import ChatGPT
from threadkeep.exporting.form import Entry, Form
from threadkeep.exporting.jsonl import JsonLines
from threadkeep.exporting.markdown import Markdown

__all__ = ["FORMS", "Entry", "Form"]

FORMS: Final[dict[Format, Form]] = {"jsonl": JsonLines(), "chatgpt": ChatGPT(), "markdown": Markdown()}
