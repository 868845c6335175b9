"""The connection to Valkey: built when first needed, replaced when it breaks, never shared with an unread reply."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final
from urllib.parse import urlencode

import botocore.session
from botocore.auth import SigV4QueryAuth
from botocore.awsrequest import AWSRequest
from valkey import Valkey
from valkey.cluster import ValkeyCluster
from valkey.connection import Connection, ConnectionPool, SSLConnection
from valkey.credentials import CredentialProvider
from valkey.exceptions import (
    ClusterError,
    DataError,
    NoScriptError,
    OutOfMemoryError,
    ReadOnlyError,
    ResponseError,
    TryAgainError,
    ValkeyClusterException,
    ValkeyError,
)

from threadkeep.config import HotConfig
from threadkeep.domain.errors import HotUnavailable
from threadkeep.stores.lua import Script

CONNECT_TIMEOUT_S: Final = 0.5
READ_TIMEOUT_S: Final = 1.0
TOKEN_LIFE_S: Final = 900
"""The longest that ElastiCache takes (its user guide, "Authenticating with IAM", read 2026-11-29)."""

_KEYS_A_SCAN: Final = 1_000

_STATES: Final = frozenset({"BUSY", "CLUSTERDOWN", "MASTERDOWN", "MISCONF", "NOREPLICAS", "TRYAGAIN"})
"""Error codes that tell of the server's state, not of a fault in the request. Outside cluster mode the library has no
exceptions for them."""


class MemoryFull(HotUnavailable):
    """It serves, but keeps nothing more just now."""


class _OneReply:
    """A connection that is closed rather than used again while a reply to it is outstanding.

    A call that is interrupted between its write and its read would leave its reply to whoever calls next. The library
    closes connections after errors of its own; this holds for whatever else is raised, at any instant.
    """

    _sock: Any
    _awaits_reply = False

    def send_packed_command(self, command: Any, check_health: bool = True) -> None:  # noqa: FBT001, FBT002 -- theirs
        if self._awaits_reply:
            self.disconnect()
        if self._sock is None:
            self.connect()  # greets, which itself awaits replies
        self._awaits_reply = True
        super().send_packed_command(command, check_health)  # type: ignore[misc]

    def read_response(self, *args: Any, **kwargs: Any) -> Any:
        try:
            response = super().read_response(*args, **kwargs)  # type: ignore[misc]
        except ResponseError:
            self._awaits_reply = False
            raise
        self._awaits_reply = False
        return response

    def connect(self) -> None:
        try:
            super().connect()  # type: ignore[misc]
        except BaseException:
            self.disconnect()  # half greeted
            raise

    def disconnect(self, *args: Any) -> None:
        super().disconnect(*args)  # type: ignore[misc]
        self._awaits_reply = False


class PlainConnection(_OneReply, Connection):
    """Without TLS, for an endpoint of one's own."""


