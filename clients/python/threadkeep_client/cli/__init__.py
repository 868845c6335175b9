"""The command line: `threadkeep token|chat|history|import|export|delete|replay`.

Exit codes: 0 done · 1 `replay --check` found differences, or not all of an import or export is there · 2 something was
wrong with what was given, or nobody answers: one line on stderr · 130 interrupted.
"""

from __future__ import annotations

import os
import sys

from threadkeep_client.cli.errors import CommandError
from threadkeep_client.errors import ThreadkeepError

WRONG = 2
INTERRUPTED = 130
PIPE_CLOSED = 141


def main(arguments: list[str] | None = None) -> int:
    """Run a command; returns the exit code."""
    try:
        from threadkeep_client.cli.commands import run  # noqa: PLC0415 -- only here can its absence be told in a line
    except ImportError as error:
        return _complain(f"the command line needs {error.name}: pip install 'threadkeep-client[cli]'", WRONG)
    try:
        return run(arguments)
    except KeyboardInterrupt:
        return _complain("interrupted", INTERRUPTED)
    except BrokenPipeError:
        # Whoever read us has gone. Nothing may be written any more, not by the interpreter's last flush either.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return PIPE_CLOSED
    except (CommandError, ThreadkeepError) as error:
        return _complain(str(error), WRONG)
    except BaseExceptionGroup as group:
        return _complain(str(_first(group)), WRONG)


def _first(group: BaseExceptionGroup[BaseException]) -> BaseException:
    """What went wrong first, where several tasks ran; whatever is no error of ours is raised as it is."""
    error = group.exceptions[0]
    if isinstance(error, BaseExceptionGroup):
        return _first(error)
    if not isinstance(error, (CommandError, ThreadkeepError)):
        raise error
    return error


def _complain(line: str, code: int) -> int:
    print(f"threadkeep: {' '.join(line.split())}", file=sys.stderr)
    return code
