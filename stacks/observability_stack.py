"""A region's alarms and its one dashboard."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import aws_cdk as cdk
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_lambda as lambda_
from constructs import Construct

from stacks import capabilities
from stacks.hot_stack import DATA_GIGABYTES_MAX
from stacks.settings import Settings

_MINUTE: Final = cdk.Duration.minutes(1)

GATEWAY_REQUESTS_PER_S: Final = 10_000
"""The account's quota in a region, @connections included (API Gateway quotas, read 2026-11-29)."""
GATEWAY_ALARM_PERCENT: Final = 60
HOT_ALARM_PERCENT: Final = 75


class ObservabilityStack(cdk.Stack):
    """What to look at, and what calls: function errors and throttles, the gateway's quota, the cache's memory."""

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        settings: Settings,
        functions: Mapping[str, lambda_.IFunction],
        api_id: str,
        cache: str | None,
        **stack: Any,
    ) -> None:
        super().__init__(scope, construct_id, **stack)
        gateway = _gateway_metrics(api_id, settings.stage)
        self._alarms: list[cloudwatch.Alarm] = []
        for name, function in functions.items():
            self._alarm(f"{name}-errors", function.metric_errors(period=_MINUTE), threshold=1)
            self._alarm(f"{name}-throttles", function.metric_throttles(period=_MINUTE), threshold=1)
        if capabilities.of(settings.target).metric_math_alarms:
            self._alarm(
                "gateway-quota",
                cloudwatch.MathExpression(
                    expression="messages + connects",
                    label="requests",
                    period=_MINUTE,
                    using_metrics={"messages": gateway["MessageCount"], "connects": gateway["ConnectCount"]},
                ),
                threshold=GATEWAY_REQUESTS_PER_S * 60 * GATEWAY_ALARM_PERCENT // 100,
            )
        rows = [_gateway_row(gateway), _function_row(functions)]
        if cache is not None:
            used = _hot_metric(cache, "BytesUsedForCache", "Maximum")
            self._alarm("hot-memory", used, threshold=DATA_GIGABYTES_MAX * 10**9 * HOT_ALARM_PERCENT // 100)
            rows.append(_hot_row(cache, used))
        cloudwatch.Dashboard(
            self,
            "Dashboard",
            dashboard_name=f"threadkeep-{settings.stage}-{self.region}",
            widgets=[[cloudwatch.AlarmStatusWidget(alarms=self._alarms, width=24)], *rows],
        )

    def _alarm(self, name: str, metric: cloudwatch.IMetric, *, threshold: int) -> None:
        """In alarm from the first minute at the threshold; a minute without traffic is a good one."""
        self._alarms.append(
            cloudwatch.Alarm(
                self,
                f"Alarm-{name}",
                metric=metric,
                threshold=threshold,
                comparison_operator=cloudwatch.ComparisonOperator.GREATER_THAN_OR_EQUAL_TO_THRESHOLD,
                evaluation_periods=1,
                treat_missing_data=cloudwatch.TreatMissingData.NOT_BREACHING,
            )
        )


def _gateway_metrics(api_id: str, stage: str) -> dict[str, cloudwatch.Metric]:
    return {
        name: cloudwatch.Metric(
            namespace="AWS/ApiGateway",
            metric_name=name,
            dimensions_map={"ApiId": api_id, "Stage": stage},
            statistic=statistic,
            period=_MINUTE,
        )
        for name, statistic in {
            "MessageCount": "Sum",
            "ConnectCount": "Sum",
            "ClientError": "Sum",
            "ExecutionError": "Sum",
            "IntegrationError": "Sum",
            "IntegrationLatency": "p99",
        }.items()
    }


def _hot_metric(cache: str, name: str, statistic: str) -> cloudwatch.Metric:
    return cloudwatch.Metric(
        namespace="AWS/ElastiCache",
        metric_name=name,
        dimensions_map={"clusterId": cache},
        statistic=statistic,
        period=_MINUTE,
    )


def _graph(title: str, *metrics: cloudwatch.IMetric) -> cloudwatch.GraphWidget:
    return cloudwatch.GraphWidget(title=title, left=[*metrics], width=8)


def _gateway_row(gateway: Mapping[str, cloudwatch.Metric]) -> list[cloudwatch.IWidget]:
    return [
        _graph("Gateway: messages and connects a minute", gateway["MessageCount"], gateway["ConnectCount"]),
        _graph("Gateway: errors", gateway["ClientError"], gateway["ExecutionError"], gateway["IntegrationError"]),
        _graph("Gateway: integration latency, p99", gateway["IntegrationLatency"]),
    ]


def _function_row(functions: Mapping[str, lambda_.IFunction]) -> list[cloudwatch.IWidget]:
    each = functions.values()
    return [
        _graph("Functions: invocations", *(function.metric_invocations(period=_MINUTE) for function in each)),
        _graph("Functions: errors", *(function.metric_errors(period=_MINUTE) for function in each)),
        _graph(
            "Functions: duration, p99",
            *(function.metric_duration(period=_MINUTE, statistic="p99") for function in each),
        ),
    ]


def _hot_row(cache: str, used: cloudwatch.Metric) -> list[cloudwatch.IWidget]:
    return [
        _graph("Valkey: bytes used", used),
        _graph(
            "Valkey: evictions and throttled commands",
            *(_hot_metric(cache, name, "Sum") for name in ("Evictions", "ThrottledCmds")),
        ),
        _graph("Valkey: connections", _hot_metric(cache, "CurrConnections", "Maximum")),
    ]
