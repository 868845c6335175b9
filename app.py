"""The CDK app: reads the settings, brings the bundle up to date, composes the stacks.

``cdk.json`` runs it; by hand, ``.venv/bin/python app.py`` does the same. The settings are the file of the context
``settings`` (``cdk deploy -c settings=FILE``), else of ``THREADKEEP_SETTINGS``, else ``settings.toml``.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import stacks  # noqa: F401 - first: it chooses the Node that aws_cdk starts when imported

import aws_cdk as cdk  # isort: skip
from stacks import bundle, capabilities
from stacks.compose import compose
from stacks.settings import Settings, SettingsError, find

ROOT = Path(__file__).resolve().parent


def main() -> None:
    """Synthesize, or stop with one line that says what to change."""
    # The command line passes cdk.json's context by itself; a run by hand has it from here.
    app = cdk.App(context=json.loads((ROOT / "cdk.json").read_text(encoding="utf-8"))["context"])
    try:
        settings = Settings.from_file(find(app.node.try_get_context("settings"), os.environ, ROOT))
        platform = "arm64" if capabilities.of(settings.target).lambda_platform else "host"
        code = bundle.build(ROOT, platform)
    except (SettingsError, bundle.BundleError) as error:
        sys.exit(str(error))
    compose(app, settings=settings, bundle=code)
    app.synth()


if __name__ == "__main__":
    main()
