"""An app and its synthesis, for `app.py`, `make synth` and the tests alike."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Final, Literal

import aws_cdk as cdk

from stacks import capabilities

ROOT: Final = Path(__file__).resolve().parent.parent


class FindingsError(RuntimeError):
    """CDK's own validation or cdk-nag found something; it has been printed, construct by construct."""


def context_settings() -> str | None:
    """The settings file that the command line was given (``cdk deploy -c settings=FILE``), if it was."""
    named = cdk.App(auto_synth=False).node.try_get_context("settings")
    return None if named is None else str(named)


def new_app(target: Literal["aws", "local"], *, outdir: Path | None = None) -> cdk.App:
    """An app with the context of ``cdk.json``, which the command line passes by itself, a run by hand does not.

    Args:
        target: where it will be deployed; says whether CDK validates the templates.
        outdir: where the cloud assembly goes; by default where the command line wants it.
    """
    return cdk.App(
        context=json.loads((ROOT / "cdk.json").read_text(encoding="utf-8"))["context"],
        outdir=None if outdir is None else str(outdir),
        stack_traces=False,
        builtin_cloud_formation_validation=capabilities.of(target).template_rules,
    )


def synthesize(app: cdk.App) -> list[Path]:
    """Write the cloud assembly.

    Returns:
        Every stack's template, sorted by name.

    Raises:
        FindingsError: a template was refused; CDK has printed by what rule.
    """
    try:
        assembly = app.synth()
    except RuntimeError as error:
        if "ValidationFailed" not in str(error):
            raise
        raise FindingsError("synthesis: the templates were refused; what to change stands above") from error
    return sorted(Path(assembly.directory).rglob("*.template.json"))
