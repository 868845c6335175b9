"""What is wrong with what was given to a command."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from threadkeep_client.errors import BadRequestError
from threadkeep_client.ids import ID_PATTERN


class CommandError(Exception):
    """A mistake in arguments, environment or files; the message is one line that says what to do."""


@contextmanager
def naming_wrong_ids(conversation: str | None, *, leaf: str | None = None) -> Iterator[None]:
    """Where the service refuses a request for the form of an id that was given, say which one it is.

    Args:
        conversation: its id, if one was given.
        leaf: a message's, or `all`, if one was given.

    Raises:
        CommandError: The request in the block was refused as malformed, and one of these is no id.
    """
    try:
        yield
    except BadRequestError as error:
        if conversation is not None and not ID_PATTERN.fullmatch(conversation):
            told = f"{conversation} is no id: `threadkeep history` lists those of conversations"
            raise CommandError(told) from error
        if leaf is not None and leaf != "all" and not ID_PATTERN.fullmatch(leaf):
            told = f"--leaf {leaf} is no id of a message, nor `all`: with --leaf all, `threadkeep history` shows them"
            raise CommandError(told) from error
        raise
