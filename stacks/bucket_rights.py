"""What a bulkhead may do in the buckets, from its row in `stacks.bulkheads`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

import aws_cdk as cdk

from stacks import naming
from stacks.bulkheads import Bulkhead
from stacks.constructs.bulkhead_function import Right
from threadkeep import schema

_NAMES_UNKNOWN: Final = "the tenant and conversation in an object's key are known at run time only"
_READ_FROM_AFAR: Final = frozenset({schema.BODIES_PREFIX, schema.BLOBS_PREFIX, schema.EXPORTS_PREFIX})
_SWEPT: Final = (schema.BODIES_PREFIX, schema.BLOBS_PREFIX, schema.SEGMENTS_PREFIX, schema.UPLOADS_PREFIX)


def bucket_rights(stack: cdk.Stack, *, stage: str, regions: Sequence[str], bulkhead: Bulkhead) -> Iterator[Right]:
    """Rights on objects, by kind.

    A body, blob or export lies in the region that it was written in, until the archive puts bodies everywhere, and a
    segment in every region: so what is read at home may be read elsewhere too, and what is archived is written to all.
    """
    own = naming.bucket_arn(stack, stage, stack.region)
    everywhere = [naming.bucket_arn(stack, stage, region) for region in regions]
    archives = "s3:PutObject" in bulkhead.segments
    kinds = {
        schema.BODIES_PREFIX: bulkhead.objects,
        schema.SEGMENTS_PREFIX: bulkhead.segments,
        schema.BLOBS_PREFIX: bulkhead.blobs,
        schema.UPLOADS_PREFIX: bulkhead.uploads,
        schema.EXPORTS_PREFIX: bulkhead.exports,
    }
    for prefix, actions in kinds.items():
        is_everywhere = prefix == schema.SEGMENTS_PREFIX or (archives and prefix == schema.BODIES_PREFIX)
        yield from _on(everywhere if is_everywhere else [own], [prefix], actions)
        if prefix in _READ_FROM_AFAR and not is_everywhere and "s3:GetObject" in actions:
            yield from _on([bucket for bucket in everywhere if bucket != own], [prefix], ["s3:GetObject"])
    if any("s3:GetObject" in actions for actions in kinds.values()):
        # Without it S3 answers for an object that is not there as if it were forbidden (S3 API reference, "HeadObject",
        # quoted in aws/aws-sdk#50, read 2026-11-29): what is missing in a bucket must not look like our fault.
        yield Right(actions=["s3:ListBucket"], resources=everywhere)
    if bulkhead.sweeps:
        yield from _on([own], _SWEPT, ["s3:DeleteObject", "s3:DeleteObjectVersion"])
        yield Right(actions=["s3:ListBucketVersions"], resources=[own])


def _on(buckets: Sequence[str], prefixes: Sequence[str], actions: Sequence[str]) -> Iterator[Right]:
    resources = [f"{bucket}/{prefix}*" for bucket in buckets for prefix in prefixes]
    if actions and resources:
        yield Right(actions=actions, resources=resources, wildcard_reason=_NAMES_UNKNOWN)
