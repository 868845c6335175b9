"""The bulkheads: which function may do what, in one table.

Each is a function and a role of its own, so that heavy reads never slow a stream and a fault in one cannot reach
what only another may touch. Actions are listed one by one: CDK's grants would include Scan, batch writes and
deletes, which nothing here does.
"""

from __future__ import annotations

from typing import Final

import msgspec

from stacks.settings import NetworkKind
from threadkeep import schema


class Bulkhead(msgspec.Struct, frozen=True, kw_only=True):
    """One function's name and rights.

    Attributes:
        name: ``handlers.<name>.handler`` is its code.
        table: DynamoDB actions on the table; empty: it does not know the table.
        beside_others: further DynamoDB actions on the table, where there are other regions.
        other_tables: DynamoDB actions on the table's replicas in other regions, where there are any.
        owner_index: DynamoDB actions on the index by owner.
        own_exports: DynamoDB actions on the items of exports alone.
        due_index: DynamoDB actions on the index of what is due for the archive.
        objects: S3 actions on large bodies in the region's bucket; they are read in the other regions' too.
        segments: S3 actions on segments, in every region's bucket; whoever puts them puts bodies everywhere too.
        blobs: S3 actions on what messages keep of uploads, as on bodies.
        uploads: S3 actions on what clients uploaded, in the region's bucket.
        exports: S3 actions on the files of exports there; they are read in the other regions' too.
        sweeps: whether it deletes a conversation's objects there, whatever kind they are of.
        hot: whether it talks to Valkey; under `network: vpc` such functions stand inside, and no others.
        pushes: whether it posts to connections.
        invokes: another bulkhead that it starts; empty: none.
        model: whether it asks a model.
        terms: whether it is told the deployment's terms: it makes conversations, or ends them.
        sends: kinds of jobs that it queues in its region.
        takes: the kind of jobs that it works off; empty: none.
        memory_mib: what it may hold; a share of a processor comes with it.
        timeout_s: how long one invocation may take. A route function has 10 s (API Gateway itself gives up after 29).
        concurrency_percent: its share of what can be reserved of `lambda_concurrency`; a fifth is left to all else,
            0 takes from that fifth.
    """

    name: str
    concurrency_percent: int
    table: tuple[str, ...] = ()
    beside_others: tuple[str, ...] = ()
    other_tables: tuple[str, ...] = ()
    owner_index: tuple[str, ...] = ()
    own_exports: tuple[str, ...] = ()
    due_index: tuple[str, ...] = ()
    objects: tuple[str, ...] = ()
    segments: tuple[str, ...] = ()
    blobs: tuple[str, ...] = ()
    uploads: tuple[str, ...] = ()
    exports: tuple[str, ...] = ()
    sweeps: bool = False
    hot: bool = True
    pushes: bool = False
    invokes: str = ""
    model: bool = False
    memory_mib: int = 256
    timeout_s: int = 10
    terms: bool = False
    sends: tuple[str, ...] = ()
    takes: str = ""

    @property
    def knows_regions(self) -> bool:
        """Whether it has to know that there are other regions: it tells them of streams, or asks them for messages."""
        return bool(self.table) and (self.hot or bool(self.other_tables))

    @property
    def knows_buckets(self) -> bool:
        """Whether it has any right on objects."""
        return any((self.objects, self.segments, self.blobs, self.uploads, self.exports, self.sweeps))


_READ: Final = ("dynamodb:GetItem", "dynamodb:Query")
_WRITE: Final = ("dynamodb:PutItem", "dynamodb:UpdateItem")
_GAPS: Final = ("dynamodb:GetItem",)
"""What has not been replicated yet is asked for by its key."""
_ENDS: Final = (*_GAPS, "dynamodb:Query")
"""Whoever may end a conversation's streams asks when it was last active, by the newest of its items."""
_GET: Final = ("s3:GetObject",)
_GET_AND_PUT: Final = ("s3:GetObject", "s3:PutObject")

