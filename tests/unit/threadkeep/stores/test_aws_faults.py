"""Which faults of AWS become `WarmUnavailable`, and which stay what they are."""

from __future__ import annotations

import pytest
from botocore.exceptions import (
    BotoCoreError,
    ClientError,
    ConnectTimeoutError,
    EndpointConnectionError,
    FlexibleChecksumError,
    IncompleteReadError,
    NoCredentialsError,
    ReadTimeoutError,
)

from threadkeep.domain.errors import WarmUnavailable
from threadkeep.stores.aws_config import PUSH, STORE
from threadkeep.stores.aws_faults import warm_unavailable


def refusal(code: str, status: int) -> ClientError:
    return ClientError(
        {"Error": {"Code": code}, "ResponseMetadata": {"HTTPStatusCode": status}},  # type: ignore[typeddict-item]  # no more of it is read
        "PutItem",
    )


@pytest.mark.parametrize(
    "fault",
    [
        refusal("ProvisionedThroughputExceededException", 400),
        refusal("ThrottlingException", 400),
        refusal("RequestLimitExceeded", 400),
        refusal("InternalServerError", 500),
        refusal("ServiceUnavailable", 503),
        refusal("SlowDown", 503),
        refusal("ConditionalRequestConflict", 409),
        refusal("Unheard", 502),
        refusal("Unheard", 429),
        EndpointConnectionError(endpoint_url="https://example.invalid"),
        ConnectTimeoutError(endpoint_url="https://example.invalid"),
        ReadTimeoutError(endpoint_url="https://example.invalid"),
        IncompleteReadError(actual_bytes=1, expected_bytes=2),
        FlexibleChecksumError(error_msg="an object's checksum does not match what came of it"),
    ],
    ids=repr,
)
def test_what_passes_by_itself_is_unavailable(fault: Exception) -> None:
    with pytest.raises(WarmUnavailable) as unavailable, warm_unavailable():
        raise fault
    assert unavailable.value.__cause__ is fault


@pytest.mark.parametrize(
    "fault",
    [
        refusal("AccessDeniedException", 400),
        refusal("ValidationException", 400),
        refusal("ResourceNotFoundException", 400),
        refusal("NoSuchBucket", 404),
        NoCredentialsError(),
        ValueError("a fault of ours"),
    ],
    ids=repr,
)
def test_what_does_not_pass_stays_what_it_is(fault: ClientError | BotoCoreError | ValueError) -> None:
    with pytest.raises(type(fault)) as raised, warm_unavailable():
        raise fault
    assert raised.value is fault


def test_every_wait_and_every_retry_is_bounded() -> None:
    for config, read_timeout, attempts in ((STORE, 2, 3), (PUSH, 1, 1)):
        told = vars(config)
        assert (told["connect_timeout"], told["read_timeout"]) == (1, read_timeout)
        assert told["retries"] == {"mode": "standard", "total_max_attempts": attempts}
