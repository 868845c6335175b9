"""A region's bucket: large bodies, uploads and what is kept of them, segments of cold conversations, exports."""

from __future__ import annotations

from typing import Any, Final

import aws_cdk as cdk
from aws_cdk import aws_kms as kms
from aws_cdk import aws_s3 as s3
from constructs import Construct

from stacks import capabilities, naming
from stacks.constructs.segment_table import SegmentTable
from stacks.settings import Settings
from threadkeep import schema

_INSTANT_RETRIEVAL_BYTES_MIN: Final = 128 * 1024
"""Smaller objects are billed as this many bytes in Glacier Instant Retrieval (S3 pricing), so they stay."""
_INSTANT_RETRIEVAL_AFTER_DAYS: Final = 30
"""A segment is of a conversation that has rested; after this much more it is read seldom enough for a fee per read."""

_PREFLIGHT_S: Final = 60 * 60
"""How long a browser remembers that it may."""


class ColdStack(cdk.Stack):
    """Private, encrypted, unversioned and not replicated: the archiver writes to every region, the eraser deletes."""

    def __init__(self, scope: Construct, construct_id: str, *, settings: Settings, key: kms.IKey, **stack: Any) -> None:
        super().__init__(scope, construct_id, **stack)
        can = capabilities.of(settings.target)
        bucket = s3.Bucket(
            self,
            "Bucket",
            bucket_name=naming.bucket(settings.stage, self.account, self.region),
            encryption=s3.BucketEncryption.KMS,
            encryption_key=key,
            bucket_key_enabled=True,
            block_public_access=s3.BlockPublicAccess.BLOCK_ALL,
            object_ownership=s3.ObjectOwnership.BUCKET_OWNER_ENFORCED,
            enforce_ssl=can.tls,
            versioned=False,
            removal_policy=cdk.RemovalPolicy.RETAIN if can.durable else cdk.RemovalPolicy.DESTROY,
            lifecycle_rules=[
                s3.LifecycleRule(
                    id="abort-incomplete-uploads", abort_incomplete_multipart_upload_after=cdk.Duration.days(1)
                ),
                s3.LifecycleRule(
                    id="unused-uploads-expire",
                    prefix=schema.UPLOADS_PREFIX,
                    expiration=cdk.Duration.days(schema.UPLOADS_DAYS),
                ),
                s3.LifecycleRule(
                    id="exports-expire",
                    prefix=schema.EXPORTS_PREFIX,
                    expiration=cdk.Duration.days(schema.EXPORTS_DAYS),
                ),
                s3.LifecycleRule(
                    id="large-segments-to-instant-retrieval",
                    prefix=schema.SEGMENTS_PREFIX,
                    object_size_greater_than=_INSTANT_RETRIEVAL_BYTES_MIN - 1,
                    transitions=[
                        s3.Transition(
                            storage_class=s3.StorageClass.GLACIER_INSTANT_RETRIEVAL,
                            transition_after=cdk.Duration.days(_INSTANT_RETRIEVAL_AFTER_DAYS),
                        )
                    ],
                ),
            ],
            cors=_for_browsers(settings),
        )
        cdk.Validations.of(bucket).acknowledge(
            cdk.Acknowledgment(
                id="AwsSolutions::AwsSolutions-S1",
                reason="access logs would name tenants and conversations, and outlive their erasure",
            ),
            cdk.Acknowledgment(
                id="CloudFormation-Validate::W9003",
                reason="CDK writes the size as a number, which CloudFormation takes",
            ),
        )
        SegmentTable(
            self,
            "Segments",
            account=self.account,
            database=naming.catalog(settings.stage),
            bucket=naming.bucket(settings.stage, self.account, self.region),
        )
        cdk.CfnOutput(self, "BucketName", value=bucket.bucket_name)


def _for_browsers(settings: Settings) -> list[s3.CorsRule]:
    """Let pages of the allowed origins put and get what they were given a URL for; nobody else's, and nothing else.

    S3 answers a request by the first rule that allows its origin, method and headers (S3 user guide, "Using
    cross-origin resource sharing", recalled 2026-11-29).
    """
    if not settings.allowed_origins:
        return []
    return [
        s3.CorsRule(
            id="uploads",
            allowed_methods=[s3.HttpMethods.PUT],
            allowed_origins=[*settings.allowed_origins],
            allowed_headers=["content-type", "x-amz-checksum-sha256"],
            max_age=_PREFLIGHT_S,
        ),
        s3.CorsRule(
            id="downloads",
            allowed_methods=[s3.HttpMethods.GET, s3.HttpMethods.HEAD],
            allowed_origins=[*settings.allowed_origins],
            allowed_headers=["range"],
            exposed_headers=["Content-Disposition", "Content-Length", "Content-Range", "ETag"],
            max_age=_PREFLIGHT_S,
        ),
    ]
