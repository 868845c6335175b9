"""The CDK app: reads the settings, brings the bundle up to date, composes the stacks.

``cdk.json`` runs it; by hand, ``.venv/bin/python app.py`` does the same. The settings are the file of the context
``settings`` (``cdk deploy -c settings=FILE``), else of ``THREADKEEP_SETTINGS``, else ``settings.toml``.
"""

from __future__ import annotations

import os
import sys

from stacks import bundle, capabilities
from stacks.app import ROOT, FindingsError, context_settings, new_app, synthesize
from stacks.compose import compose
from stacks.settings import Settings, SettingsError, find


def main() -> None:
    """Synthesize, or stop with one line that says what to change."""
    try:
        settings = Settings.from_file(find(context_settings(), os.environ, ROOT))
        platform: bundle.Platform = "arm64" if capabilities.of(settings.target).lambda_platform else "host"
        app = new_app(settings.target)
        compose(app, settings=settings, bundle=bundle.build(ROOT, platform))
        synthesize(app)
    except (SettingsError, bundle.BundleError, FindingsError) as error:
        sys.exit(str(error))


if __name__ == "__main__":
    main()
