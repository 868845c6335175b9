from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from local import deploy
from local.deploy import Deployment, Outputs
from local.errors import LocalCloudError
from local.keys import SigningKey
from local.processes import ProcessTable
from local.state import Address
from stacks.settings import Settings


@pytest.fixture
def deployment(tmp_path: Path) -> Deployment:
    return Deployment(
        table=ProcessTable(tmp_path / "processes.json"),
        app=tmp_path,
        work=tmp_path,
        logs=tmp_path / "logs",
        endpoint="http://127.0.0.1:20001",
        needs=(),
    )


def test_the_settings_written_are_settings_the_stacks_take(deployment: Deployment, tmp_path: Path) -> None:
    file = tmp_path / "settings.toml"
    key = SigningKey.generate()
    valkey = Address(host="127.0.0.1", port=20002)
    jwks_url = "http://127.0.0.1:20001/b/jwks.json"
    file.write_text(deployment._settings(valkeys={"us-east-1": valkey}, key=key, jwks_url=jwks_url))
    settings = Settings.from_file(file)
    assert settings.target == "local"
    assert settings.hot_address("us-east-1") == ("127.0.0.1", 20002)
    assert settings.local_endpoint == "http://127.0.0.1:20001"
    assert (settings.jwt_issuer, settings.jwt_audience) == (key.issuer, key.audience)


def test_the_deployment_can_reach_no_real_account(deployment: Deployment) -> None:
    inherited = {
        "AWS_PROFILE": "production",
        "AWS_ACCESS_KEY_ID": "AKIA",
        "AWS_SECRET_ACCESS_KEY": "real",
        "AWS_SESSION_TOKEN": "real",
        "AWS_ENDPOINT_URL_S3": "https://s3.amazonaws.com",
        "CDK_DEFAULT_ACCOUNT": "123456789012",
        "HTTPS_PROXY": "http://proxy",
        "PATH": "/usr/bin",
    }
    environment = deployment._environment(inherited)
    assert environment["AWS_ENDPOINT_URL"] == "http://127.0.0.1:20001"
    assert environment["AWS_CONFIG_FILE"] == environment["AWS_SHARED_CREDENTIALS_FILE"] == "/dev/null"
    assert not {"AWS_PROFILE", "AWS_SESSION_TOKEN", "AWS_ENDPOINT_URL_S3", "CDK_DEFAULT_ACCOUNT"} & set(environment)
    assert not {"AKIA", "real"} & set(environment.values())
    assert environment["HTTPS_PROXY"] == "http://proxy"
    assert environment["PATH"].endswith(":/usr/bin")


def test_outputs_are_told_by_region(tmp_path: Path) -> None:
    file = tmp_path / "outputs.json"
    stacks = {
        "State": {"TableName": "t"},
        "Cold-us-east-1": {"BucketName": "b", "More": "m"},
        "Cold-eu-central-1": {"BucketName": "b-eu"},
        "Realtime-us-east-1": {"Url": "ws://u", "ApiId": "a"},
        "Realtime-eu-central-1": {"Url": "ws://u-eu", "ApiId": "a-eu"},
    }
    file.write_text(json.dumps({f"Threadkeep-local-{name}": outputs for name, outputs in stacks.items()}))
    assert Outputs.from_file(file, ["us-east-1"]) == Outputs(
        table="t", urls={"us-east-1": "ws://u"}, buckets={"us-east-1": "b"}
    )
    assert Outputs.from_file(file, ["us-east-1", "eu-central-1"]).urls == {
        "us-east-1": "ws://u",
        "eu-central-1": "ws://u-eu",
    }


def test_of_two_regions_each_has_a_valkey_of_its_own(tmp_path: Path) -> None:
    deployment = Deployment(
        table=ProcessTable(tmp_path / "processes.json"),
        app=tmp_path,
        work=tmp_path,
        logs=tmp_path / "logs",
        endpoint="http://127.0.0.1:20001",
        needs=(),
        regions=("us-east-1", "eu-central-1"),
    )
    valkeys = {
        "us-east-1": Address(host="127.0.0.1", port=20002),
        "eu-central-1": Address(host="127.0.0.1", port=20003),
    }
    file = tmp_path / "settings.toml"
    jwks_url = "http://127.0.0.1:20001/b/jwks.json"
    file.write_text(deployment._settings(valkeys=valkeys, key=SigningKey.generate(), jwks_url=jwks_url))
    settings = Settings.from_file(file)
    assert settings.regions == ("us-east-1", "eu-central-1")
    assert settings.hot_address("us-east-1") == ("127.0.0.1", 20002)
    assert settings.hot_address("eu-central-1") == ("127.0.0.1", 20003)


def test_a_missing_output_is_named(tmp_path: Path) -> None:
    file = tmp_path / "outputs.json"
    stacks = {"Threadkeep-local-State": {"TableName": "t"}, "Threadkeep-local-Realtime-us-east-1": {"Url": "ws://u"}}
    file.write_text(json.dumps(stacks))
    with pytest.raises(LocalCloudError, match="no output 'Cold-us-east-1 BucketName'"):
        Outputs.from_file(file, ["us-east-1"])


def test_without_the_cdk_it_says_what_to_do(deployment: Deployment, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(deploy, "CDK", Path("/nowhere/cdk"))
    with pytest.raises(LocalCloudError, match="make setup"):
        deployment.bootstrap()


def test_a_dead_emulator_is_the_reason(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def gone(_groups: Any) -> None:
        raise LocalCloudError("the AWS emulator is gone")

    monkeypatch.setattr(deploy, "require_alive", gone)
    nobody = Deployment(
        table=ProcessTable(tmp_path / "processes.json"),
        app=tmp_path,
        work=tmp_path,
        logs=tmp_path,
        endpoint="http://127.0.0.1:1",
        needs=(),
    )
    with pytest.raises(LocalCloudError, match=r"^the AWS emulator is gone$"):
        nobody._put_jwks(SigningKey.generate())
