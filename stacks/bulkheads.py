"""The bulkheads: which function may do what, in one table.

Each is a function and a role of its own, so that heavy reads never slow a stream and a fault in one cannot reach
what only another may touch. Actions are listed one by one: CDK's grants would include Scan, batch writes and
deletes, which nothing here does.
"""

from __future__ import annotations

from typing import Final

import msgspec

from threadkeep import schema


class Bulkhead(msgspec.Struct, frozen=True, kw_only=True):
    """One function's name and rights.

    Attributes:
        name: ``handlers.<name>.handler`` is its code.
        table: DynamoDB actions on the table; empty: it does not know the table.
        owner_index: DynamoDB actions on the index by owner.
        objects: S3 actions on large bodies in the region's bucket; empty: it does not know the bucket.
        uploads: S3 actions on what clients uploaded, in the same bucket.
        hot: whether it talks to Valkey.
        pushes: whether it posts to connections.
        concurrency_percent: its share of what can be reserved of `lambda_concurrency`; a fifth is left to all else.
    """

    name: str
    concurrency_percent: int
    table: tuple[str, ...] = ()
    owner_index: tuple[str, ...] = ()
    objects: tuple[str, ...] = ()
    uploads: tuple[str, ...] = ()
    hot: bool = True
    pushes: bool = False


_READ: Final = ("dynamodb:GetItem", "dynamodb:Query")
_WRITE: Final = ("dynamodb:PutItem", "dynamodb:UpdateItem")

ROUTE_BULKHEADS: Final = (
    Bulkhead(name="connection", table=_READ, concurrency_percent=10),
    Bulkhead(
        name="send",
        table=_READ + _WRITE,
        objects=("s3:GetObject", "s3:PutObject"),
        uploads=("s3:GetObject", "s3:PutObject"),  # a client puts with the rights of whoever signed for it
        pushes=True,
        concurrency_percent=15,
    ),
    Bulkhead(
        name="stream",
        table=_READ + _WRITE,
        objects=("s3:GetObject", "s3:PutObject"),
        uploads=("s3:GetObject",),
        pushes=True,
        concurrency_percent=35,
    ),
    Bulkhead(
        name="history",
        table=(*_READ, "dynamodb:BatchGetItem"),
        owner_index=("dynamodb:Query",),
        objects=("s3:GetObject",),
        concurrency_percent=15,
    ),
)
"""Those that answer routes; `threadkeep.schema.ROUTES` says which."""

AUTHORIZER: Final = Bulkhead(name="authorizer", hot=False, concurrency_percent=5)
"""Checks tokens at ``$connect``. It reads the key set and touches nothing of ours."""

ALL: Final = (*ROUTE_BULKHEADS, AUTHORIZER)

_UNRESERVED_MIN: Final = 100
"""Lambda refuses to reserve an account's last 100 executions (Lambda quotas, recalled 2026-11-29)."""


def reserved_concurrency(bulkhead: Bulkhead, account_executions: int) -> int:
    """A bulkhead's share of the account's concurrent executions, at least 1."""
    return max(1, (account_executions - _UNRESERVED_MIN) * bulkhead.concurrency_percent // 100)


if {bulkhead.name for bulkhead in ROUTE_BULKHEADS} != set(schema.ROUTES):
    raise TypeError("stacks/bulkheads.py and threadkeep.schema.ROUTES name different bulkheads")
