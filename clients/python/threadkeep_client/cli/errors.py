"""What is wrong with what was given to a command."""

from __future__ import annotations


class CommandError(Exception):
    """A mistake in arguments, environment or files; the message is one line that says what to do."""
