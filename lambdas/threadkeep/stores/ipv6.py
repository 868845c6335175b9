"""AWS clients that connect over IPv6 alone.

A function in a VPC without NAT has IPv6 to the internet by an egress-only gateway, and IPv4 to nothing but its own
region's DynamoDB and S3. A dual-stack name has addresses of both kinds and the resolver may put either first: tried
over IPv4, every new connection would wait for its timeout. So the clients that need the way out look up AAAA alone,
each for itself; DynamoDB's and S3's must not.
"""

from __future__ import annotations

import socket
from typing import Any

import botocore.awsrequest
from urllib3.exceptions import NewConnectionError


class _OverIpv6:
    """In front of one of botocore's connections: where it would resolve a name, it gets an IPv6 address."""

    host: str
    port: int
    _dns_host: str

    def _new_conn(self) -> socket.socket:
        name = self._dns_host
        try:
            found = socket.getaddrinfo(name, self.port, socket.AF_INET6, socket.SOCK_STREAM)
        except socket.gaierror as error:
            raise NewConnectionError(self, f"{name} has no IPv6 address: {error}") from error  # type: ignore[arg-type]
        failure: NewConnectionError | None = None
        try:
            for *_, address in found:
                self._dns_host = str(address[0])  # certificate and Host header go by `host`
                try:
                    connected: socket.socket = super()._new_conn()  # type: ignore[misc]
                except NewConnectionError as error:
                    failure = error
                else:
                    return connected
        finally:
            self._dns_host = name
        raise failure or NewConnectionError(self, "the name has no IPv6 address")  # type: ignore[arg-type]


class _PlainConnection(_OverIpv6, botocore.awsrequest.AWSHTTPConnection):  # type: ignore[misc]
    pass


class _TlsConnection(_OverIpv6, botocore.awsrequest.AWSHTTPSConnection):  # type: ignore[misc]
    pass


class _PlainPool(botocore.awsrequest.AWSHTTPConnectionPool):
    ConnectionCls = _PlainConnection


class _TlsPool(botocore.awsrequest.AWSHTTPSConnectionPool):
    ConnectionCls = _TlsConnection


def over_ipv6(client: Any) -> None:
    """Have an AWS client that was just built connect over IPv6 alone.

    botocore has no option for it: the pools that its HTTP session makes connections in are replaced
    (`botocore.httpsession.URLLib3Session`, 1.43.106 and 1.44.8, with urllib3 1.26 and 2, looked at 2026-11-29).
    """
    manager = client._endpoint.http_session._manager  # noqa: SLF001 -- see above
    manager.pool_classes_by_scheme = {"http": _PlainPool, "https": _TlsPool}