ROUTE_BULKHEADS: Final = (
    Bulkhead(name="connection", table=_READ, concurrency_percent=10),
    Bulkhead(
        name="send",
        table=_READ + _WRITE,
        other_tables=_ENDS,
        objects=_GET_AND_PUT,
        segments=_GET,
        blobs=_GET_AND_PUT,
        uploads=_GET_AND_PUT,  # a client puts with the rights of whoever signed for it
        pushes=True,
        invokes="responder",
        terms=True,
        sends=("export",),
        concurrency_percent=15,
    ),
    Bulkhead(
        name="stream",
        table=_READ + _WRITE,
        other_tables=_ENDS,
        objects=_GET_AND_PUT,
        segments=_GET,
        blobs=_GET_AND_PUT,
        uploads=_GET,
        pushes=True,
        concurrency_percent=35,
    ),
    Bulkhead(
        name="history",
        # It writes only to end a stream that a reader found dead: the reader need not wait for the sweeper.
        table=(*_READ, *_WRITE, "dynamodb:BatchGetItem"),
        other_tables=_ENDS,
        owner_index=("dynamodb:Query",),
        objects=_GET_AND_PUT,
        segments=_GET,
        blobs=_GET,  # it signs for downloads, which have the rights of whoever signed
        exports=_GET,
        pushes=True,
        concurrency_percent=15,
    ),
)
"""Those that answer routes; `threadkeep.schema.ROUTES` says which."""

AUTHORIZER: Final = Bulkhead(name="authorizer", hot=False, concurrency_percent=5)
"""Checks tokens at ``$connect``. It reads the key set and touches nothing of ours."""

SWEEPER: Final = Bulkhead(
    name="sweeper",
    table=_READ + _WRITE,
    other_tables=_ENDS,
    objects=_GET_AND_PUT,
    pushes=True,
    timeout_s=60,
    concurrency_percent=0,
)
"""Ends what nobody writes any more; runs by schedule, once a minute."""

RESPONDER: Final = Bulkhead(
    name="responder",
    table=_READ + _WRITE,
    other_tables=_ENDS,
    objects=_GET_AND_PUT,
    segments=_GET,
    pushes=True,
    model=True,
    timeout_s=15 * 60,  # Lambda's longest; an answer has 14 minutes
    concurrency_percent=0,
)
"""Answers questions by asking a model; where no model is set there is none. It writes its answers itself."""

PRODUCE: Final = Bulkhead(
    name="produce",
    table=_READ + _WRITE,
    other_tables=_ENDS,
    objects=_GET_AND_PUT,
    segments=_GET,
    pushes=True,
    concurrency_percent=0,
)
"""Writes answers for the responder, where that stands too far from Valkey; nobody else invokes it."""

RESPONDER_OUTSIDE: Final = Bulkhead(
    name="responder",
    table=_READ,
    other_tables=_GAPS,
    objects=_GET,
    segments=_GET,
    hot=False,
    invokes=PRODUCE.name,
    model=True,
    timeout_s=RESPONDER.timeout_s,
    concurrency_percent=0,
)
"""The responder under `network: vpc`. From inside most models cannot be reached, so it reads for itself what it is
asked, and has its answer written by `produce`."""

ANNOUNCER: Final = Bulkhead(
    name="announcer",
    table=("dynamodb:BatchGetItem",),
    # It puts back heads and messages that another region has written over. No condition of IAM sees a sort key, so it
    # could put any item; that it puts these alone, and in place of lesser ones alone, is for its code to see to.
    beside_others=("dynamodb:PutItem",),
    sends=("erase", "tell"),
    hot=False,
    timeout_s=30,
    concurrency_percent=0,
)
"""The one consumer of the table's stream in a region. It knows the table and queues, and nothing that holds content."""

ERASER: Final = Bulkhead(
    name="eraser",
    # What it deletes in bulk are items whose tombstone it has read.
    table=("dynamodb:Query", "dynamodb:UpdateItem", "dynamodb:BatchWriteItem"),
    sweeps=True,
    takes="erase",
    sends=("erase",),
    hot=False,
    timeout_s=120,
    concurrency_percent=0,
)
"""Clears a region's bucket of what was deleted, and in the home region the table."""

