"""TLS and the IAM token, against a real Valkey behind a TLS relay.

What ElastiCache itself makes of the token only an account can show.
"""

from __future__ import annotations

import datetime as dt
import ssl
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import botocore.session
import pytest
from botocore.model import ServiceId
from botocore.signers import RequestSigner
from valkey import Valkey

from local.state import Address
from tests.support.hot import COMPLETE, REGION, Talk, hot_valkey
from tests.support.relay import HOST, Relay
from tests.support.serving import server_tls, write_certificate
from threadkeep.config import HotConfig
from threadkeep.domain.errors import HotUnavailable
from threadkeep.domain.streams import Closed
from threadkeep.stores.valkey_client import IamCredentials, ValkeyClient, connect

USER, CACHE = "threadkeep-stream", "threadkeep-test"


@pytest.fixture(autouse=True)
def _credentials(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKIDEXAMPLE")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "made-up")
    monkeypatch.setenv("AWS_SESSION_TOKEN", "made/up+too=")


def _certificate(folder: Path, *, address: str, monkeypatch: pytest.MonkeyPatch) -> ssl.SSLContext:
    """A server's TLS with a certificate for that IP address, which this process trusts."""
    certificate = write_certificate(folder / "certificate.pem", of=address)
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
    return server_tls(certificate)


@pytest.fixture
def server(valkey_cluster: Address) -> Iterator[Any]:
    """The server, with a user who may sign in with any password, as Valkey itself cannot check a token."""
    with Valkey(host=valkey_cluster.host, port=valkey_cluster.port) as server:
        server.execute_command(
            "ACL",
            "SETUSER",
            USER,
            "on",
            "nopass",
            "~*",
            "resetchannels",
            "-@all",
            "+@all",
            "-@admin",
            "-@dangerous",
            "-script|flush",
        )
        server.execute_command("ACL", "SETUSER", "default", "nocommands", "+acl", "+config", "+auth", "+client")
        yield server
        server.execute_command("ACL", "SETUSER", "default", "allcommands")
        server.execute_command("ACL", "DELUSER", USER)
        server.config_set("cluster-announce-port", 0)


def _talk(relay: Relay) -> tuple[ValkeyClient, Talk]:
    config = HotConfig(host=HOST, port=relay.address.port, auth="iam", user=USER, cache=CACHE)
    client = ValkeyClient(lambda: connect(config, region=REGION))
    return client, Talk(hot_valkey(client))


def test_the_whole_way_by_tls_and_token_with_the_rights_that_functions_have(
    server: Any, valkey_cluster: Address, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tls = _certificate(tmp_path, address=HOST, monkeypatch=monkeypatch)
    with Relay(valkey_cluster, tls=tls) as relay:
        server.config_set("cluster-announce-port", relay.address.port)
        client, talk = _talk(relay)
        talk.watch("c1")
        epoch = talk.closed(b"[1]")
        assert len(talk.hot.live(talk.key)) == 1
        assert talk.settle() == ("c1",)
        talk.hot.unsubscribe(talk.key, ["c1"])
        before = relay.accepted
        relay.cut()  # as ElastiCache does after 12 hours
        assert talk.append(epoch, 1) == Closed(COMPLETE)
        client.close()
        signed_in = relay.received.count(b"\r\nAUTH\r\n$17\r\n" + f"{USER}\r\n".encode())
        assert signed_in == relay.accepted == before + 1
        assert relay.received.count(f"{CACHE}/?Action=connect".encode()) == signed_in


def test_a_server_of_another_name_is_refused(
    valkey_cluster: Address, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tls = _certificate(tmp_path, address="127.0.0.2", monkeypatch=monkeypatch)
    with Relay(valkey_cluster, tls=tls) as relay:
        client, talk = _talk(relay)
        with pytest.raises(HotUnavailable, match=r"(?i)certificate"):
            talk.open()
        client.close()


def test_a_user_that_may_not_sign_in_is_told_as_unavailable(
    valkey_cluster: Address, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tls = _certificate(tmp_path, address=HOST, monkeypatch=monkeypatch)
    with Relay(valkey_cluster, tls=tls) as relay:
        client, talk = _talk(relay)
        with pytest.raises(HotUnavailable, match=r"username-password"):
            talk.open()
        client.close()


def test_the_token_is_a_presigned_request_to_connect() -> None:
    user, token = IamCredentials(user=USER, cache=CACHE, region=REGION).get_credentials()
    assert user == USER
    assert token.startswith(f"{CACHE}/?")
    query = {name: value for name, (value,) in parse_qs(urlsplit(f"https://{token}").query).items()}
    assert query["Action"] == "connect"
    assert query["User"] == USER
    assert query["ResourceType"] == "ServerlessCache"
    assert query["X-Amz-Expires"] == "900"
    assert query["X-Amz-Security-Token"] == "made/up+too="
    assert query["X-Amz-Credential"].endswith(f"/{REGION}/elasticache/aws4_request")


def test_the_token_is_signed_as_the_sdk_signs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Against botocore's own signer, by which AWS's examples for ElastiCache sign."""
    now = dt.datetime(2026, 11, 29, 12, 0, tzinfo=dt.UTC)
    monkeypatch.setattr("botocore.auth.get_current_datetime", lambda *_, **__: now)
    session = botocore.session.get_session()
    credentials = session.get_credentials()
    assert credentials is not None
    signer = RequestSigner(
        ServiceId("elasticache"),
        REGION,
        "elasticache",
        "v4",
        credentials,
        session.get_component("event_emitter"),
    )
    url = signer.generate_presigned_url(
        {
            "method": "GET",
            "url": f"https://{CACHE}/?Action=connect&User={USER}&ResourceType=ServerlessCache",
            "body": {},
            "headers": {},
            "context": {},
        },
        operation_name="connect",
        expires_in=900,
        region_name=REGION,
    )
    _, token = IamCredentials(user=USER, cache=CACHE, region=REGION).get_credentials()
    assert token == url.removeprefix("https://")


def test_without_credentials_the_cause_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN"):
        monkeypatch.delenv(name)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", "/dev/null")
    monkeypatch.setenv("AWS_CONFIG_FILE", "/dev/null")
    with pytest.raises(HotUnavailable, match="role"):
        IamCredentials(user=USER, cache=CACHE, region=REGION).get_credentials()
