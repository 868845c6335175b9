"""The composition root: clients are built here, lazily, once per sandbox, from the environment."""

from __future__ import annotations

import os
import time
from functools import cache
from typing import TYPE_CHECKING, Any

from threadkeep.config import Config, ConfigError, LimitsConfig
from threadkeep.ports import (
    BodyStore,
    ColdStore,
    ExportFiles,
    HotStore,
    ObjectSweep,
    Push,
    Quotas,
    Responder,
    UploadStore,
)
from threadkeep.usecases.services import OtherRegions, Services

if TYPE_CHECKING:
    from threadkeep.stores.aws_clients import Clients


class SystemClock:
    """The system's time."""

    def now_ms(self) -> int:
        """Milliseconds since the epoch."""
        return time.time_ns() // 1_000_000


class _Absent:
    """In place of what a bulkhead has no use of. To use it all the same is a fault of ours, and says so."""

    def __init__(self, setting: str) -> None:
        self._setting = setting

    def __getattr__(self, name: str) -> Any:
        raise ConfigError(f"`{name}` was called, but the function's environment has no {self._setting}")


def _absent(setting: str) -> Any:
    return _Absent(setting)


def _queue(url: str, clients: Clients, setting: str) -> Any:
    """The queue of that URL, if the function knows it."""
    if not url:
        return _absent(setting)
    from threadkeep.stores import aws_config  # noqa: PLC0415 -- as in `services`
    from threadkeep.stores.queue_sqs import QueueSQS  # noqa: PLC0415

    return QueueSQS(clients.far("sqs", aws_config.STORE), url)


def _others(settings: Config, clients: Clients, table: Any) -> OtherRegions | None:
    """What there is to do with other regions; None where there are none. Clients are built when they are needed."""
    if not settings.regions:
        return None
    from threadkeep.stores import aws_config  # noqa: PLC0415 -- as in `services`
    from threadkeep.stores.claims_dynamodb import ClaimsDynamoDB  # noqa: PLC0415
    from threadkeep.stores.live_dynamodb import LiveDynamoDB  # noqa: PLC0415
    from threadkeep.stores.other_tables_dynamodb import OtherTablesDynamoDB  # noqa: PLC0415

    def client(region: str) -> Any:
        return clients.far("dynamodb", aws_config.OTHER_REGION, region=region)

    return OtherRegions(
        endpoint=settings.endpoint,
        names=settings.others,
        live=LiveDynamoDB(table, settings.table, settings.region),
        tables=OtherTablesDynamoDB(client, settings.table),
        claims=ClaimsDynamoDB(table, settings.table, settings.region),
    )


@cache
def config() -> Config:
    """The function's configuration.

    Raises:
        ConfigError: the environment lacks a setting.
    """
    return Config.from_environment(os.environ)


