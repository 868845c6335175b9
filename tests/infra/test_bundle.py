"""The code asset: what is in it, and when it is built anew."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from stacks import bundle
from stacks.app import ROOT
from stacks.bundle import Bundle, BundleError

OF_THE_RUNTIME = {"boto3", "botocore", "urllib3"}  # the last is what botocore itself stands on, and raises
NEW_IN_ITS_PYTHON = {"compression"}  # 3.14, the functions' own
OF_AN_OLDER_PYTHON = {"backports"}  # the same before 3.14; imported by no other
ONLY_FOR_TYPES = "mypy_boto3_"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A project with nothing to install."""
    for name, text in {
        "requirements/lambda.txt": "# nothing\n",
        "lambdas/handlers/stream.py": "handler = None\n",
        "lambdas/threadkeep/lua/append.lua": "return 1\n",
        "lambdas/threadkeep/__pycache__/x.pyc": "old\n",
    }.items():
        write(tmp_path / name, text)
    return tmp_path


@pytest.fixture(scope="module")
def for_lambda() -> Bundle:
    return bundle.build(ROOT, "arm64")


def test_it_holds_the_sources_as_they_lie(root: Path) -> None:
    built = bundle.build(root, "host")
    assert built.folder == root / ".build" / "bundle" / "host"
    assert files(built.folder) == {"handlers/stream.py", "threadkeep/lua/append.lua"}


def test_what_has_not_changed_is_not_built_again(root: Path) -> None:
    first = bundle.build(root, "host")
    mark = first.folder / "mark"
    mark.touch()
    assert bundle.build(root, "host") == first
    assert mark.exists()


def test_a_changed_or_deleted_source_is_brought_up_to_date(root: Path) -> None:
    first = bundle.build(root, "host")
    write(root / "lambdas" / "handlers" / "send.py", "handler = 1\n")
    (root / "lambdas" / "handlers" / "stream.py").unlink()
    second = bundle.build(root, "host")
    assert files(second.folder) == {"handlers/send.py", "threadkeep/lua/append.lua"}
    assert second.digest != first.digest


def test_a_changed_requirement_installs_from_nothing(root: Path) -> None:
    first = bundle.build(root, "host")
    (first.folder / "left_over.py").touch()
    write(root / "requirements" / "lambda.txt", "# still nothing\n")
    second = bundle.build(root, "host")
    assert "left_over.py" not in files(second.folder)
    assert second.digest != first.digest


def test_a_build_that_was_cut_short_is_done_again(root: Path) -> None:
    first = bundle.build(root, "host")
    (root / ".build" / "bundle" / "host.stamp").unlink()
    (first.folder / "handlers" / "stream.py").unlink()
    assert files(bundle.build(root, "host").folder) == {"handlers/stream.py", "threadkeep/lua/append.lua"}


def test_what_cannot_be_installed_is_one_line(root: Path) -> None:
    write(root / "requirements" / "lambda.txt", "no spaces allowed==1\n")
    with pytest.raises(BundleError, match=r"^bundle: uv could not install .*lambda\.txt for host: ") as caught:
        bundle.build(root, "host")
    assert "\n" not in str(caught.value)
    assert not (root / ".build" / "bundle" / "host.stamp").exists()


def test_all_machine_code_is_for_lambdas_platform(for_lambda: Bundle) -> None:
    libraries = [path.name for path in for_lambda.folder.rglob("*.so")]
    assert libraries
    assert not [name for name in libraries if "x86_64" in name or "cpython-311" in name]
    assert [name for name in libraries if "cpython-314-aarch64" in name]


def test_it_brings_neither_the_runtimes_own_packages_nor_compiled_files(for_lambda: Bundle) -> None:
    assert not [name for name in OF_THE_RUNTIME | OF_AN_OLDER_PYTHON if (for_lambda.folder / name).exists()]
    assert not list(for_lambda.folder.rglob("__pycache__"))


def test_the_functions_import_nothing_that_it_lacks(for_lambda: Bundle) -> None:
    there = {path.name.removesuffix(".py") for path in for_lambda.folder.iterdir()} | OF_THE_RUNTIME
    there |= NEW_IN_ITS_PYTHON | OF_AN_OLDER_PYTHON
    lacking = {
        f"{path.relative_to(ROOT)}: {name}"
        for path in sorted((ROOT / "lambdas").rglob("*.py"))
        for name in imported(path)
        if name not in there | set(sys.stdlib_module_names) and not name.startswith(ONLY_FOR_TYPES)
    }
    assert not lacking


def imported(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name.split(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield node.module.split(".")[0]


def files(folder: Path) -> set[str]:
    return {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}


def write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
