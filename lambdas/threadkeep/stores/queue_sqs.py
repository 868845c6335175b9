"""Work for later: an SQS queue."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from threadkeep.domain.bounds import QUEUE_DELAY_S_MAX
from threadkeep.domain.json_values import encode
from threadkeep.stores.aws_faults import warm_unavailable

if TYPE_CHECKING:
    from mypy_boto3_sqs import SQSClient


class QueueSQS:
    """`threadkeep.ports.JobQueue` on a standard queue.

    One job a call: a batch may succeed in part, and what was left out would have to be told apart and sent again.

    Args:
        client: an SQS client, built with `threadkeep.stores.aws_config.STORE`.
        url: the queue's URL.
    """

    def __init__(self, client: SQSClient, url: str) -> None:
        self._client = client
        self._url = url

    @warm_unavailable()
    def send(self, job: msgspec.Struct, *, delay_s: int = 0) -> None:
        """See `JobQueue`."""
        check_delay(delay_s)
        self._client.send_message(QueueUrl=self._url, MessageBody=encode(job).decode(), DelaySeconds=delay_s)

    @warm_unavailable()
    def put_back(self, receipt: str, *, delay_s: int) -> None:
        """See `JobQueue`. Counted from now on, not from when it was taken."""
        self._client.change_message_visibility(QueueUrl=self._url, ReceiptHandle=receipt, VisibilityTimeout=delay_s)


def check_delay(delay_s: int) -> None:
    """Whether SQS delays by so much.

    Raises:
        ValueError: it does not.
    """
    if not 0 <= delay_s <= QUEUE_DELAY_S_MAX:
        raise ValueError(f"a job may be delayed by 0 to {QUEUE_DELAY_S_MAX} seconds, not {delay_s}")
