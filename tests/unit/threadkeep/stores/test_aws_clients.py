"""Where clients are told to connect to; over which family, see `test_ipv6` and `test_container_network`."""

from __future__ import annotations

import pytest

from threadkeep.stores import aws_config
from threadkeep.stores.aws_clients import Clients

HOME, AFAR = "eu-central-1", "us-east-1"


@pytest.fixture(autouse=True)
def _credentials(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "testing")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "testing")


@pytest.mark.parametrize(
    ("service", "region", "endpoint"),
    [
        ("sqs", None, "https://sqs.eu-central-1.api.aws"),
        ("lambda", None, "https://lambda.eu-central-1.api.aws"),
        ("dynamodb", AFAR, "https://dynamodb.us-east-1.api.aws"),
        ("s3", AFAR, "https://s3.dualstack.us-east-1.amazonaws.com"),
    ],
)
def test_far_services_have_endpoints_of_both_families(service: str, region: str | None, endpoint: str) -> None:
    client = Clients(HOME, ipv6_out=True).far(service, aws_config.STORE, region=region)
    assert client.meta.endpoint_url == endpoint
    assert client.meta.region_name == (region or HOME)


def test_an_endpoint_of_ones_own_is_taken_as_it_is() -> None:
    client = Clients(HOME, ipv6_out=True).far("sqs", aws_config.STORE, url="https://queue.example")
    assert client.meta.endpoint_url == "https://queue.example"


@pytest.mark.parametrize("ipv6_out", [False, True])
def test_timeouts_and_the_form_of_addresses_stay_as_they_were(*, ipv6_out: bool) -> None:
    clients = Clients(HOME, ipv6_out=ipv6_out)
    for region in (HOME, AFAR):
        config = clients.bucket(region, aws_config.BUCKET).meta.config
        assert (config.connect_timeout, config.read_timeout, config.signature_version) == (1, 2, "s3v4")
        assert config.s3["addressing_style"] == "virtual"
        assert config.retries["total_max_attempts"] == 3


def test_a_client_that_goes_out_leads_no_later_one_out() -> None:
    """Botocore writes what it resolved into the settings that it is given."""
    clients = Clients("eu-central-1", ipv6_out=True)
    clients.bucket("us-east-1", aws_config.BUCKET)
    near = clients.bucket("eu-central-1", aws_config.BUCKET)
    assert "dualstack" not in near.generate_presigned_url("get_object", Params={"Bucket": "b", "Key": "k"})
