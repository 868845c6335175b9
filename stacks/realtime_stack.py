"""A region's WebSocket API and the functions behind it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

import aws_cdk as cdk
from aws_cdk import aws_events as events
from aws_cdk import aws_events_targets as targets
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_lambda_destinations as destinations
from constructs import Construct

from stacks import bulkheads, capabilities, naming
from stacks.bucket_rights import bucket_rights
from stacks.bulkheads import Bulkhead
from stacks.bundle import Bundle
from stacks.constructs.bulkhead_function import BulkheadFunction, Right
from stacks.constructs.failure_queue import failure_queue
from stacks.constructs.gateway import WebSocketGateway
from stacks.constructs.job_queue import JobQueue
from stacks.constructs.table_stream import TableStream
from stacks.hot_stack import HotEndpoint
from stacks.network_stack import Network
from stacks.settings import Settings
from threadkeep import schema
from threadkeep.config import Config, HotConfig

_JOBS: Final = {"erase": (12 * 60, 5), "tell": (30, 60), "export": (16 * 60, 5)}
"""How many seconds a job that was taken is hidden, and how often it is tried, by its kind.

- ``tell``: people wait for news. A herald that dies or runs out of time, as a first start may, costs half a minute; one
  that fails puts its job back sooner. The hot tier may be away for long, and what it still has then has to go all
  the same: so many attempts are half an hour, however each of them ends.
- ``erase``: six timeouts; nobody waits, since it takes half an hour to be done in any case. An hour in all.
- ``export``: its owner waits, so a function that died is replaced a minute after it would have had to end.
"""
_AT_ONCE: Final = 5
"""Erasers, heralds and exporters that work at one time: they may take their time, and slow nobody down."""
_HERALDS_BESIDE_OTHERS: Final = 50
"""Where there are other regions every message of theirs is a job. Did each take 50 ms (not measured), so many would
keep up with the 1,000 a second that a gateway's default throttle lets in."""


