"""A queue where what failed ends, for people to see; nothing consumes it."""

from __future__ import annotations

import aws_cdk as cdk
from aws_cdk import aws_sqs as sqs
from constructs import Construct


def failure_queue(
    scope: Construct, construct_id: str, *, name: str, kept_days: int, tls: bool, holds: str
) -> sqs.Queue:
    """What it holds are ids and places, no content, so it is encrypted with SQS's own key.

    Args:
        scope: what it belongs to.
        construct_id: in there.
        name: its own.
        kept_days: how long people have to look; SQS keeps nothing longer than 14 days.
        tls: whether to insist on it.
        holds: what ends there, as the reason goes on why it has no queue of failures itself.
    """
    queue = sqs.Queue(
        scope,
        construct_id,
        queue_name=name,
        encryption=sqs.QueueEncryption.SQS_MANAGED,
        enforce_ssl=tls,
        retention_period=cdk.Duration.days(kept_days),
    )
    cdk.Validations.of(queue).acknowledge(
        cdk.Acknowledgment(
            id="AwsSolutions::AwsSolutions-SQS3", reason=f"nothing consumes it: it is itself where {holds}"
        )
    )
    return queue
