"""A write on condition, whose refusal is an answer."""

from __future__ import annotations

from collections.abc import Callable
from typing import ParamSpec, TypeVar

from botocore.exceptions import ClientError

from threadkeep.stores.aws_faults import code_of

P = ParamSpec("P")
Answer = TypeVar("Answer")

REFUSED = "ConditionalCheckFailedException"
"""How DynamoDB says that an item is not as the condition has it (API reference, read 2026-11-29)."""


def write_if(write: Callable[P, Answer], *args: P.args, **request: P.kwargs) -> Answer | None:
    """What DynamoDB answers to the write, None where it refuses the request's ``ConditionExpression``.

    Args:
        write: ``put_item`` or ``update_item`` of a client.
        args: none; boto3 takes all by name.
        request: what it is called with.

    Raises:
        ClientError: it failed for another reason.
    """
    try:
        return write(*args, **request)
    except ClientError as error:
        if code_of(error) != REFUSED:
            raise
        return None
