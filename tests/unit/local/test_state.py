from __future__ import annotations

import json
from pathlib import Path

import pytest

from local.errors import LocalCloudError
from local.keys import SigningKey
from local.state import Address, CloudState

STATE = CloudState(
    url="ws://127.0.0.1:20001/_aws/execute-api/abc/local",
    endpoint="http://127.0.0.1:20001",
    region="us-east-1",
    table="threadkeep",
    bucket="threadkeep-cold",
    valkey=Address(host="127.0.0.1", port=20002),
    issuer="https://local.threadkeep.invalid/",
    audience="threadkeep",
    key_file="key.pem",
    kid="k",
)


def test_the_file_gives_it_back(tmp_path: Path) -> None:
    STATE.to_file(tmp_path / "cloud.json")
    assert CloudState.from_file(tmp_path / "cloud.json") == STATE
    assert [path.name for path in tmp_path.iterdir()] == ["cloud.json"]


def test_clients_find_what_they_read(tmp_path: Path) -> None:
    STATE.to_file(tmp_path / "cloud.json")
    written = json.loads((tmp_path / "cloud.json").read_text())
    assert written["valkey"] == {"host": "127.0.0.1", "port": 20002}
    assert {"url", "endpoint", "region", "table", "bucket", "issuer", "audience", "key_file", "kid"} <= set(written)


def test_no_file_is_no_cloud(tmp_path: Path) -> None:
    assert CloudState.from_file(tmp_path / "cloud.json") is None


@pytest.mark.parametrize("content", ["", "{", "[]", '{"url": "ws://127.0.0.1"}'])
def test_a_damaged_file_says_what_to_do(tmp_path: Path, content: str) -> None:
    (tmp_path / "cloud.json").write_text(content)
    with pytest.raises(LocalCloudError, match=r"cloud\.json cannot be read .*make down"):
        CloudState.from_file(tmp_path / "cloud.json")


def test_the_key_lies_beside_it(tmp_path: Path) -> None:
    key = SigningKey.generate()
    key.to_file(tmp_path / "key.pem")
    assert STATE.signing_key(tmp_path) == key


def test_connections_are_posted_to_under_the_same_path() -> None:
    assert STATE.connections_url == "http://127.0.0.1:20001/_aws/execute-api/abc/local"