HERALD: Final = Bulkhead(
    name="herald",
    table=(*_READ, "dynamodb:UpdateItem"),
    takes="tell",
    sends=("tell",),
    pushes=True,
    timeout_s=15,
    concurrency_percent=0,
)
"""Clears a region's hot tier of what was deleted, and tells whoever watches; also of what other regions wrote."""

PLANNER: Final = Bulkhead(
    name="planner",
    table=("dynamodb:UpdateItem",),
    due_index=("dynamodb:Query",),
    sends=("archive",),
    hot=False,
    timeout_s=15 * 60,
    concurrency_percent=0,
)
"""Queues what has fallen due for the archive; runs by schedule, in the home region alone."""

ARCHIVER: Final = Bulkhead(
    name="archiver",
    # What it deletes in bulk are messages that a segment holds in every region.
    table=(*_READ, *_WRITE, "dynamodb:BatchWriteItem"),
    other_tables=("dynamodb:Query",),  # when a conversation was last active, before its retention is taken for ended
    objects=_GET_AND_PUT,
    segments=_GET_AND_PUT,
    takes="archive",
    sends=("erase",),
    terms=True,
    hot=False,
    # A segment's messages a few times over: as they are stored, as lines, packed, and read back. That is less than
    # 100 MB beside the code; what the rest brings is more of a processor, for packing.
    memory_mib=1024,
    timeout_s=5 * 60,
    concurrency_percent=0,
)
"""Moves conversations that rest from the table into segments, in the home region for all of them."""

ARCHIVE: Final = (PLANNER, ARCHIVER)
"""Those that the home region alone has."""

EXPORTER: Final = Bulkhead(
    name="exporter",
    table=(*_READ, "dynamodb:BatchGetItem"),
    owner_index=("dynamodb:Query",),
    own_exports=_WRITE,
    objects=_GET,
    segments=_GET,
    exports=(*_GET_AND_PUT, "s3:AbortMultipartUpload"),  # it reads what its last run has left it there
    takes="export",
    sends=("export",),
    hot=False,
    memory_mib=1_024,  # for its share of a processor: what an export holds at a time takes a twentieth of it
    timeout_s=15 * 60,  # Lambda's longest; an export that takes longer goes on in another run
    concurrency_percent=0,
)
"""Writes what a user wants to take away to a file. Of all else it can only read."""

_REGIONAL: Final = (*ROUTE_BULKHEADS, AUTHORIZER, SWEEPER, ANNOUNCER, ERASER, HERALD, EXPORTER)
_ANSWERING: Final[dict[NetworkKind, tuple[Bulkhead, ...]]] = {
    "public": (RESPONDER,),
    "vpc": (RESPONDER_OUTSIDE, PRODUCE),
}
ALL: Final = (*_REGIONAL, *ARCHIVE, *_ANSWERING["public"], *_ANSWERING["vpc"])


def deployed(*, has_model: bool, network: NetworkKind) -> tuple[Bulkhead, ...]:
    """Those that a deployment has in each of its regions."""
    return _REGIONAL + (_ANSWERING[network] if has_model else ())


_UNRESERVED_MIN: Final = 100
"""Lambda refuses to reserve an account's last 100 executions (Lambda quotas, recalled 2026-11-29)."""


def reserved_concurrency(bulkhead: Bulkhead, account_executions: int) -> int:
    """A bulkhead's share of the account's concurrent executions, at least 1 where it has one at all."""
    share = (account_executions - _UNRESERVED_MIN) * bulkhead.concurrency_percent // 100
    return max(1, share) if bulkhead.concurrency_percent else 0


if {bulkhead.name for bulkhead in ROUTE_BULKHEADS} != set(schema.ROUTES):
    raise TypeError("stacks/bulkheads.py and threadkeep.schema.ROUTES name different bulkheads")
