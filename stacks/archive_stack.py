"""The archive, in the home region for all of them: a planner by schedule, a queue, archivers."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any, Final

import aws_cdk as cdk
from aws_cdk import aws_iam as iam
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_scheduler as scheduler
from aws_cdk import aws_sqs as sqs
from constructs import Construct

from stacks import bulkheads, capabilities, naming
from stacks.bucket_rights import bucket_rights
from stacks.bulkheads import Bulkhead
from stacks.bundle import Bundle
from stacks.constructs.bulkhead_function import BulkheadFunction, Right
from stacks.constructs.job_queue import JobQueue
from stacks.settings import Settings
from threadkeep import schema
from threadkeep.config import Config

_ATTEMPTS: Final = 5
"""How often a conversation is tried, over two hours and a half; a day later the planner queues it again."""
_AT_ONCE: Final = 10
"""Archivers that work at one time: nobody waits for them, and each of them writes into the table that others use."""
_SCHEDULES: Final[dict[str, tuple[str, int, dict[str, str]]]] = {
    "PlanHourly": ("rate(1 hour)", 15, {}),
    "PlanDeepDaily": ("rate(1 day)", 60, {"task": "deep"}),
}
"""How often, within how many minutes of that (so that deployments do not all begin at once), and with what event."""


class ArchiveStack(cdk.Stack):
    """Planner, queue and archiver; the table and every region's bucket are known by name alone."""

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        settings: Settings,
        bundle: Bundle,
        erase_queue: sqs.IQueue,
        **stack: Any,
    ) -> None:
        super().__init__(scope, construct_id, **stack)
        self._settings = settings
        self._code = lambda_.Code.from_asset(str(bundle.folder), asset_hash=bundle.digest)
        archive = JobQueue(
            self,
            "ArchiveQueue",
            name=naming.job_queue(settings.stage, bulkheads.ARCHIVER.takes),
            hidden_s=6 * bulkheads.ARCHIVER.timeout_s,
            attempts=_ATTEMPTS,
            tls=capabilities.of(settings.target).tls,
        )
        self._queues: Mapping[str, sqs.IQueue] = {"archive": archive.queue, "erase": erase_queue}
        archive.feed(self._function(bulkheads.ARCHIVER), concurrency_max=_AT_ONCE)
        self._plan_with(self._function(bulkheads.PLANNER))

    def _plan_with(self, function: lambda_.IFunction) -> None:
        role = iam.Role(
            self,
            "ScheduleRole",
            assumed_by=iam.ServicePrincipal(
                "scheduler.amazonaws.com", conditions={"StringEquals": {"aws:SourceAccount": self.account}}
            ),
        )
        role.add_to_policy(iam.PolicyStatement(actions=["lambda:InvokeFunction"], resources=[function.function_arn]))
        for name, (rate, window_minutes, event) in _SCHEDULES.items():
            schedule = scheduler.CfnSchedule(
                self,
                name,
                schedule_expression=rate,
                flexible_time_window=scheduler.CfnSchedule.FlexibleTimeWindowProperty(
                    mode="FLEXIBLE", maximum_window_in_minutes=window_minutes
                ),
                target=scheduler.CfnSchedule.TargetProperty(
                    arn=function.function_arn, role_arn=role.role_arn, input=json.dumps(event)
                ),
            )
            schedule.node.add_dependency(role)  # its policy too: a schedule that cannot start anything is refused

    def _function(self, bulkhead: Bulkhead) -> lambda_.Function:
        return BulkheadFunction(
            self,
            bulkhead.name.capitalize(),
            bulkhead=bulkhead,
            code=self._code,
            config=self._config(bulkhead),
            rights=self._rights(bulkhead),
            network=None,
            account_executions=self._settings.lambda_concurrency,
        ).function

    def _config(self, bulkhead: Bulkhead) -> Config:
        settings = self._settings
        asks_others = len(settings.regions) > 1 and bulkhead.knows_regions
        return Config(
            stage=settings.stage,
            region=self.region,
            # Those that are evacuated too: a retention is not ended by what a region alone knows (docs/decisions/0046).
            regions=settings.regions if asks_others else (),
            table=naming.table(settings.stage),
            bucket=naming.bucket(settings.stage, self.account, self.region) if bulkhead.knows_buckets else "",
            buckets=naming.buckets(settings.stage, self.account, settings.regions) if bulkhead.knows_buckets else {},
            terms=settings.terms if bulkhead.terms else None,
            archive_queue=self._queue_url(bulkhead, "archive"),
            erase_queue=self._queue_url(bulkhead, "erase"),
            archive_idle_ms=settings.archive_idle_ms,
            archive_settle_ms=settings.archive_settle_ms,
        )

    def _queue_url(self, bulkhead: Bulkhead, kind: str) -> str:
        return self._queues[kind].queue_url if kind in bulkhead.sends else ""

    def _rights(self, bulkhead: Bulkhead) -> Iterator[Right]:
        stage = self._settings.stage
        table = naming.table_arn(self, stage)
        yield Right(actions=bulkhead.table, resources=[table])
        others = [naming.table_arn(self, stage, name) for name in self._settings.regions if name != self.region]
        if bulkhead.other_tables and others:
            yield Right(actions=bulkhead.other_tables, resources=others)
        if bulkhead.due_index:
            yield Right(actions=bulkhead.due_index, resources=[f"{table}/index/{schema.DUE_INDEX}"])
        yield from bucket_rights(self, stage=stage, regions=self._settings.regions, bulkhead=bulkhead)
        yield Right(actions=["sqs:SendMessage"], resources=[self._queues[kind].queue_arn for kind in bulkhead.sends])
