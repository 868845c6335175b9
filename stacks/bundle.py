"""The one code asset: the functions' pinned packages beside `lambdas/`, built without Docker.

A folder per platform, ``.build/bundle/<platform>/``: ``arm64`` holds wheels for Lambda's own platform, ``host`` those
for this machine, whose Python runs the functions of the local target. Built anew only where its inputs changed.
"""

from __future__ import annotations

import fcntl
import hashlib
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final, Literal

import msgspec

Platform = Literal["arm64", "host"]

_LAMBDA_PYTHON: Final = "3.14"
_SOURCES: Final = ("handlers", "threadkeep")
_UV_PLATFORM: Final[dict[Platform, tuple[str, ...]]] = {
    "arm64": ("--python-platform", "aarch64-manylinux_2_28", "--python-version", _LAMBDA_PYTHON, "--only-binary=:all:"),
    "host": (),
}


class BundleError(RuntimeError):
    """The bundle could not be built. The message is one line that says what to do."""


class Bundle(msgspec.Struct, frozen=True, kw_only=True):
    """A folder of code as it is shipped, and the hash of what went into it (CDK's asset hash)."""

    folder: Path
    digest: str


def build(root: Path, platform: Platform) -> Bundle:
    """Bring ``.build/bundle/<platform>/`` under the project's root up to date.

    Packages come from ``requirements/lambda.txt`` alone (``--no-deps``: boto3 is the runtime's own, and a resolver
    would drag a second one in).

    Raises:
        BundleError: uv is absent, or cannot install the packages.
    """
    folder = root / ".build" / "bundle" / platform
    folder.parent.mkdir(parents=True, exist_ok=True)
    requirements = root / "requirements" / "lambda.txt"
    packages = _digest([(requirements.name, requirements), *(_UV_PLATFORM[platform] or (sys.version,))])
    sources = _digest(list(_source_files(root)))
    with (folder.parent / f"{platform}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # two processes may synthesize at once
        stamp = folder.parent / f"{platform}.stamp"
        built = stamp.read_text(encoding="utf-8").split() if stamp.is_file() and folder.is_dir() else ["", ""]
        if built != [packages, sources]:
            stamp.unlink(missing_ok=True)
            if built[0] != packages:
                _install(root=root, requirements=requirements, folder=folder, platform=platform)
            _copy_sources(root=root, folder=folder)
            stamp.write_text(f"{packages} {sources}\n", encoding="utf-8")
    return Bundle(folder=folder, digest=_digest([packages, sources]))


def _install(*, root: Path, requirements: Path, folder: Path, platform: Platform) -> None:
    uv = Path(sys.executable).parent / "uv"
    if not uv.is_file():
        raise BundleError(f"bundle: no uv beside {sys.executable}; run `make setup`")
    shutil.rmtree(folder, ignore_errors=True)
    command = [str(uv), "pip", "install", "--quiet", "--no-deps", "--python", sys.executable]
    command += ["--target", str(folder), *_UV_PLATFORM[platform], "-r", str(requirements)]
    result = subprocess.run(command, cwd=root, capture_output=True, text=True, check=False)  # noqa: S603 - our own uv
    if result.returncode != 0:
        reason = " ".join(result.stderr.split())
        raise BundleError(f"bundle: uv could not install {requirements} for {platform}: {reason}")
    shutil.rmtree(folder / "bin", ignore_errors=True)
    (folder / ".lock").unlink(missing_ok=True)


def _copy_sources(*, root: Path, folder: Path) -> None:
    for name in _SOURCES:
        shutil.rmtree(folder / name, ignore_errors=True)
    for relative, path in _source_files(root):
        target = folder / relative
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, target)


def _source_files(root: Path) -> Iterator[tuple[str, Path]]:
    lambdas = root / "lambdas"
    for name in _SOURCES:
        for path in sorted((lambdas / name).rglob("*")):
            if path.is_file() and "__pycache__" not in path.parts:
                yield path.relative_to(lambdas).as_posix(), path


def _digest(parts: list[str | tuple[str, Path]]) -> str:
    whole = hashlib.sha256()
    for part in parts:
        name, content = (part, b"") if isinstance(part, str) else (part[0], part[1].read_bytes())
        for piece in (name.encode(), content):
            whole.update(len(piece).to_bytes(8, "big") + piece)
    return whole.hexdigest()
