"""Which faults of AWS mean "not now": those become `WarmUnavailable`, all others stay as they are (and alarm)."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

from botocore.exceptions import ClientError, FlexibleChecksumError, HTTPClientError, IncompleteReadError
from botocore.exceptions import ConnectionError as NotConnected

from threadkeep.domain.errors import WarmThrottled, WarmUnavailable

_THROTTLED: Final = frozenset(
    {
        "LimitExceededException",
        "ProvisionedThroughputExceededException",
        "RequestLimitExceeded",
        "RequestThrottled",
        "SlowDown",
        "Throttling",
        "ThrottlingException",
        "TooManyRequestsException",
    }
)
_UNAVAILABLE: Final = frozenset(
    {
        "ConditionalRequestConflict",
        "InternalError",
        "InternalServerError",
        "RequestTimeout",
        "ServiceUnavailable",
    }
)
"""Error codes of DynamoDB, S3 and SQS that pass by themselves (their API references, read 2026-11-29)."""
_TOO_MANY_REQUESTS: Final = 429
_SERVER_ERROR: Final = 500


def code_of(error: ClientError) -> str:
    """The error's code, empty where it has none."""
    return str(error.response.get("Error", {}).get("Code", ""))


def status_of(error: ClientError) -> int:
    """The HTTP status of the answer, 0 where there was none."""
    metadata: dict[str, Any] = dict(error.response.get("ResponseMetadata", {}))
    return int(metadata.get("HTTPStatusCode", 0))


@contextmanager
def warm_unavailable() -> Iterator[None]:
    """Turn what passes by itself (throttling, timeouts, lost connections, 5xx) into `WarmUnavailable`."""
    try:
        yield
    except ClientError as error:
        status = status_of(error)
        if code_of(error) in _THROTTLED or status == _TOO_MANY_REQUESTS:
            raise WarmThrottled(f"{error.operation_name}: {code_of(error)}") from error
        if code_of(error) in _UNAVAILABLE or status >= _SERVER_ERROR:
            raise WarmUnavailable(f"{error.operation_name}: {code_of(error)}") from error
        raise
    except (NotConnected, HTTPClientError, IncompleteReadError, FlexibleChecksumError) as error:
        raise WarmUnavailable(f"{type(error).__name__}: AWS was not reached, broke off or was garbled") from error
