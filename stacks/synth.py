"""``python -m stacks.synth``: the `aws` templates of two regions, through CDK's validation, cdk-nag and cfn-lint.

Prints a line a step and a verdict; exit code 1 on any finding.
"""

from __future__ import annotations

import shutil
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final, TextIO

from cfnlint import ManualArgs, lint_by_config  # type: ignore[import-untyped]

from stacks import bundle
from stacks.app import ROOT, FindingsError, new_app, synthesize
from stacks.compose import compose
from stacks.settings import Settings, SettingsError

SETTINGS: Final = Path(__file__).parent / "synth.toml"
_OUT: Final = ROOT / ".build" / "synth"
_IGNORED: Final = ["W3005"]
"""A dependency that a reference already implies: CDK writes these always."""


def main() -> int:
    """Run the checks on ``stacks/synth.toml``.

    Returns:
        The exit code.
    """
    shutil.rmtree(_OUT, ignore_errors=True)
    try:
        settings = Settings.from_file(SETTINGS)
        _say("bundle for Lambda's own platform")
        code = bundle.build(ROOT, "arm64")
        _say(f"synthesis for {', '.join(settings.regions)}, with CDK's validation and cdk-nag")
        app = new_app(settings.target, outdir=_OUT)
        compose(app, settings=settings, bundle=code)
        templates = synthesize(app)
    except (SettingsError, bundle.BundleError, FindingsError) as error:
        _say(str(error), file=sys.stderr)
        return 1
    _say(f"cfn-lint on {len(templates)} templates")
    findings = lint(templates, settings.regions)
    for finding in findings:
        _say(finding, file=sys.stderr)
    _say(f"findings: {len(findings)} ({_OUT.relative_to(ROOT)})")
    return 1 if findings or not templates else 0


def lint(templates: Sequence[Path], regions: Sequence[str]) -> list[str]:
    """What cfn-lint finds in the templates for these regions, a line each."""
    config = ManualArgs(templates=[*map(str, templates)], regions=[*regions], ignore_checks=_IGNORED)
    return [
        f"{Path(match.filename).name}: {match.rule.id} {match.message} at {'/'.join(map(str, match.path or []))}"
        for match in lint_by_config(config)
    ]


def _say(line: str, *, file: TextIO | None = None) -> None:
    print(f"synth: {line}", file=file, flush=True)


if __name__ == "__main__":
    sys.exit(main())