class RealtimeStack(cdk.Stack):
    """One function and one role per bulkhead; table, bucket and cache are known by name and address alone.

    Given a network, the functions that talk to Valkey stand in it.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        settings: Settings,
        hot: HotEndpoint,
        network: Network | None,
        bundle: Bundle,
        **stack: Any,
    ) -> None:
        super().__init__(scope, construct_id, **stack)
        self._settings = settings
        self._hot = hot
        self._network = network
        self._revision = bundle.digest
        self._code = lambda_.Code.from_asset(str(bundle.folder), asset_hash=bundle.digest)
        self._gateway = WebSocketGateway(
            self, "Gateway", name=naming.table(settings.stage), can=capabilities.of(settings.target)
        )
        self.api_id = self._gateway.api_id
        self._address = naming.Gateway(
            api_id=self.api_id,
            region=self.region,
            url_suffix=self.url_suffix,
            stage=settings.stage,
            local_endpoint=settings.local_endpoint,
        )
        self._queues = {kind: self._job_queue(kind, *tried) for kind, tried in _JOBS.items()}
        self.erase_queue = self._queues["erase"].queue
        deployed = bulkheads.deployed(has_model=settings.model is not None, network=settings.network)
        functions = {bulkhead.name: self._function(bulkhead) for bulkhead in deployed}
        self._gateway.add_routes(
            functions={bulkhead.name: functions[bulkhead.name] for bulkhead in bulkheads.ROUTE_BULKHEADS},
            authorizer=functions[bulkheads.AUTHORIZER.name],
        )
        self._sweep_with(functions[bulkheads.SWEEPER.name])
        self._erase_with(functions)
        self._queues[bulkheads.EXPORTER.takes].feed(functions[bulkheads.EXPORTER.name], concurrency_max=_AT_ONCE)
        if bulkheads.RESPONDER.name in functions:
            self._answer_with(functions[bulkheads.RESPONDER.name])
        self._gateway.deploy(stage_name=settings.stage, manage_log_role=settings.manage_gateway_log_role)
        cdk.Validations.of(self).acknowledge(
            cdk.Acknowledgment(
                id="AwsSolutions::AwsSolutions-APIG4",
                reason="only $connect can have an authorizer; its context reaches every later route of the connection",
            )
        )
        cdk.CfnOutput(self, "ApiId", value=self.api_id)
        cdk.CfnOutput(self, "Url", value=self._address.url)

    def _sweep_with(self, function: lambda_.IFunction) -> None:
        events.Rule(
            self,
            "SweepEveryMinute",
            schedule=events.Schedule.rate(cdk.Duration.minutes(1)),
            targets=[targets.LambdaFunction(function, retry_attempts=0)],  # a minute later there is another
        )
        events.Rule(
            self,
            "LookForTheForgottenDaily",
            schedule=events.Schedule.rate(cdk.Duration.days(1)),
            targets=[targets.LambdaFunction(function, event=events.RuleTargetInput.from_object({"task": "backstop"}))],
        )

    def _job_queue(self, kind: str, hidden_s: int, attempts: int) -> JobQueue:
        return JobQueue(
            self,
            f"{kind.capitalize()}Queue",
            name=naming.job_queue(self._settings.stage, kind),
            hidden_s=hidden_s,
            attempts=attempts,
            tls=capabilities.of(self._settings.target).tls,
        )

    def _erase_with(self, functions: Mapping[str, lambda_.Function]) -> None:
        """From a tombstone in the table's stream to the queues, and from these to what clears the stores."""
        heralds = _HERALDS_BESIDE_OTHERS if len(self._settings.regions) > 1 else _AT_ONCE
        for bulkhead, at_once in ((bulkheads.ERASER, _AT_ONCE), (bulkheads.HERALD, heralds)):
            self._queues[bulkhead.takes].feed(functions[bulkhead.name], concurrency_max=at_once)
        table = naming.table(self._settings.stage)
        TableStream(
            self,
            "TableStream",
            table=table,
            table_arn=naming.table_arn(self, self._settings.stage),
            revision=self._revision,
            consumer=functions[bulkheads.ANNOUNCER.name],
            has_others=len(self._settings.regions) > 1,
            queue_name=naming.failed_changes(self._settings.stage),
            tls=capabilities.of(self._settings.target).tls,
        )

    def _answer_with(self, function: lambda_.IFunction) -> None:
        failed = failure_queue(
            self,
            "FailedAnswers",
            name=naming.failed_answers(self._settings.stage),
            kept_days=7,
            tls=capabilities.of(self._settings.target).tls,
            holds="requests end whose answer failed, for people to see",
        )
        # Asked once more at most: a model's time is paid for, and whoever asked the question may ask again.
        function.configure_async_invoke(
            retry_attempts=1,
            max_event_age=cdk.Duration.minutes(15),
            on_failure=destinations.SqsDestination(failed),
        )

    def _function(self, bulkhead: Bulkhead) -> lambda_.Function:
        return BulkheadFunction(
            self,
            bulkhead.name.capitalize(),
            bulkhead=bulkhead,
            code=self._code,
            config=self._config(bulkhead),
            rights=self._rights(bulkhead),
            network=self._network if bulkhead.hot else None,
            account_executions=self._settings.lambda_concurrency,
        ).function

    def _config(self, bulkhead: Bulkhead) -> Config:
        """What the function is told: only what its row in the table of bulkheads gives it a use for."""
        settings = self._settings
        if bulkhead is bulkheads.AUTHORIZER:
            return Config(
                stage=settings.stage,
                region=self.region,
                jwks_url=settings.jwks_url,
                jwt_issuer=settings.jwt_issuer,
                jwt_audience=settings.jwt_audience,
                allowed_origins=settings.allowed_origins,
                query_token=settings.query_token,
            )
        is_one_of_several = len(settings.regions) > 1 and bulkhead.knows_regions
        return Config(
            stage=settings.stage,
            region=self.region,
            regions=settings.regions if is_one_of_several else (),
            evacuated=settings.evacuated if is_one_of_several else (),
            endpoint=settings.endpoints.get(self.region, self._address.url) if is_one_of_several else "",
            table=naming.table(settings.stage) if bulkhead.table else "",
            bucket=naming.bucket(settings.stage, self.account, self.region) if bulkhead.knows_buckets else "",
            buckets=naming.buckets(settings.stage, self.account, settings.regions) if bulkhead.knows_buckets else {},
            connections_url=self._address.connections_url if bulkhead.pushes else "",
            hot=self._hot_config(bulkhead) if bulkhead.hot else None,
            limits=settings.limits if bulkhead.hot else None,
            model=settings.model if bulkhead.model else None,
            responder_function=self._invoked(bulkhead, bulkheads.RESPONDER),
            produce_function=self._invoked(bulkhead, bulkheads.PRODUCE),
            ipv6_out=self._network is not None and bulkhead.hot,
            terms=settings.terms if bulkhead.terms else None,
            service_accounts=settings.service_account_names if bulkhead.table else (),
            export_queue=self._queue_url(bulkhead, "export"),
            erase_queue=self._queue_url(bulkhead, "erase"),
            tell_queue=self._queue_url(bulkhead, "tell"),
            archive_idle_ms=settings.archive_idle_ms,
        )

    def _queue_url(self, bulkhead: Bulkhead, kind: str) -> str:
        return self._queues[kind].queue.queue_url if kind in bulkhead.sends else ""

    def _invoked(self, bulkhead: Bulkhead, other: Bulkhead) -> str:
        """The other's function, where it invokes that and the deployment has it; else empty."""
        if bulkhead.invokes != other.name or self._settings.model is None:
            return ""
        return naming.function(self._settings.stage, other.name)

    def _hot_config(self, bulkhead: Bulkhead) -> HotConfig:
        if self._hot.cache is None:
            return HotConfig(host=self._hot.host, port=self._hot.port)
        return HotConfig(
            host=self._hot.host,
            port=self._hot.port,
            auth="iam",
            user=naming.cache_user(self._settings.stage, bulkhead.name),
            cache=self._hot.cache,
        )

    def _table_rights(self, bulkhead: Bulkhead) -> Iterator[Right]:
        stage = self._settings.stage
        table = naming.table_arn(self, stage)
        if bulkhead.table:
            yield Right(actions=bulkhead.table, resources=[table])
        others = [naming.table_arn(self, stage, name) for name in self._settings.regions if name != self.region]
        if bulkhead.beside_others and others:
            yield Right(actions=bulkhead.beside_others, resources=[table])
        if bulkhead.other_tables and others:
            yield Right(actions=bulkhead.other_tables, resources=others)
        if bulkhead.owner_index:
            yield Right(actions=bulkhead.owner_index, resources=[f"{table}/index/{schema.OWNER_INDEX}"])
        if bulkhead.own_exports:
            exports_alone = {"dynamodb:LeadingKeys": [f"*#{schema.EXPORTS_MARK}*"]}
            yield Right(
                actions=bulkhead.own_exports, resources=[table], conditions={"ForAllValues:StringLike": exports_alone}
            )

    def _rights(self, bulkhead: Bulkhead) -> Iterator[Right]:
        stage = self._settings.stage
        yield from self._table_rights(bulkhead)
        yield from bucket_rights(self, stage=stage, regions=self._settings.regions, bulkhead=bulkhead)
        if bulkhead.pushes:
            yield Right(
                actions=["execute-api:ManageConnections"],
                resources=[self._gateway.connections_arn(stage)],
                wildcard_reason="a connection's id is known at run time only",
            )
        if bulkhead.sends:
            queues = [self._queues[kind].queue.queue_arn for kind in bulkhead.sends]
            yield Right(actions=["sqs:SendMessage"], resources=queues)
        for other in (bulkheads.RESPONDER, bulkheads.PRODUCE):
            if invoked := self._invoked(bulkhead, other):
                yield Right(actions=["lambda:InvokeFunction"], resources=[naming.function_arn(self, invoked)])
        yield from self._model_rights(bulkhead)
        if bulkhead.hot and self._hot.cache is not None:
            yield Right(
                actions=["elasticache:Connect"],
                resources=[
                    naming.elasticache_arn(self, "serverlesscache", self._hot.cache),
                    naming.elasticache_arn(self, "user", naming.cache_user(stage, bulkhead.name)),
                ],
            )

    def _model_rights(self, bulkhead: Bulkhead) -> Iterator[Right]:
        model = self._settings.model
        if model is None or not bulkhead.model:
            return
        if model.kind == "bedrock":
            # A profile's user needs the model too, in each of the profile's regions (Bedrock user guide, "Prerequisites
            # for inference profiles", read 2026-11-29).
            asks = ["bedrock:InvokeModelWithResponseStream"]
            yield Right(actions=asks, resources=[naming.inference_profile_arn(self, model.name)])
            yield Right(
                actions=asks,
                resources=naming.model_arns(self, model.name),
                wildcard_reason="an inference profile asks its model in whichever of its regions has room",
            )
        if model.api_key_secret:
            # Secrets Manager adds a hyphen and six characters to a secret's name, known to nobody before it exists.
            yield Right(
                actions=["secretsmanager:GetSecretValue"],
                resources=[naming.secret_arn(self, model.api_key_secret)],
                wildcard_reason="the six characters behind a secret's name are Secrets Manager's own",
            )
