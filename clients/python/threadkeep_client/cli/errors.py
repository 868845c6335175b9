"""What is wrong with what was given to a command."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from threadkeep_client.errors import BadRequestError
from threadkeep_client.ids import ID_PATTERN


class CommandError(Exception):
    """A mistake in arguments, environment or files; the message is one line that says what to do."""


@contextmanager
def naming_wrong_ids(*ids: str | None) -> Iterator[None]:
    """Where the service refuses a request for the form of an id that was given, say which one it is.

    Raises:
        CommandError: The request in the block was refused as malformed, and one of these is no id.
    """
    try:
        yield
    except BadRequestError as error:
        for name in ids:
            if name is not None and not ID_PATTERN.fullmatch(name):
                raise CommandError(f"{name} is no id: `threadkeep history` lists those of conversations") from error
        raise
