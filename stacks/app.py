"""An app and its synthesis, for `app.py`, `make synth` and the tests alike."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Final

import aws_cdk as cdk

ROOT: Final = Path(__file__).resolve().parent.parent


class FindingsError(RuntimeError):
    """CDK's own validation or cdk-nag found something; it has been printed, construct by construct."""


def new_app(*, outdir: Path | None = None) -> cdk.App:
    """An app with the context of ``cdk.json``.

    The command line passes that context by itself; a run by hand has it from here alone.
    """
    context = json.loads((ROOT / "cdk.json").read_text(encoding="utf-8"))["context"]
    return cdk.App(context=context, outdir=None if outdir is None else str(outdir))


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
