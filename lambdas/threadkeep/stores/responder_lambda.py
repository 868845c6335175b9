"""Starting answers: an asynchronous invocation of the responder's function."""

from __future__ import annotations

from typing import TYPE_CHECKING

from threadkeep.domain.json_values import encode
from threadkeep.ports import AnswerRequest
from threadkeep.stores.aws_faults import warm_unavailable

if TYPE_CHECKING:
    from mypy_boto3_lambda import LambdaClient


class LambdaResponder:
    """`threadkeep.ports.Responder` by a function of its own, which Lambda queues for and repeats until it succeeds.

    Args:
        client: a Lambda client, built with `threadkeep.stores.aws_config.STORE`.
        function: the function's name.
    """

    def __init__(self, client: LambdaClient, function: str) -> None:
        self._client = client
        self._function = function

    @warm_unavailable()
    def start(self, request: AnswerRequest) -> None:
        """See `Responder`."""
        self._client.invoke(FunctionName=self._function, InvocationType="Event", Payload=encode(request))
