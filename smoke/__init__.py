"""The smoke pack: what only a real deployment can show, shown there (docs/smoke.md). It is not shipped.

`lines.toml` lists what the stand-ins of the tests cannot prove; each line has one check in `smoke.checks`, or a verdict
that is fixed. Whoever runs the pack reads the account and talks to the service; what it creates, it deletes.
"""

from __future__ import annotations

import stacks  # noqa: F401 -- puts `lambdas/` on the path: names and keys are the product's own
