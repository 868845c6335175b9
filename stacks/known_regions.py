"""Which regions AWS has, as botocore knows them: a mistyped one is refused before anything is looked for in it."""

from __future__ import annotations

import difflib
from functools import cache

import botocore.session


@cache
def known_regions() -> tuple[str, ...]:
    """All regions with DynamoDB, of every partition. A region newer than the pinned botocore is not among them."""
    session = botocore.session.Session()
    return tuple(
        region
        for partition in session.get_available_partitions()
        for region in session.get_available_regions("dynamodb", partition_name=partition)
    )


def nearest(region: str) -> str | None:
    """The name that was most likely meant, where there is no region of that name; None where there is one."""
    if region in known_regions():
        return None
    # Letters that changed places make a tie: us-esat-1 has as much in common with us-west-1 as with us-east-1.
    return max(known_regions(), key=lambda name: (_likeness(region, name), sorted(region) == sorted(name)))


def _likeness(one: str, other: str) -> float:
    return difflib.SequenceMatcher(None, one, other).ratio()
