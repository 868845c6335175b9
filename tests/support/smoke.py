"""A ground for checks of the smoke pack whose account is told by the test, in the words of botocore's own models."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from typing import Any, Final

import botocore.session
from botocore import xform_name
from botocore.exceptions import ClientError
from botocore.model import ServiceModel, StructureShape
from botocore.validate import validate_parameters

from local.keys import SigningKey
from smoke.ground import Ground
from smoke.target import Target

Answer = dict[str, Any] | ClientError | Callable[..., dict[str, Any]]
ACCOUNT: Final = "123456789012"
REGION: Final = "eu-central-1"


def refusal(code: str, operation: str, status: int = 400) -> ClientError:
    """An error of AWS's."""
    return ClientError(
        {"Error": {"Code": code, "Message": code}, "ResponseMetadata": {"HTTPStatusCode": status}},  # type: ignore[typeddict-item]
        operation,
    )


def target(url: str = "wss://abc.execute-api.eu-central-1.amazonaws.com/prod", **fields: Any) -> Target:
    """A deployment `prod` on AWS, and tokens that nobody checks; or one at another URL."""
    key = fields.pop("key", None) or SigningKey.generate()
    tokens = {
        "token": key.mint_token(sub="ada", tenant="acme", scope=["chat"]),
        "other_token": key.mint_token(sub="bob", tenant="other", scope=["chat"]),
        "produce_token": key.mint_token(sub="worker", tenant="acme", scope=["produce"]),
    }
    known: dict[str, Any] = {
        "url": url,
        "stage": "prod",
        "region": REGION,
        "regions": (REGION,),
        "api_id": "abc",
        "endpoint": None,
    }
    return Target(**(known | tokens | fields))


class ToldGround(Ground):
    """Answers to calls to AWS are the test's, by `service.operation`; one that is a function is called.

    What a check asks has to be a valid request, and what the test answers a valid response, as botocore has them.
    """

    def __init__(self, account: Mapping[str, Answer] | None = None, *, of: Target | None = None) -> None:
        super().__init__(of or target(), patience_s=0.2, environment={"AWS_SECRET_ACCESS_KEY": "s3cr3t-of-the-account"})
        self.account_says: dict[str, Answer] = {"sts.get_caller_identity": {"Account": ACCOUNT}, **(account or {})}
        self.asked: list[tuple[str, dict[str, Any]]] = []

    async def ask(
        self, service: str, operation: str, *, region: str | None = None, **parameters: Any
    ) -> dict[str, Any]:
        """See `Ground.ask`."""
        model = _model(service).operation_model(_operations(service)[operation])
        if model.input_shape is not None:
            validate_parameters(parameters, model.input_shape)
        self.asked.append((f"{service}.{operation}", parameters))
        answer = self.account_says[f"{service}.{operation}"]
        if callable(answer) and not isinstance(answer, ClientError):
            answer = answer(region=region or self.target.region, **parameters)
        if isinstance(answer, ClientError):
            raise answer
        assert isinstance(model.output_shape, StructureShape)
        _check(answer, model.output_shape, f"{service}.{operation}")
        return answer


@functools.cache
def _model(service: str) -> ServiceModel:
    return botocore.session.Session().get_service_model(service)


@functools.cache
def _operations(service: str) -> dict[str, str]:
    return {xform_name(name): name for name in _model(service).operation_names}


def _check(answer: Any, shape: Any, place: str) -> None:
    """Every name in an answer is one that AWS gives."""
    if shape.type_name == "structure":
        assert isinstance(answer, dict), place
        for name, value in answer.items():
            assert name in shape.members, f"{place} has no {name}"
            _check(value, shape.members[name], f"{place}.{name}")
    elif shape.type_name == "list":
        assert isinstance(answer, list), place
        for value in answer:
            _check(value, shape.member, f"{place}[]")