class TlsConnection(_OneReply, SSLConnection):
    """With TLS, the server's name checked: the cluster client has no option for that, and its default is not to."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(  # type: ignore[no-untyped-call]
            **kwargs, ssl_cert_reqs="required", ssl_check_hostname=True
        )


class IamCredentials(CredentialProvider):
    """A token in place of a password: a presigned request to connect, made anew for every connection.

    It is signed locally, with the credentials of the function's role. ElastiCache takes it for 15 minutes and ends a
    connection after 12 hours; the next call then connects again, with a new one.
    """

    def __init__(self, *, user: str, cache: str, region: str) -> None:
        self._user = user
        self._cache = cache
        self._region = region
        self._session = botocore.session.get_session()

    def get_credentials(self) -> tuple[str, str]:
        """The user and its token.

        Raises:
            HotUnavailable: the function has no AWS credentials to sign with.
        """
        credentials = self._session.get_credentials()
        if credentials is None:
            raise HotUnavailable("no AWS credentials to sign in to Valkey with: is the function's role set?")
        query = urlencode({"Action": "connect", "User": self._user, "ResourceType": "ServerlessCache"})
        request = AWSRequest("GET", f"https://{self._cache}/?{query}")
        SigV4QueryAuth(credentials, "elasticache", self._region, expires=TOKEN_LIFE_S).add_auth(request)
        return self._user, str(request.url).removeprefix("https://")


Library = Valkey | ValkeyCluster


def connect(config: HotConfig, *, region: str, is_cluster: bool = True) -> Library:
    """Open the library's client; in cluster mode it asks the endpoint for its nodes.

    Args:
        config: where Valkey stands, and whether it wants TLS and IAM.
        region: whose ElastiCache it is; of use with IAM only.
        is_cluster: serverless Valkey always is one; False is for a single server of one's own.

    Raises:
        ValkeyError, ValkeyClusterException: it cannot be reached.
    """
    options: dict[str, Any] = {
        "connection_class": PlainConnection,
        "socket_connect_timeout": CONNECT_TIMEOUT_S,
        "socket_timeout": READ_TIMEOUT_S,
        "socket_keepalive": True,
    }
    if config.auth == "iam":
        options["connection_class"] = TlsConnection
        options["credential_provider"] = IamCredentials(user=config.user, cache=config.cache, region=region)
    if not is_cluster:
        return Valkey.from_pool(ConnectionPool(host=config.host, port=config.port, **options))
    # Only by URL does the cluster client take a connection class. No retries of its own: `ValkeyClient` has them.
    url = f"valkey://{config.host}:{config.port}"
    return ValkeyCluster(url=url, cluster_error_retry_attempts=0, dynamic_startup_nodes=False, **options)


class ValkeyClient:
    """Runs commands and scripts, each a single command on the wire.

    A connection that served before and breaks is replaced and the command sent once more: a Lambda may have slept
    for minutes since, and the other end have given up, failed over or moved. Every verb of the hot tier may be
    repeated. Where a fresh connection fails too, nothing is retried.
    """

    def __init__(self, connect: Callable[[], Library]) -> None:
        """Args: connect: opens the library's client; called when the first command is sent, and after a break."""
        self._connect = connect
        self._library: Library | None = None

    def command(self, *words: str | bytes | int) -> Any:
        """Run one command; its reply as Valkey gave it.

        Raises:
            HotUnavailable: it could not be reached, or is in no state to answer.
            valkey.ResponseError: the command is wrong.
        """
        library = self._library
        if library is not None:
            try:
                return _execute(library, words)
            except _Broken:
                self._drop(library)
        library = self._open()
        try:
            return _execute(library, words)
        except _Broken as broken:
            self._drop(library)
            raise HotUnavailable(f"Valkey cannot be reached: {broken.__cause__}") from broken.__cause__

    def run(self, script: Script, keys: Sequence[str], args: Sequence[str | bytes | int] = ()) -> Any:
        """Run a script by its hash, or with its source where the server does not know it (yet, or any more).

        Raises:
            HotUnavailable, valkey.ResponseError: as with `command`.
        """
        try:
            return self.command("EVALSHA", script.sha, len(keys), *keys, *args)
        except NoScriptError:
            return self.command("EVAL", script.text, len(keys), *keys, *args)

    def scan(self, pattern: str) -> Iterator[str]:
        """Names of all keys like that, on every node; now and then one twice. Keys that come meanwhile may be missed.

        Raises:
            HotUnavailable, valkey.ResponseError: as with `command`; what was not reached is for the next time.
        """
        had, count = self._library, 0
        library = had or self._open()
        try:
            with _judging():
                for name in library.scan_iter(match=pattern, count=_KEYS_A_SCAN):
                    count += 1
                    yield name.decode()
        except _Broken as broken:
            self._drop(library)
            if had is None or count:
                raise HotUnavailable(f"Valkey cannot be reached: {broken.__cause__}") from broken.__cause__
            yield from self.scan(pattern)

    def close(self) -> None:
        """Close its connections; the next command opens them again."""
        if self._library is not None:
            self._drop(self._library)

    def _open(self) -> Library:
        try:
            self._library = library = self._connect()
        except (ValkeyError, ValkeyClusterException) as error:
            raise HotUnavailable(f"Valkey cannot be reached: {error}") from error
        return library

    def _drop(self, library: Library) -> None:
        if self._library is library:
            self._library = None
        library.close()  # type: ignore[no-untyped-call]


class _Broken(Exception):  # noqa: N818 -- never leaves this module
    """The connection is of no more use, for the reason that is its cause."""


def _execute(library: Library, words: tuple[str | bytes | int, ...]) -> Any:
    with _judging():
        return library.execute_command(*words)  # type: ignore[no-untyped-call]


@contextmanager
def _judging() -> Iterator[None]:
    """Tell what is wrong with the connection, with the server, and with the command."""
    try:
        yield
    except (ClusterError, ReadOnlyError) as error:  # the node is not, or no more, the one to ask
        raise _Broken from error
    except ResponseError as error:
        if isinstance(error, OutOfMemoryError):
            raise MemoryFull(f"Valkey is not able to serve: {error}") from error
        if isinstance(error, TryAgainError) or str(error).split(" ", 1)[0] in _STATES:
            raise HotUnavailable(f"Valkey is not able to serve: {error}") from error
        raise
    except DataError:
        raise
    except (ValkeyError, ValkeyClusterException) as error:
        raise _Broken from error
