"""Clients that connect over IPv6 alone, with a resolver that puts IPv4 first."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import boto3
import pytest
from botocore.config import Config
from botocore.exceptions import BotoCoreError, SSLError

from tests.support.serving import server_tls, serving, write_certificate
from threadkeep.stores.ipv6 import over_ipv6


class Invoked(BaseHTTPRequestHandler):
    """Answers an invocation with the family it came by and the host it was meant for."""

    def do_POST(self) -> None:
        body = f"{self.connection.family.name} {self.headers['Host'].partition(':')[0]}".encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        """Nothing."""


class Ipv6Server(ThreadingHTTPServer):
    address_family = socket.AF_INET6


@pytest.fixture
def port() -> Iterator[int]:
    """One port, served over both."""
    six = Ipv6Server(("::1", 0), Invoked)
    four = ThreadingHTTPServer(("127.0.0.1", six.server_port), Invoked)
    with serving(six), serving(four):
        yield six.server_port


@pytest.fixture(autouse=True)
def resolver(monkeypatch: pytest.MonkeyPatch) -> dict[str, list[str]]:
    """Names and their addresses, in this order."""
    names = {"both.test": ["127.0.0.1", "::1"], "other.test": ["127.0.0.1", "::1"], "four.test": ["127.0.0.1"]}
    real = socket.getaddrinfo

    def resolve(host: Any, port: Any, family: int = 0, type: int = 0, *rest: Any, **named: Any) -> Any:  # noqa: A002
        if host not in names:
            return real(host, port, family, type, *rest, **named)
        found = [answer for address in names[host] for answer in real(address, port, 0, type)]
        wanted = [answer for answer in found if family in (0, answer[0])]
        if not wanted:
            raise socket.gaierror(socket.EAI_NONAME, "no address of that family")
        return wanted

    monkeypatch.setattr(socket, "getaddrinfo", resolve)
    return names


@pytest.fixture
def certificate(tmp_path: Path) -> Path:
    """Of both.test, with its key."""
    return write_certificate(tmp_path / "certificate.pem", of="both.test")


@pytest.fixture
def tls_port(certificate: Path) -> Iterator[int]:
    """As AWS serves."""
    server = Ipv6Server(("::1", 0), Invoked)
    server.socket = server_tls(certificate).wrap_socket(server.socket, server_side=True)
    with serving(server):
        yield server.server_port


def invoked(host: str, port: int, *, ipv6: bool, trusted: Path | None = None) -> str:
    client = boto3.client(
        "lambda",
        region_name="eu-central-1",
        endpoint_url=f"{'https' if trusted else 'http'}://{host}:{port}",
        verify=str(trusted) if trusted else None,
        aws_access_key_id="key",
        aws_secret_access_key="secret",
        config=Config(connect_timeout=1, read_timeout=2, retries={"total_max_attempts": 1}, proxies={}),
    )
    if ipv6:
        over_ipv6(client)
    return client.invoke(FunctionName="f", Payload=b"{}")["Payload"].read().decode()


def test_it_goes_by_ipv6_although_the_resolver_puts_ipv4_first(port: int) -> None:
    assert invoked("both.test", port, ipv6=True) == "AF_INET6 both.test"


def test_other_clients_go_on_as_the_resolver_says(port: int) -> None:
    assert invoked("both.test", port, ipv6=True) == "AF_INET6 both.test"
    assert invoked("both.test", port, ipv6=False) == "AF_INET both.test"


def test_a_name_without_an_ipv6_address_is_an_error_at_once(port: int) -> None:
    with pytest.raises(BotoCoreError, match=r"four\.test"):
        invoked("four.test", port, ipv6=True)


def test_a_certificate_is_checked_against_the_name_and_not_the_address(tls_port: int, certificate: Path) -> None:
    assert invoked("both.test", tls_port, ipv6=True, trusted=certificate) == "AF_INET6 both.test"
    with pytest.raises(SSLError, match=r"hostname .other\.test. doesn.t match .both\.test."):
        invoked("other.test", tls_port, ipv6=True, trusted=certificate)
