"""A queue of jobs with its one consumer, and the queue where those end that fail again and again."""

from __future__ import annotations

from typing import Final

import aws_cdk as cdk
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_lambda_event_sources as event_sources
from aws_cdk import aws_sqs as sqs
from constructs import Construct

from stacks import naming

_KEPT: Final = cdk.Duration.days(14)
"""SQS keeps nothing longer."""


class JobQueue(Construct):
    """Jobs of ids alone, so encrypted with SQS's own key; only TLS reaches them where the target has it.

    Args:
        name: the queue's; its dead-letter queue's is ``<name>-failed``.
        hidden_s: how long a job that was taken is hidden. If its consumer dies or runs out of time, nobody can put it
            back, and so long it waits. AWS advises six timeouts of the consumer, and refuses less than one: within
            the rest Lambda tries again what it was not let start, for want of room in the account, before that counts
            as an attempt (Lambda developer guide, "Creating and configuring an Amazon SQS event source mapping", read
            2026-11-29). Whoever takes less allows for more attempts.
        attempts: how often a job is tried before it is put aside.
        tls: whether to insist on it.
    """

    def __init__(
        self, scope: Construct, construct_id: str, *, name: str, hidden_s: int, attempts: int, tls: bool
    ) -> None:
        super().__init__(scope, construct_id)
        self.failed = sqs.Queue(
            self,
            "Failed",
            queue_name=naming.failed_jobs(name),
            encryption=sqs.QueueEncryption.SQS_MANAGED,
            enforce_ssl=tls,
            retention_period=_KEPT,
        )
        self.queue = sqs.Queue(
            self,
            "Jobs",
            queue_name=name,
            encryption=sqs.QueueEncryption.SQS_MANAGED,
            enforce_ssl=tls,
            retention_period=_KEPT,
            visibility_timeout=cdk.Duration.seconds(hidden_s),
            dead_letter_queue=sqs.DeadLetterQueue(queue=self.failed, max_receive_count=attempts),
        )

    def feed(self, consumer: lambda_.IFunction, *, concurrency_max: int, batch_size: int = 1) -> None:
        """Let the function take the jobs, so many of it at a time."""
        consumer.add_event_source(
            event_sources.SqsEventSource(
                self.queue,
                batch_size=batch_size,
                max_concurrency=concurrency_max,
                report_batch_item_failures=True,
            )
        )