@cache
def services() -> Services:
    """What the use cases work with.

    Raises:
        ConfigError: the function's environment lacks a setting, or holds one that cannot be read.
    """
    # The authorizer uses none of these, and boto3 costs it 0.3 s to load.
    from threadkeep.stores import aws_config  # noqa: PLC0415
    from threadkeep.stores.aws_clients import Clients  # noqa: PLC0415
    from threadkeep.stores.bodies_s3 import BodiesS3  # noqa: PLC0415
    from threadkeep.stores.buckets_s3 import Buckets  # noqa: PLC0415
    from threadkeep.stores.cold_s3 import ColdS3  # noqa: PLC0415
    from threadkeep.stores.due_dynamodb import DueDynamoDB  # noqa: PLC0415
    from threadkeep.stores.erasures_dynamodb import ErasuresDynamoDB  # noqa: PLC0415
    from threadkeep.stores.export_files_s3 import ExportFilesS3  # noqa: PLC0415
    from threadkeep.stores.exports_dynamodb import ExportsDynamoDB  # noqa: PLC0415
    from threadkeep.stores.hot_valkey import HotValkey  # noqa: PLC0415
    from threadkeep.stores.manifests_dynamodb import ManifestsDynamoDB  # noqa: PLC0415
    from threadkeep.stores.push_gateway import GatewayPush  # noqa: PLC0415
    from threadkeep.stores.quotas_memory import QuotasMemory  # noqa: PLC0415
    from threadkeep.stores.quotas_valkey import QuotasValkey  # noqa: PLC0415
    from threadkeep.stores.replaced_dynamodb import ReplacedDynamoDB  # noqa: PLC0415
    from threadkeep.stores.responder_lambda import LambdaResponder  # noqa: PLC0415
    from threadkeep.stores.sweep_s3 import SweepS3  # noqa: PLC0415
    from threadkeep.stores.uploads_s3 import UploadsS3  # noqa: PLC0415
    from threadkeep.stores.valkey_client import ValkeyClient, connect  # noqa: PLC0415
    from threadkeep.stores.warm_dynamodb import WarmDynamoDB  # noqa: PLC0415

    settings = config()
    region = settings.region
    clients = Clients(region, ipv6_out=settings.ipv6_out)
    clock = SystemClock()
    rates = (settings.limits or LimitsConfig()).rates
    hot: HotStore = _absent("THREADKEEP_HOT_HOST")
    quotas: Quotas = _absent("THREADKEEP_HOT_HOST")
    if (address := settings.hot) is not None:
        valkey = ValkeyClient(lambda: connect(address, region=region))
        hot, quotas = HotValkey(valkey, region=region), QuotasValkey(valkey, rates)
    bodies: BodyStore = _absent("THREADKEEP_BUCKETS")
    uploads: UploadStore = _absent("THREADKEEP_BUCKETS")
    cold: ColdStore = _absent("THREADKEEP_BUCKETS")
    export_files: ExportFiles = _absent("THREADKEEP_BUCKETS")
    objects: ObjectSweep = _absent("THREADKEEP_BUCKETS")
    if settings.buckets:
        buckets = Buckets(settings.buckets, lambda place: clients.bucket(place, aws_config.BUCKET))
        bodies, uploads = BodiesS3(buckets, region), UploadsS3(buckets, region)
        cold, export_files = ColdS3(buckets, region), ExportFilesS3(buckets, region)
        objects = SweepS3(buckets[region])
    push: Push = _absent("THREADKEEP_CONNECTIONS_URL")
    if url := settings.connections_url:
        push = GatewayPush(clients.far("apigatewaymanagementapi", aws_config.PUSH, url=url))
    responder: Responder | None = None
    if settings.responder_function:
        responder = LambdaResponder(clients.far("lambda", aws_config.STORE), settings.responder_function)
    table = clients.near("dynamodb", aws_config.STORE)
    others = _others(settings, clients, table)
    accounts = settings.service_account_names
    return Services(
        hot=hot,
        quotas=quotas,
        own_quotas=QuotasMemory(clock, rates),
        warm=WarmDynamoDB(
            table,
            settings.table,
            bodies,
            idle_ms=settings.archive_idle_ms,
            writer=region if others else "",
            service_accounts=accounts,
        ),
        replaced=ReplacedDynamoDB(table, settings.table, region, service_accounts=accounts),
        uploads=uploads,
        # Each owner puts its store here; till then a use says which setting is missing.
        manifests=ManifestsDynamoDB(table, settings.table),
        cold=cold,
        erasures=ErasuresDynamoDB(table, settings.table),
        exports=ExportsDynamoDB(table, settings.table),
        export_files=export_files,
        objects=objects,
        terms=settings.terms or _absent("THREADKEEP_TERMS_REGIONS"),
        erase_queue=_queue(settings.erase_queue, clients, "THREADKEEP_ERASE_QUEUE"),
        tell_queue=_queue(settings.tell_queue, clients, "THREADKEEP_TELL_QUEUE"),
        export_queue=_queue(settings.export_queue, clients, "THREADKEEP_EXPORT_QUEUE"),
        archive_queue=_queue(settings.archive_queue, clients, "THREADKEEP_ARCHIVE_QUEUE"),
        due=DueDynamoDB(table, settings.table),
        archive_idle_ms=settings.archive_idle_ms,
        archive_settle_ms=settings.archive_settle_ms,
        push=push,
        clock=clock,
        region=region,
        responder=responder,
        others=others,
    )
