"""What every check stands on: clients and sockets, the account, and the list of what has to be deleted again."""

from __future__ import annotations

import asyncio
import os
import threading
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from functools import cached_property
from typing import Any, Final, TypeVar

import boto3
from botocore.config import Config
from websockets.asyncio.client import ClientConnection

from smoke import raw
from smoke.target import Target
from stacks import naming
from threadkeep_client import Client, ConnectionFailedError, ConnectionSettings, NotFoundError, ThreadkeepError, new_id

_AWS: Final = Config(connect_timeout=5, read_timeout=20, retries={"total_max_attempts": 2})
T = TypeVar("T")

_POLL_S: Final = 2.0
_PATIENT: Final = ConnectionSettings(open_s=raw.OPEN_S, reply_s=20.0, deadline_s=60.0)
"""What is looked at is not how quickly a busy deployment answers, except where that is the line."""
_PAGES_MAX: Final = 20
ERASE_SECONDS_MAX: Final = 60.0


class Ground:
    """One run's.

    Args:
        target: the deployment.
        patience_s: how long to wait for what comes late: metrics, traces, log lines, alarms.
        environment: in which AWS credentials are.
    """

    def __init__(self, target: Target, *, patience_s: float, environment: Mapping[str, str] = os.environ) -> None:
        self.target = target
        self.patience_s = patience_s
        self._made: list[str] = []
        self._session: Any = None
        self._clients: dict[tuple[str, str], Any] = {}
        self._making = threading.Lock()
        self._secrets = (
            *target.secrets,
            *(environment.get(name, "") for name in ("AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN")),
        )

    # --- the service --------------------------------------------------------------------------------------------------

    def user(self, url: str | None = None) -> Client:
        """A client of the user, at the target's URL or at another region's."""
        return Client(url or self.target.url, self.target.token, settings=_PATIENT)

    def worker(self) -> Client:
        """A client of a worker."""
        return Client(self.target.url, self.target.produce_token, settings=_PATIENT)

    @asynccontextmanager
    async def socket(self, token: str | None = None, **options: Any) -> AsyncIterator[ClientConnection]:
        """A bare socket of the user's, or of another token's; see `raw.dial`."""
        async with raw.dial(self.target.url, token or self.target.token, **options) as socket:
            yield socket

    async def conversation(self, client: Client, *, retention_days: int | None = 1) -> str:
        """A new conversation of the user's; deleted after the run, and should that fail it expires after a day."""
        identifier = new_id()
        self._made.append(identifier)  # before it is made: its reply may be lost
        await client.create_conversation(identifier, title="smoke", retention_days=retention_days)
        return identifier

    async def erase(self) -> list[str]:
        """Delete all that was made, by the product's own erasure.

        Returns:
            Those that could not be deleted.
        """
        left = list(self._made)
        try:
            async with asyncio.timeout(ERASE_SECONDS_MAX), self.user() as client:
                for conversation in self._made:
                    try:
                        await client.delete_conversation(conversation)
                    except NotFoundError:
                        pass  # it never was
                    except ThreadkeepError:
                        continue
                    left.remove(conversation)
        except (TimeoutError, ConnectionFailedError):
            pass
        return left

    # --- the account --------------------------------------------------------------------------------------------------

    async def ask(
        self, service: str, operation: str, *, region: str | None = None, **parameters: Any
    ) -> dict[str, Any]:
        """One call to AWS, off the event loop.

        Raises:
            botocore.exceptions.ClientError: it was refused.
            botocore.exceptions.BotoCoreError: it could not be made.
        """
        return await asyncio.to_thread(self._call, service, region or self.target.region, operation, parameters)

    async def listed(self, service: str, operation: str, items: str, **parameters: Any) -> list[dict[str, Any]]:
        """What a call lists under a name, of all its pages; AWS may give an empty one before the next.

        Raises:
            botocore.exceptions.ClientError: it was refused.
        """
        found: list[dict[str, Any]] = []
        token: dict[str, str] = {}
        for _ in range(_PAGES_MAX):
            page = await self.ask(service, operation, **parameters, **token)
            found += page.get(items, [])
            token = {name: page[name] for name in ("NextToken", "nextToken") if page.get(name)}
            if not token:
                break
        return found

    async def log_lines(self, group: str, since_ms: int, pattern: str = "") -> list[str]:
        """Lines of a log group since then, that match CloudWatch's filter pattern."""
        listed = await self.listed(
            "logs", "filter_log_events", "events", logGroupName=group, startTime=since_ms, filterPattern=pattern
        )
        return [event["message"] for event in listed]

    def _call(
        self, service: str, region: str, operation: str, parameters: dict[str, Any], endpoint: str | None = None
    ) -> dict[str, Any]:
        with self._making:  # a session is not for several threads, and clients are slow to make
            key = (service, region)
            if key not in self._clients:
                self._session = self._session or boto3.Session()
                self._clients[key] = self._session.client(
                    service, region_name=region, endpoint_url=endpoint or self.target.endpoint, config=_AWS
                )
        answer: dict[str, Any] = getattr(self._clients[key], operation)(**parameters)
        return answer

    async def connections(self, operation: str, **parameters: Any) -> dict[str, Any]:
        """One call to `@connections`, with the credentials of whoever runs the pack."""
        address = naming.Gateway(
            api_id=await self.api_id(),
            region=self.target.region,
            url_suffix="amazonaws.com.cn" if self.target.region.startswith("cn-") else "amazonaws.com",
            stage=self.target.stage,
            local_endpoint=self.target.endpoint,
        ).connections_url
        return await asyncio.to_thread(
            self._call, "apigatewaymanagementapi", self.target.region, operation, parameters, address
        )

    async def function(self, bulkhead: str, region: str | None = None) -> dict[str, Any]:
        """A function's configuration."""
        name = naming.function(self.target.stage, bulkhead)
        return await self.ask("lambda", "get_function_configuration", region=region, FunctionName=name)

    async def table(self, region: str | None = None) -> dict[str, Any]:
        """The table's description, as a region has it."""
        answer = await self.ask("dynamodb", "describe_table", region=region, TableName=self.table_name)
        return dict(answer["Table"])

    async def other_regions(self) -> list[str]:
        """Those of the deployment but the target's: as given, and as the table has replicas."""
        regions = {*self.target.regions, *(each["RegionName"] for each in (await self.table()).get("Replicas", []))}
        return sorted(regions - {self.target.region})

    @cached_property
    def table_name(self) -> str:
        """The same in every region."""
        return naming.table(self.target.stage)

    async def account(self) -> str:
        """The account's number."""
        return str((await self.ask("sts", "get_caller_identity"))["Account"])

    async def api_id(self, region: str | None = None) -> str:
        """Of a region's WebSocket API: from the URL, else by its name.

        Raises:
            LookupError: the region has none of that name.
        """
        if self.target.api_id and region in {None, self.target.region}:
            return self.target.api_id
        return str((await self.api(region))["ApiId"])

    async def api(self, region: str | None = None) -> dict[str, Any]:
        """A region's API.

        Raises:
            LookupError: the region has none of that name.
        """
        for api in await self.listed("apigatewayv2", "get_apis", "Items", region=region):
            if api["Name"] == self.table_name:
                return dict(api)
        raise LookupError(f"no API named {self.table_name} in {region or self.target.region}")

    # --- waiting and telling ------------------------------------------------------------------------------------------

    def late(self, seconds: float) -> float:
        """How long to wait for what may come so late; no longer than there is patience."""
        return min(seconds, self.patience_s)

    async def until(self, look: Callable[[], Awaitable[T]], seconds: float) -> T:
        """Look until there is something, or the time is up; the last look is returned, whatever it gave."""
        ends = time.monotonic() + seconds
        while True:
            seen = await look()
            if seen or time.monotonic() > ends:
                return seen
            await asyncio.sleep(min(_POLL_S, max(0.1, ends - time.monotonic())))

    def without_secrets(self, text: str) -> str:
        """The text without tokens and keys."""
        for secret in self._secrets:
            if secret:
                text = text.replace(secret, "…")
        return text
