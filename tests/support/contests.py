"""Which of two stands: the cases that the rules, and every store that holds to them, are tried with."""

from __future__ import annotations

from typing import Final

from threadkeep.domain.contests import Claim, Ending

CLAIMS: Final = [
    (Claim("ann", 5), Claim("bob", 6), True),
    (Claim("bob", 5), Claim("ann", 6), True),
    (Claim("ann", 6), Claim("bob", 5), False),
    (Claim("ann", 5), Claim("bob", 5), True),
    (Claim("bob", 5), Claim("ann", 5), False),
    (Claim("ann", 5), Claim("ann", 6), False),  # its own, in whatever version
    (Claim("ann", 0), Claim("bob", 5), True),  # from before it was noted
    (Claim("bob", 5), Claim("ann", 0), False),
    (Claim("ann", 0), Claim("bob", 0), True),
    (Claim("bob", 0), Claim("ann", 0), False),
]
"""Of two heads: what was, what is, and whether what was is put back."""

ENDINGS: Final = [
    (Ending(is_complete=True, epoch=5), Ending(is_complete=False, epoch=6), True),
    (Ending(is_complete=True, epoch=0), Ending(is_complete=False, epoch=6), True),
    (Ending(is_complete=False, epoch=6), Ending(is_complete=True, epoch=5), False),
    (Ending(is_complete=False, epoch=6), Ending(is_complete=True, epoch=0), False),
    (Ending(is_complete=True, epoch=6), Ending(is_complete=True, epoch=5), True),
    (Ending(is_complete=True, epoch=5), Ending(is_complete=True, epoch=6), False),
    (Ending(is_complete=True, epoch=5), Ending(is_complete=True, epoch=0), True),
    (Ending(is_complete=False, epoch=6), Ending(is_complete=False, epoch=5), True),
    (Ending(is_complete=False, epoch=6), Ending(is_complete=False, epoch=0), True),
    (Ending(is_complete=False, epoch=5), Ending(is_complete=False, epoch=6), False),
    (Ending(is_complete=False, epoch=5), Ending(is_complete=False, epoch=5), False),  # the later stands
    (Ending(is_complete=True, epoch=0), Ending(is_complete=True, epoch=0), False),  # of two questions too
    (Ending(is_complete=False, epoch=0), Ending(is_complete=False, epoch=0), False),
]
"""Of two messages likewise."""
