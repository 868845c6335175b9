"""What is caught, missed, stale or without end, on a project of one function."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from tests.faults import trial
from tests.faults.fault import Fault
from tests.faults.scratch import Runner
from tests.faults.trial import Outcome, UnsoundError, check_sound, try_all

ADD = Fault(
    name="add",
    says="Sums are wrong.",
    file="adding.py",
    text="return a + b",
    instead="return a - b",
    caught_by=("test_adding.py::test_sums",),
)


@pytest.fixture
def sound(tmp_path: Path) -> Path:
    folder = tmp_path / "sound"
    folder.mkdir()
    (folder / "adding.py").write_text("def add(a, b):\n    return a + b\n")
    (folder / "test_adding.py").write_text(
        "from adding import add\n\ndef test_sums():\n    assert add(1, 2) == 3\n\ndef test_nothing():\n    add(1, 2)\n"
    )
    return folder


def tried(sound: Path, **changes: object) -> Outcome:
    """What becomes of the fault, with these changes to it."""
    (outcome,) = try_all(Runner(), sound, [msgspec.structs.replace(ADD, **changes)], started=lambda _: None)
    assert sorted(path.name for path in sound.parent.iterdir()) == ["sound"], "its copy is gone"
    return outcome


def test_what_a_test_notices_is_caught_by_it(sound: Path) -> None:
    outcome = tried(sound)
    assert (outcome.verdict, outcome.why) == ("caught", "test_adding.py::test_sums - assert -1 == 3")
    assert (sound / "adding.py").read_text() == "def add(a, b):\n    return a + b\n"


def test_what_no_test_notices_is_missed(sound: Path) -> None:
    assert tried(sound, caught_by=("test_adding.py::test_nothing",)).verdict == "missed"


@pytest.mark.parametrize(
    "change",
    [
        {"text": "return b + a"},
        {"text": "a"},
        {"file": "gone.py"},
        {"caught_by": ("test_adding.py::test_gone",)},
        {"caught_by": ()},
        {"instead": "return ("},
    ],
    ids=["not there", "there twice", "no such file", "no such test", "no test named", "does not even run"],
)
def test_what_cannot_be_planted_is_stale(sound: Path, change: dict[str, object]) -> None:
    assert tried(sound, **change).verdict == "stale"


def test_what_never_ends_is_ended(sound: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trial, "FAULT_S_MAX", 3)
    assert tried(sound, instead="while True: pass").verdict == "timed out"


def test_tests_that_fail_by_themselves_tell_nothing(sound: Path) -> None:
    check_sound(Runner(), sound, [ADD])
    (sound / "adding.py").write_text("def add(a, b):\n    return 0\n")
    with pytest.raises(UnsoundError, match=r"test_adding\.py::test_sums"):
        check_sound(Runner(), sound, [ADD])
