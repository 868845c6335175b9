"""One table of routes: what the gateway is told, what the handlers serve, and what the protocol says are the same."""

from __future__ import annotations

import importlib
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

import pytest
from msgspec import inspect

from threadkeep.domain.commands import ANY, COMMANDS, Command, OpenStream
from threadkeep.schema import ROUTES

PROTOCOL: Final = Path(__file__).parents[2] / "docs" / "protocol.md"
BY_ACTION: Final[dict[str, type[Command]]] = {str(command.__struct_config__.tag): command for command in COMMANDS}


class Row(NamedTuple):
    """An action, as the protocol's table has it."""

    scope: str
    request: str


def rows() -> Iterator[tuple[str, Row]]:
    """The table's actions; two in one row are two."""
    _, _, table = PROTOCOL.read_text().partition("| action | scope | request | reply |\n|---|---|---|---|\n")
    for line in table.partition("\n\n")[0].splitlines():
        actions, scope, request, _ = (cell.strip() for cell in line.split("|")[1:5])
        for action in re.findall(r"`([a-z.]+)`", actions):
            yield action, Row(scope, request)


TABLE: Final = dict(rows())


def actions_of(bulkhead: str) -> list[str]:
    """The actions that a handler's own table serves."""
    routes = importlib.import_module(f"handlers.{bulkhead}").ROUTES
    return [str(command.__struct_config__.tag) for command in routes]


@pytest.mark.parametrize("bulkhead", sorted(ROUTES))
def test_a_handler_serves_the_routes_that_lead_to_it_and_no_others(bulkhead: str) -> None:
    assert sorted(actions_of(bulkhead)) == sorted(ROUTES[bulkhead])


def test_every_command_is_served_by_exactly_one_bulkhead() -> None:
    served = [action for bulkhead in ROUTES for action in actions_of(bulkhead)]
    assert sorted(served) == sorted(BY_ACTION)


def test_the_protocols_table_is_read() -> None:
    assert {"ping", "stream.append", "export.get"} <= TABLE.keys()


@pytest.mark.parametrize("action", sorted(BY_ACTION))
def test_the_protocol_names_the_scopes_of_every_action(action: str) -> None:
    scope = re.sub(r"\([^)]*\)", "", TABLE[action].scope)
    said = {
        "any": ANY,
        "as opened": OpenStream.scopes,
    }.get(scope, frozenset(word.strip() for word in scope.split(",")))
    assert said == BY_ACTION[action].scopes


@pytest.mark.parametrize("action", sorted(BY_ACTION))
def test_the_protocol_names_every_field_of_a_request_and_those_that_it_needs(action: str) -> None:
    named = dict(re.findall(r"`([a-z_0-9]+)(\??)`", TABLE[action].request))
    info = inspect.type_info(BY_ACTION[action])
    assert isinstance(info, inspect.StructType)
    fields = {field.encode_name: field.required for field in info.fields if field.encode_name != "ref"}
    assert fields.keys() <= named.keys()
    assert not [name for name, required in fields.items() if required and named[name] == "?"]
