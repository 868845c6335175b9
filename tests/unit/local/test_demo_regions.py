from __future__ import annotations

import io
from pathlib import Path

import pytest
from rich.console import Console

from local import commands
from local.cloud import Cloud
from local.demo_regions import Leg, report
from local.dialogue import Tally
from local.state import Address, RegionState
from tests.unit.local.test_state import STATE

HOME, OTHER = "us-east-1", "eu-central-1"


def leg(*differences: str) -> Leg:
    tally = Tally(conversations=2, messages=8, first_delta_s=[0.1, 0.2, 0.3], differences=[*differences])
    return Leg(places={"user": OTHER, "worker": OTHER, "device": HOME}, tally=tally, hot=1)


def shown(legs: list[Leg]) -> tuple[int, list[str]]:
    console = Console(file=io.StringIO(), width=80)
    code = report(legs, console)
    assert isinstance(console.file, io.StringIO)
    return code, console.file.getvalue().splitlines()


def test_a_row_fits_a_terminal_and_tells_all_counts() -> None:
    code, lines = shown([leg()])
    (row,) = [line.split() for line in lines if OTHER in line]
    assert row == [OTHER, OTHER, HOME, "2", "8", "3", "1", "0"]
    assert (code, lines[-1]) == (0, "differences: 0")


def test_what_differs_is_told_and_fails() -> None:
    code, lines = shown([leg(), leg("context in us-east-1: m is missing")])
    assert code == 1
    assert lines[-2:] == ["differences: 1", "context in us-east-1: m is missing"]


def test_a_cloud_of_two_regions_serves_no_demo_of_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    eu = RegionState(region=OTHER, url="ws://127.0.0.1:1/eu", bucket="b-eu", valkey=Address(host="127.0.0.1", port=2))
    two = type(STATE)(**{name: getattr(STATE, name) for name in STATE.__struct_fields__} | {"others": (eu,)})
    monkeypatch.setattr(Cloud, "state", two)
    said: list[str] = []
    monkeypatch.setattr("builtins.print", lambda text, **_: said.append(text))
    assert commands.main(["--folder", str(tmp_path), "demo", "--regions", "1"]) == 1
    assert said == ["local cloud: the local cloud that is up has 2 region(s), not 1: `make down` first"]
