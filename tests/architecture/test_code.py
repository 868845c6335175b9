"""Rules of the house that no linter of ours holds."""

from __future__ import annotations

import ast
import re
import tomllib
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any, Final

import pytest

from threadkeep.domain import bounds

ROOT: Final = Path(__file__).parents[2]
LAMBDAS: Final = ROOT / "lambdas"
SOURCES: Final = sorted(
    path
    for folder in ("lambdas", "stacks", "local", "smoke", "clients/python")
    for path in (ROOT / folder).rglob("*.py")
)
PINNED: Final = re.compile(r"^([A-Za-z0-9_.-]+)(?:\[[^\]]*\])?==([^\s;]+)", re.MULTILINE)


# --- requirements ---------------------------------------------------------------------------------------------


def pins(name: str) -> dict[str, str]:
    """Packages and versions of a file of pins."""
    return dict(PINNED.findall((ROOT / "requirements" / name).read_text()))


def test_the_lambdas_run_the_versions_that_are_tested() -> None:
    bundled, tested = pins("lambda.txt"), pins("dev.txt")
    assert bundled
    assert {name: tested.get(name) for name in bundled} == bundled


# --- times ----------------------------------------------------------------------------------------------------

TAKES_ZONE_AT: Final = {"now": 0, "fromtimestamp": 1, "datetime": 7}
"""At which place each takes its time zone, unless by name."""
NAIVE_ALWAYS: Final = frozenset({"utcnow", "utcfromtimestamp", "today"})


def naive_datetimes(tree: ast.AST) -> Iterator[int]:
    """Lines that make a time without a zone."""
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call):
            continue
        function = node.func
        name = function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")
        of_datetime = name == "datetime" or (
            isinstance(function, ast.Attribute) and "datetime" in ast.dump(function.value)
        )
        if not of_datetime:
            continue
        if name in NAIVE_ALWAYS:
            yield node.lineno
        elif name in TAKES_ZONE_AT and len(node.args) <= TAKES_ZONE_AT[name]:
            zones = [word.value for word in node.keywords if word.arg in {"tz", "tzinfo"}]
            if not zones or (isinstance(zones[0], ast.Constant) and zones[0].value is None):
                yield node.lineno


def test_no_time_is_without_its_zone() -> None:
    found = [
        f"{path.relative_to(ROOT)}:{line}" for path in SOURCES for line in naive_datetimes(ast.parse(path.read_text()))
    ]
    assert found == []


@pytest.mark.parametrize(
    ("code", "is_naive"),
    [
        ("datetime.now()", True),
        ("datetime.datetime.utcnow()", True),
        ("datetime.fromtimestamp(7)", True),
        ("datetime(1970, 1, 1)", True),
        ("datetime.now(tz=None)", True),
        ("datetime.now(UTC)", False),
        ("datetime(1970, 1, 1, tzinfo=UTC)", False),
        ("clock.now()", False),
    ],
)
def test_a_naive_time_is_seen(code: str, is_naive: bool) -> None:  # noqa: FBT001 -- a case
    assert bool(list(naive_datetimes(ast.parse(code)))) is is_naive


# --- bounds ---------------------------------------------------------------------------------------------------


@cache
def used_names() -> frozenset[str]:
    """Every name that the lambdas use, apart from where the bounds are written down."""
    nodes = [
        node
        for path in LAMBDAS.rglob("*.py")
        if path != Path(bounds.__file__)
        for node in ast.walk(ast.parse(path.read_text()))
    ]
    plain = {node.id for node in nodes if isinstance(node, ast.Name)}
    return frozenset(plain | {node.attr for node in nodes if isinstance(node, ast.Attribute)})


@pytest.mark.parametrize("bound", [name for name in vars(bounds) if name.isupper()])
def test_every_bound_is_held_by_somebody(bound: str) -> None:
    assert bound in used_names()


# --- layers ---------------------------------------------------------------------------------------------------


def contracts() -> list[dict[str, Any]]:
    """The import contracts."""
    with (ROOT / "pyproject.toml").open("rb") as file:
        found: list[dict[str, Any]] = tomllib.load(file)["tool"]["importlinter"]["contracts"]
    return found


def test_every_module_of_the_lambdas_stands_in_a_layer() -> None:
    layers = next(contract["layers"] for contract in contracts() if contract["type"] == "layers")
    named = {name.strip() for layer in layers for name in layer.split("|")}
    there = {
        f"threadkeep.{path.stem}"
        for path in (LAMBDAS / "threadkeep").iterdir()
        if path.suffix == ".py" or (path / "__init__.py").exists()
    } - {"threadkeep.__init__"}
    there |= {path.name for path in LAMBDAS.iterdir() if (path / "__init__.py").exists()} - {"threadkeep"}
    assert there == named


def test_the_asset_root_is_no_package() -> None:
    assert not (LAMBDAS / "__init__.py").exists()
