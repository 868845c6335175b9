"""What is wrong with what was given to a command."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from threadkeep_client.errors import BadRequestError

_ID: Final = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}")


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
            if name is not None and not _ID.fullmatch(name):
                raise CommandError(f"{name} is no id: `threadkeep history` lists those of conversations") from error
        raise
