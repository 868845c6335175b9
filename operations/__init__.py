"""What an operator runs by hand, with rights of their own; docs/runbook.md says when."""

from __future__ import annotations

import stacks  # noqa: F401 -- puts `lambdas/` on the path: names and keys are the product's own
