"""A region's alarms and its one dashboard."""

from __future__ import annotations

from typing import Any, Final

import aws_cdk as cdk
from aws_cdk import aws_cloudwatch as cloudwatch
from constructs import Construct

from stacks import bulkheads, capabilities, naming
from stacks.counted import WATCHED
from stacks.hot_stack import DATA_GIGABYTES_MAX
from stacks.settings import Settings

_MINUTE: Final = cdk.Duration.minutes(1)

GATEWAY_REQUESTS_PER_S: Final = 10_000
"""The account's quota in a region, @connections included (API Gateway quotas, read 2026-11-29)."""
GATEWAY_ALARM_PERCENT: Final = 60
ARCHIVE_BEHIND_S: Final = 12 * 60 * 60
"""Half of the time after which the planner takes a job for lost: longer than all attempts at one take."""
HOT_ALARM_PERCENT: Final = 75
ANNOUNCER_BEHIND_MS: Final = 10 * 60_000
"""The table's stream forgets after a day: somebody has to look long before."""

_Row = list[cloudwatch.IWidget]


class ObservabilityStack(cdk.Stack):
    """What to look at, and what calls: the functions' errors, failed answers, the gateway's quota, the cache's memory.

    Functions are known by name. `cache` is None where Valkey is one's own.
    """

    def __init__(
        self, scope: Construct, construct_id: str, *, settings: Settings, api_id: str, cache: str | None, **stack: Any
    ) -> None:
        super().__init__(scope, construct_id, **stack)
        self._alarms: list[cloudwatch.Alarm] = []
        self._is_home = self.region == settings.home_region
        rows = [
            self._gateway({"ApiId": api_id, "Stage": settings.stage}, capabilities.of(settings.target)),
            self._functions(settings),
        ]
        rows.append(self._jobs(settings.stage))
        rows.append(self._counted())
        if settings.model is not None:
            rows.append(self._answers(settings.stage))
        if self._is_home:
            rows.append(self._archive(settings.stage))
        if cache is not None:
            # Not `CacheClusterId`, under which serverless caches report nothing (CloudWatch's list-metrics as shown in
            # cdklabs/cdk-monitoring-constructs#750, read 2026-11-29).
            rows.append(self._hot({"clusterId": cache}))
        cloudwatch.Dashboard(
            self,
            "Dashboard",
            dashboard_name=f"threadkeep-{settings.stage}-{self.region}",
            widgets=[[cloudwatch.AlarmStatusWidget(alarms=self._alarms, width=24)], *rows],
        )

    def _gateway(self, api: dict[str, str], can: capabilities.Capabilities) -> _Row:
        def metric(name: str, statistic: str = "Sum") -> cloudwatch.Metric:
            return _metric("AWS/ApiGateway", name, statistic, api)

        messages, connects = metric("MessageCount"), metric("ConnectCount")
        if can.metric_math_alarms:
            requests = cloudwatch.MathExpression(
                expression="messages + connects",
                label="requests",
                period=_MINUTE,
                using_metrics={"messages": messages, "connects": connects},
            )
            self._alarm("gateway-quota", requests, GATEWAY_REQUESTS_PER_S * 60 * GATEWAY_ALARM_PERCENT // 100)
        errors = (metric(name) for name in ("ClientError", "ExecutionError", "IntegrationError"))
        return [
            _graph("Gateway: messages and connects a minute", messages, connects),
            _graph("Gateway: errors", *errors),
            _graph("Gateway: integration latency, p99", metric("IntegrationLatency", "p99")),
        ]

    def _functions(self, settings: Settings) -> _Row:
        def metrics(name: str, statistic: str = "Sum") -> dict[str, cloudwatch.Metric]:
            return {
                bulkhead.name: _metric(
                    "AWS/Lambda", name, statistic, {"FunctionName": naming.function(settings.stage, bulkhead.name)}
                )
                for bulkhead in (
                    *bulkheads.deployed(has_model=settings.model is not None, network=settings.network),
                    *(bulkheads.ARCHIVE if self.region == settings.home_region else ()),
                )
            }

        errors, throttles = metrics("Errors"), metrics("Throttles")
        for name in errors:
            self._alarm(f"{name}-errors", errors[name], 1)
            self._alarm(f"{name}-throttles", throttles[name], 1)
        return [
            _graph("Functions: invocations", *metrics("Invocations").values()),
            _graph("Functions: errors and throttles", *errors.values(), *throttles.values()),
            _graph("Functions: duration, p99", *metrics("Duration", "p99").values()),
        ]

    def _counted(self) -> _Row:
        """What our own code counts of loss, delay and attack."""
        graphs: dict[str, list[cloudwatch.IMetric]] = {}
        for watched in WATCHED:
            for function in watched.by if self._is_home or not watched.at_home else ():
                dimensions = {"service": function} | ({"outcome": watched.outcome} if watched.outcome else {})
                metric = _metric("Threadkeep", watched.metric, "Sum", dimensions)
                self._alarm(watched.alarm(function), metric, watched.at, minutes=watched.minutes)
                graphs.setdefault(watched.metric, []).append(metric)
        return [_graph(name, *metrics) for name, metrics in graphs.items()]

    def _jobs(self, stage: str) -> _Row:
        """How far behind the table's stream erasures begin, and jobs that failed again and again."""
        behind = _metric(
            "AWS/Lambda", "IteratorAge", "Maximum", {"FunctionName": naming.function(stage, bulkheads.ANNOUNCER.name)}
        )
        self._alarm("announcer-behind", behind, ANNOUNCER_BEHIND_MS)
        failed = {
            queue: _metric("AWS/SQS", "ApproximateNumberOfMessagesVisible", "Maximum", {"QueueName": queue})
            for queue in (
                naming.failed_changes(stage),
                *(
                    naming.failed_jobs(naming.job_queue(stage, bulkhead.takes))
                    for bulkhead in (bulkheads.ERASER, bulkheads.HERALD, bulkheads.EXPORTER)
                ),
            )
        }
        for queue, metric in failed.items():
            self._alarm(queue.removeprefix(f"{naming.table(stage)}-"), metric, 1)
        return [
            _graph("Announcer: behind the table's stream, ms", behind),
            _graph("Jobs that failed again and again", *failed.values()),
        ]

    def _archive(self, stage: str) -> _Row:
        """How long conversations wait for an archiver, and those that no archiver can move."""
        queue = naming.job_queue(stage, bulkheads.ARCHIVER.takes)
        waiting = _metric("AWS/SQS", "ApproximateAgeOfOldestMessage", "Maximum", {"QueueName": queue})
        failed = _metric(
            "AWS/SQS", "ApproximateNumberOfMessagesVisible", "Maximum", {"QueueName": naming.failed_jobs(queue)}
        )
        self._alarm("archive-behind", waiting, ARCHIVE_BEHIND_S)
        self._alarm("archive-failed", failed, 1)
        return [
            _graph("Archive: age of the oldest job, s", waiting),
            _graph("Archive: jobs that failed again and again", failed),
        ]

    def _answers(self, stage: str) -> _Row:
        # Once in the queue a request stays there: its alarm holds until somebody has looked and emptied it.
        failed = _metric(
            "AWS/SQS",
            "ApproximateNumberOfMessagesVisible",
            "Maximum",
            {"QueueName": naming.failed_answers(stage)},
        )
        self._alarm("failed-answers", failed, 1)
        return [_graph("Answers: requests that failed", failed)]

    def _hot(self, cache: dict[str, str]) -> _Row:
        def metric(name: str, statistic: str) -> cloudwatch.Metric:
            return _metric("AWS/ElastiCache", name, statistic, cache)

        used = metric("BytesUsedForCache", "Maximum")
        self._alarm("hot-memory", used, DATA_GIGABYTES_MAX * 10**9 * HOT_ALARM_PERCENT // 100)
        return [
            _graph("Valkey: bytes used", used),
            _graph("Valkey: evictions, throttled commands", metric("Evictions", "Sum"), metric("ThrottledCmds", "Sum")),
            _graph("Valkey: connections", metric("CurrConnections", "Maximum")),
        ]

    def _alarm(self, name: str, metric: cloudwatch.IMetric, threshold: int, *, minutes: int = 1) -> None:
        """In alarm after so many minutes on end at the threshold; a minute without traffic is a good one."""
        self._alarms.append(
            cloudwatch.Alarm(
                self,
                f"Alarm-{name}",
                metric=metric,
                threshold=threshold,
                comparison_operator=cloudwatch.ComparisonOperator.GREATER_THAN_OR_EQUAL_TO_THRESHOLD,
                evaluation_periods=minutes,
                treat_missing_data=cloudwatch.TreatMissingData.NOT_BREACHING,
            )
        )


def _metric(namespace: str, name: str, statistic: str, dimensions: dict[str, str]) -> cloudwatch.Metric:
    return cloudwatch.Metric(
        namespace=namespace, metric_name=name, statistic=statistic, dimensions_map=dimensions, period=_MINUTE
    )


def _graph(title: str, *metrics: cloudwatch.IMetric) -> cloudwatch.GraphWidget:
    return cloudwatch.GraphWidget(title=title, left=[*metrics], width=8)
