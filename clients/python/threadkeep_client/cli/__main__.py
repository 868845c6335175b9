"""`python -m threadkeep_client.cli`."""

from __future__ import annotations

import sys

from threadkeep_client.cli import main

sys.exit(main())
