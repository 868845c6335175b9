"""What the scripts answer, read into verdicts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from threadkeep.domain.leaf import Claimed, IdTaken, LeafUnknown, ParentPending
from threadkeep.domain.streams import (
    Closed,
    Diverged,
    Facts,
    Fenced,
    Full,
    Gap,
    Held,
    ParentMissing,
    ParentOpen,
    PastEnd,
    PlaceDiffers,
    Seal,
    Sealed,
    SealedUnopened,
    StaleLeaf,
    TooLarge,
    Unknown,
)
from threadkeep.domain.tail import Erased

_FACTS = msgspec.json.Decoder(Facts)
_SEAL = msgspec.json.Decoder(Seal)
_WORDS = {
    b"claimed": Claimed(),
    b"diverged": Diverged(),
    b"erased": Erased(),
    b"fenced": Fenced(),
    b"full": Full(),
    b"held": Held(),
    b"id_taken": IdTaken(),
    b"leaf_unknown": LeafUnknown(),
    b"parent_missing": ParentMissing(),
    b"parent_open": ParentOpen(),
    b"parent_pending": ParentPending(),
    b"past_end": PastEnd(),
    b"place_differs": PlaceDiffers(),
    b"sealed_unopened": SealedUnopened(),
    b"too_large": TooLarge(),
    b"unknown": Unknown(),
}


def read_verdict(reply: Any) -> Any:
    """A verdict that more than one verb may give, or that says no more than its name: one of the verb's own."""
    match reply:
        case [b"closed", seal]:
            return Closed(_SEAL.decode(seal))
        case [b"gap", expected]:
            return Gap(expected)
        case [b"sealed", epoch, seal, facts, settled, log]:
            return Sealed(
                epoch=epoch,
                seal=_SEAL.decode(seal),
                facts=_FACTS.decode(facts),
                log=tuple(log),
                settled=bool(settled),
            )
        case [b"stale_leaf", leaf]:
            return StaleLeaf(leaf.decode() or None)
        case [name]:
            return _WORDS[name]
    raise AssertionError("a script answered with a verdict that this version does not know")


def read_names(words: Sequence[bytes]) -> tuple[str, ...]:
    """Streams, or connections."""
    return tuple(word.decode() for word in words)
