"""What the pages tell people to type is there to be typed."""

from __future__ import annotations

import re
import shlex
import subprocess
from pathlib import Path
from typing import Final

import pytest

from threadkeep_client.cli.commands import _parser

ROOT: Final = Path(__file__).parents[3]
PAGES: Final = [
    *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "SECURITY.md", "clients/python/README.md")),
    *sorted((ROOT / "docs").glob("*.md")),
]


def code_of(page: Path) -> list[str]:
    """Its lines of shell, and what stands in backticks."""
    text = page.read_text()
    blocks = re.findall(r"^ *```(\w*)\n(.*?)^ *```$", text, re.DOTALL | re.MULTILINE)
    shell = [line.strip() for language, block in blocks if language in {"", "sh"} for line in block.splitlines()]
    return shell + re.findall(r"`([^`\n]+)`", _prose(text))


def _prose(text: str) -> str:
    return re.sub(r"^ *```.*?^ *```$", "", text, flags=re.DOTALL | re.MULTILINE)


CODE: Final = [line for page in PAGES for line in code_of(page)]


def found(pattern: str) -> list[str]:
    """What the first group of a pattern is in the pages' code, each once."""
    return sorted({match for line in CODE for match in re.findall(pattern, line)})


def verbs() -> list[str]:
    """Every use of the command line, without its program and its comment."""
    uses = (re.match(r"(?:\.venv/bin/)?threadkeep ([a-z].*)", line) for line in CODE)
    return sorted({use[1].partition(" #")[0].strip() for use in uses if use})


def test_pages_are_read() -> None:
    assert {"demo", "test", "up", "down", "smoke"} <= set(found(r"\bmake ([a-z][a-z-]*)"))
    assert "operations.tombstones" in found(r"\bpython -m ([\w.]+)")
    assert {verb.split()[0] for verb in verbs()} >= {"chat", "history", "import", "export", "delete", "replay", "token"}


@pytest.mark.parametrize("target", found(r"\bmake ([a-z][a-z-]*)"))
def test_what_is_to_be_made_can_be_made(target: str) -> None:
    assert re.search(rf"^{target}:", (ROOT / "Makefile").read_text(), re.MULTILINE)


@pytest.mark.parametrize("module", found(r"\bpython -m ([\w.]+)"))
def test_a_module_runs_from_a_clone_as_it_is_typed(module: str) -> None:
    command = [".venv/bin/python", "-m", module, "--help"]
    done = subprocess.run(command, cwd=ROOT, env={}, capture_output=True, text=True, timeout=60, check=False)  # noqa: S603
    assert done.returncode == 0, done.stderr
    assert "usage:" in done.stdout


@pytest.mark.parametrize("program", found(r"(\.venv/bin/[\w-]+)"))
def test_a_program_is_where_it_is_said_to_be(program: str) -> None:
    assert (ROOT / program).exists()


@pytest.mark.parametrize("verb", verbs())
def test_the_command_line_takes_what_it_is_shown_with(verb: str) -> None:
    words = shlex.split(re.sub(r"\|\S+", "", verb.replace("[", "").replace("]", "")))
    if len(words) > 1:
        assert _parser().parse_args(words)
    else:  # just its name
        with pytest.raises(SystemExit) as ended:
            _parser().parse_args([*words, "--help"])
        assert ended.value.code == 0


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_what_a_page_leads_to_is_there(page: Path) -> None:
    text = _prose(page.read_text())
    links = [link for link in re.findall(r"\]\(([^)#]+)", text) if "://" not in link]
    assert [link for link in links if not (page.parent / link).exists()] == []
    named = set(re.findall(r"`((?:tests|lambdas|stacks|smoke|docs)/[\w/.-]+)`", text))
    assert sorted(name for name in named if not (ROOT / name).exists()) == []
