"""A write on condition: done, refused, or failed."""

from __future__ import annotations

import pytest
from botocore.exceptions import ClientError

from threadkeep.stores.write_if import write_if


def failing(code: str) -> ClientError:
    return ClientError({"Error": {"Code": code, "Message": "refused"}}, "UpdateItem")


def test_what_is_written_is_answered() -> None:
    asked: list[str] = []

    def write(*, Key: str) -> dict[str, str]:  # noqa: N803 -- boto3's own
        asked.append(Key)
        return {}

    assert write_if(write, Key="head") == {}
    assert asked == ["head"]


def test_a_refused_condition_is_an_answer_and_any_other_failure_is_none() -> None:
    def write(code: str) -> dict[str, str]:
        raise failing(code)

    assert write_if(write, "ConditionalCheckFailedException") is None
    for code in ("ValidationException", "AccessDeniedException", "TransactionConflictException"):
        with pytest.raises(ClientError, match=code):
            write_if(write, code)
