"""The commands and their arguments."""

from __future__ import annotations

import argparse
import asyncio
from collections.abc import Coroutine
from importlib.metadata import version
from pathlib import Path
from typing import Final

from threadkeep_client.cli.chat import chat
from threadkeep_client.cli.deleting import delete
from threadkeep_client.cli.errors import CommandError
from threadkeep_client.cli.exporting import FORMATS, ExportOptions, export_file
from threadkeep_client.cli.history import list_conversations, show_history
from threadkeep_client.cli.importing import ImportOptions, import_file
from threadkeep_client.cli.replay import ReplaySettings, replay
from threadkeep_client.cli.target import DEFAULT_SUB, DEFAULT_TENANT, LocalCloud, Target

_SCOPES: Final = "chat produce"
_CONCURRENCY_MAX: Final = 64


def run(arguments: list[str] | None) -> int:
    """Parse and run.

    Raises:
        CommandError: Something that was given is wrong.
        ThreadkeepError: The deployment cannot be reached, or refuses.
    """
    options = _parser().parse_args(arguments)
    if options.command == "token":
        cloud = LocalCloud.find(Path.cwd())
        print(cloud.mint(scope=options.scope, sub=options.sub, tenant=options.tenant, minutes=options.minutes))
        return 0
    target = Target.find(url=options.url, token=options.token, folder=Path.cwd())
    running: Coroutine[None, None, int]
    match options.command:
        case "chat":
            running = chat(target, options.conversation, echo=options.echo)
        case "history" if options.conversation is None:
            if options.leaf is not None:
                raise CommandError("--leaf ends a branch of a conversation: say which one, by its id")
            running = list_conversations(target, as_json=options.json)
        case "history":
            running = show_history(target, options.conversation, leaf=options.leaf, as_json=options.json)
        case "import":
            asked = ImportOptions(as_json=options.json, new_ids=options.new_ids, concurrency=options.concurrency)
            running = import_file(target, options.file, asked)
        case "export":
            wanted = ExportOptions(form=options.format, path=options.output, as_json=options.json)
            running = export_file(target, options.conversation, wanted)
        case "delete":
            running = delete(target, options.conversation, as_json=options.json)
        case _:
            settings = ReplaySettings(
                check=options.check, as_json=options.json, limit=options.limit, concurrency=options.concurrency
            )
            running = replay(target, options.file, settings)
    return asyncio.run(running)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="threadkeep", description="Talk to a Threadkeep deployment.")
    parser.add_argument("--version", action="version", version=f"%(prog)s {version('threadkeep-client')}")
    commands = parser.add_subparsers(dest="command", required=True)

    token = commands.add_parser("token", help="print a token of the local cloud")
    token.add_argument("--sub", default=DEFAULT_SUB, help="the user (%(default)s)")
    token.add_argument("--tenant", default=DEFAULT_TENANT, help="the user's tenant (%(default)s)")
    token.add_argument("--scope", default=_SCOPES, help="space separated: chat, produce, admin (%(default)s)")
    token.add_argument("--minutes", type=_at_least_one, default=60, help="how long it lives (%(default)s)")

    where = argparse.ArgumentParser(add_help=False)
    where.add_argument("--url", help="address of the deployment (else THREADKEEP_URL, else the local cloud that is up)")
    where.add_argument("--token", help="of the user who asks (else THREADKEEP_TOKEN, else minted by the local cloud)")

    talk = commands.add_parser("chat", parents=[where], help="write messages, and see them answered as it is written")
    talk.add_argument("conversation", nargs="?", help="its id; absent: a new one")
    talk.add_argument("--echo", action="store_true", help="where nobody answers: every message is answered with itself")

    show = commands.add_parser("history", parents=[where], help="print a conversation, or list them")
    show.add_argument("conversation", nargs="?", help="its id; absent: list the conversations")
    show.add_argument(
        "--leaf", help="the branch that ends at this message; `all`: every branch; absent: where it was left"
    )
    show.add_argument("--json", action="store_true", help="one JSON object a line")

    bring = commands.add_parser(
        "import",
        parents=[where],
        help="import conversations that were exported elsewhere",
        description="Import conversations that were exported elsewhere. Messages keep their dates; the conversations "
        "count as active from the import on, in the list and for their retention.",
    )
    bring.add_argument("file", type=Path, help="of ChatGPT, Claude or Threadkeep: a JSON file, a zip, or a folder")
    bring.add_argument("--json", action="store_true", help="one line of JSON: what was imported, what refused, and why")
    bring.add_argument("--new-ids", action="store_true", help="other ids than any import before: everything is new")
    bring.add_argument("--concurrency", type=_concurrency, default=4, help="conversations at once (%(default)s)")

    take = commands.add_parser("export", parents=[where], help="export a conversation, or all of yours, to a file")
    take.add_argument("conversation", nargs="?", help="its id; absent: all of them")
    take.add_argument("--format", choices=FORMATS, default=FORMATS[0], help="form of the file (%(default)s)")
    take.add_argument("-o", "--output", type=Path, help="the file; absent: standard output")
    take.add_argument("--json", action="store_true", help="one line of JSON: what the file holds; needs --output")

    end = commands.add_parser("delete", parents=[where], help="delete a conversation for good; tells its receipt")
    end.add_argument("conversation", help="its id")
    end.add_argument("--json", action="store_true", help="the receipt as JSON, a line whenever it has changed")

    again = commands.add_parser("replay", parents=[where], help="send a file of conversations; read back and compare")
    again.add_argument("file", type=Path, help="JSON Lines: {title, messages: [{role, text, model?, alternates?}]}")
    again.add_argument("--check", action="store_true", help="watch, read back, compare; exit 1 on any difference")
    again.add_argument("--json", action="store_true", help="one line of JSON in place of the table")
    again.add_argument("--limit", type=_at_least_one, help="only so many conversations")
    again.add_argument("--concurrency", type=_concurrency, default=4, help="conversations at once (%(default)s)")
    return parser


def _at_least_one(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError("must be a whole number, at least 1")
    return int(text)


def _concurrency(text: str) -> int:
    number = _at_least_one(text)
    if number > _CONCURRENCY_MAX:
        raise argparse.ArgumentTypeError(f"at most {_CONCURRENCY_MAX}")
    return number
