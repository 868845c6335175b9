"""``python -m stacks.synth``: the `aws` templates of two regions, through CDK's validation, cdk-nag and cfn-lint.

Once for each network, which is what most of the templates differ by.

Prints a line a step and a verdict; exit code 1 on any finding.
"""

from __future__ import annotations

import shutil
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final, TextIO, get_args

import msgspec
from cfnlint import ManualArgs, lint_by_config  # type: ignore[import-untyped]

from stacks import bundle
from stacks.app import ROOT, FindingsError, new_app, synthesize
from stacks.compose import compose
from stacks.settings import NetworkKind, Settings, SettingsError

SETTINGS: Final = Path(__file__).parent / "synth.toml"
NETWORKS: Final[tuple[NetworkKind, ...]] = get_args(NetworkKind)
_OUT: Final = ROOT / ".build" / "synth"
_IGNORED: Final = ["W3005", "W3010"]
"""A dependency that a reference already implies: CDK writes these always. A zone by its name: the settings name it."""


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
        templates = [
            template
            for network in NETWORKS
            for template in _templates(with_network(settings, network), code, _OUT / network)
        ]
    except (SettingsError, bundle.BundleError, FindingsError) as error:
        _say(str(error), file=sys.stderr)
        return 1
    _say(f"cfn-lint on {len(templates)} templates")
    findings = lint(templates, settings.regions)
    for finding in findings:
        _say(finding, file=sys.stderr)
    _say(f"findings: {len(findings)} ({_OUT.relative_to(ROOT)})")
    return 1 if findings or not templates else 0


def with_network(settings: Settings, network: NetworkKind) -> Settings:
    """The same deployment in that network."""
    return msgspec.structs.replace(settings, network=network)


def _templates(settings: Settings, code: bundle.Bundle, outdir: Path) -> list[Path]:
    _say(f"synthesis for {', '.join(settings.regions)}, network {settings.network}, with CDK's validation and cdk-nag")
    app = new_app(settings.target, outdir=outdir)
    compose(app, settings=settings, bundle=code)
    return synthesize(app)


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
