"""Looks for secrets in every file that git tracks or would track: `make secrets`, a part of `make check`.

What detect-secrets takes for one, and people have looked at and found to be none, stands in `.secrets.baseline`, in
its own form: `detect-secrets scan -n --baseline .secrets.baseline` adds to it, `detect-secrets audit .secrets.baseline`
asks what each is. Its own hook would fail with every line that moves; here a finding is told by file, kind and hash.
What has been seen of a file is remembered by the file's content, since to look at all takes 15 s.
"""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
from collections.abc import Iterable
from concurrent.futures import ProcessPoolExecutor
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final, NamedTuple

from detect_secrets.core.scan import scan_file
from detect_secrets.settings import transient_settings

ROOT: Final = Path(__file__).parents[1]
BASELINE: Final = ROOT / ".secrets.baseline"
SEEN: Final = ROOT / ".build" / "secrets.json"
_PROCESSES: Final = 2


class Finding(NamedTuple):
    """What looks like a secret; the hash is detect-secrets' own, of the text."""

    file: str
    kind: str
    hashed: str


def complaints(found: Iterable[Finding], baseline: dict[str, Any]) -> list[str]:
    """What is wrong: a finding that nobody has looked at, one that is a secret, one that is no more."""
    known = {
        Finding(file, entry["type"], entry["hashed_secret"]): entry.get("is_secret")
        for file, entries in baseline["results"].items()
        for entry in entries
    }
    present = set(found)
    wrong = [f"{one.file}: looks like a secret ({one.kind})" for one in present - set(known)]
    for one, is_secret in known.items():
        if one not in present:
            wrong.append(f"{one.file}: a finding of {BASELINE.name} ({one.kind}) is no more: take it out there")
        elif is_secret is None:
            wrong.append(
                f"{one.file}: nobody has looked at this yet ({one.kind}): detect-secrets audit {BASELINE.name}"
            )
        elif is_secret:
            wrong.append(f"{one.file}: a secret ({one.kind}); take it out and replace it where it was valid")
    return sorted(wrong)


def search(files: Iterable[Path], baseline: dict[str, Any], *, root: Path, seen: Path) -> set[Finding]:
    """All findings in these files, by the plugins and filters of the baseline. Remembers in ``seen``."""
    settings = {"plugins_used": baseline["plugins_used"], "filters_used": baseline["filters_used"]}
    how = hashlib.sha256(json.dumps([settings, version("detect-secrets")]).encode()).hexdigest()
    remembered = json.loads(seen.read_text("utf-8")) if seen.is_file() else {}
    remembered = remembered.get(how, {})
    contents = {path: hashlib.sha256(path.read_bytes()).hexdigest() for path in files}
    names = {path: path.relative_to(root).as_posix() for path in contents}
    new = [path for path, content in contents.items() if f"{names[path]} {content}" not in remembered]
    with ProcessPoolExecutor(_PROCESSES) as pool:
        for path, scanned in zip(new, pool.map(_scan, new, [settings] * len(new), chunksize=8), strict=True):
            remembered[f"{names[path]} {contents[path]}"] = scanned
    kept = {f"{names[path]} {content}": remembered[f"{names[path]} {content}"] for path, content in contents.items()}
    seen.parent.mkdir(exist_ok=True)
    seen.write_text(json.dumps({how: kept}), "utf-8")
    return {
        Finding(names[path], kind, hashed)
        for path, content in contents.items()
        for kind, hashed in kept[f"{names[path]} {content}"]
    }


def _scan(path: Path, settings: dict[str, Any]) -> list[tuple[str, str]]:
    with transient_settings(settings):
        return [(secret.type, secret.secret_hash) for secret in scan_file(str(path))]


def tracked() -> list[Path]:
    """Every file that git tracks or would track, but for the baseline itself, which is made of hashes."""
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"]
    listed = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout  # noqa: S603 -- fixed
    paths = [ROOT / name for name in listed.split("\0") if name]
    return [path for path in paths if path.is_file() and path != BASELINE]


def main() -> int:
    """Search, and say what is wrong."""
    baseline = json.loads(BASELINE.read_text("utf-8"))
    wrong = complaints(search(tracked(), baseline, root=ROOT, seen=SEEN), baseline)
    sys.stdout.write("".join(f"{line}\n" for line in wrong))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
