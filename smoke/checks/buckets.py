"""The regions' buckets."""

from __future__ import annotations

import datetime as dt
from typing import Any, Final

from botocore.exceptions import ClientError

from smoke.ground import Ground
from smoke.outcome import Outcome, failed, held, needs_hours, not_applicable, shown
from smoke.registry import check
from stacks import naming
from threadkeep import schema

_LOOKED_AT: Final = 20
_SLACK_DAYS: Final = 2
"""S3 removes within a day or so of midnight UTC after the day (S3 user guide, "Expiring objects", recalled)."""
_ARCHIVED: Final = "GLACIER_IR"


async def _bucket(ground: Ground, region: str) -> str:
    return naming.bucket(ground.target.stage, await ground.account(), region)


async def _listed(ground: Ground, region: str, prefix: str, most: int = 1000) -> list[dict[str, Any]]:
    """The first objects under a prefix."""
    bucket = await _bucket(ground, region)
    answer = await ground.ask("s3", "list_objects_v2", region=region, Bucket=bucket, Prefix=prefix, MaxKeys=most)
    return list(answer.get("Contents", []))


@check("bucket-lifecycle")
async def the_lifecycle_is_set(ground: Ground) -> Outcome:
    """Uploads, exports, unfinished uploads, large segments."""
    region = ground.target.region
    try:
        answer = await ground.ask("s3", "get_bucket_lifecycle_configuration", Bucket=await _bucket(ground, region))
    except ClientError as error:
        return failed(f"no lifecycle: {error.response['Error']['Code']}")
    rules = {rule["ID"]: rule for rule in answer["Rules"] if rule["Status"] == "Enabled"}
    days = {name: rule.get("Expiration", {}).get("Days") for name, rule in rules.items()}
    moved = rules.get("large-segments-to-instant-retrieval", {}).get("Transitions", [])
    faults = []
    if days.get("unused-uploads-expire") != schema.UPLOADS_DAYS or days.get("exports-expire") != schema.EXPORTS_DAYS:
        faults.append(f"expiry in days: {days}")
    if "abort-incomplete-uploads" not in rules:
        faults.append("unfinished uploads stay")
    if [move.get("StorageClass") for move in moved] != [_ARCHIVED]:
        faults.append("segments stay where they are")
    return held(f"{len(rules)} rules as declared", faults, shows=False)


@check("bucket-copies")
async def segments_lie_in_every_region(ground: Ground) -> Outcome:
    """The archiver writes them everywhere itself; S3 replicates nothing."""
    home, others = ground.target.region, await ground.other_regions()
    try:
        await ground.ask("s3", "get_bucket_replication", region=home, Bucket=await _bucket(ground, home))
    except ClientError as error:
        if error.response["Error"]["Code"] != "ReplicationConfigurationNotFoundError":
            raise
    else:
        return failed("S3 replicates the bucket: what is erased in one would be kept in another")
    if not others:
        return not_applicable("the deployment has one region; S3 replicates nothing")
    keys = [found["Key"] for found in await _listed(ground, home, schema.SEGMENTS_PREFIX, _LOOKED_AT)]
    if not keys:
        return needs_hours("S3 replicates nothing; there is no segment yet: a conversation has to have rested first")
    missing = 0
    for region in others:
        bucket = await _bucket(ground, region)
        for key in keys:
            try:
                await ground.ask("s3", "head_object", region=region, Bucket=bucket, Key=key)
            except ClientError:
                missing += 1
    faults = [f"{missing} of {len(keys)} segments are missing elsewhere"] if missing else []
    return held(f"{len(keys)} segments of {home} lie in {', '.join(others)} too", faults, shows=True)


@check("lifecycle-acts")
async def what_has_expired_is_gone(ground: Ground) -> Outcome:
    """Old uploads and exports are not there; a segment that has moved shows the rest."""
    region, now, faults = ground.target.region, dt.datetime.now(dt.UTC), []
    for prefix, days in ((schema.UPLOADS_PREFIX, schema.UPLOADS_DAYS), (schema.EXPORTS_PREFIX, schema.EXPORTS_DAYS)):
        limit = now - dt.timedelta(days=days + _SLACK_DAYS)
        old = [found for found in await _listed(ground, region, prefix) if found["LastModified"] < limit]
        if old:
            faults.append(f"{len(old)} objects under {prefix} are older than {days + _SLACK_DAYS} days")
    if faults:
        return failed("; ".join(faults))
    segments = await _listed(ground, region, schema.SEGMENTS_PREFIX)
    moved = sum(found.get("StorageClass") == _ARCHIVED for found in segments)
    if moved:
        return shown(f"nothing has outlived its days, and {moved} segments have moved to {_ARCHIVED}")
    return needs_hours("nothing has outlived its days, but no segment has moved yet: large ones do after 30 days")
