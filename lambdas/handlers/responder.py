"""The responder: invoked asynchronously with an `AnswerRequest`, once for every answer that is wanted, or twice."""

from __future__ import annotations

from functools import cache
from typing import Any

from threadkeep import container, telemetry
from threadkeep.config import ConfigError, ModelConfig
from threadkeep.domain.errors import Refused
from threadkeep.ports import AnswerRequest
from threadkeep.responder.answers import Model
from threadkeep.responder.respond import SILENCE_S, Answering, Settings
from threadkeep.responder.transport import DirectTransport, InvokeTransport, Transport, producing, read_event
from threadkeep.usecases.tiers import Tiers

_SECRET_AGE_S = 300


class AnswerFailed(Exception):  # noqa: N818 -- named for what Lambda is told
    """The answer failed, and why has been noted. Lambda repeats the invocation, as often as it is set to."""


def _handle(event: dict[str, Any], _context: Any) -> dict[str, Any]:
    outcome: str = "failed_here"
    try:
        request = read_event(event, AnswerRequest)
        outcome = _answering().respond(request, _transport(request))
    except Refused as refused:
        outcome = "refused"
        telemetry.logger().info("No place for an answer", code=refused.code, reason=refused.reason)
    except Exception as error:  # noqa: BLE001 -- the one catch-all
        telemetry.note_fault("An answer failed", error)
        # Without its cause, whose text may quote a conversation and would stand in the log.
        raise AnswerFailed("see the line before") from None
    finally:
        telemetry.count("Answers", outcome=outcome)
    return {"outcome": outcome}


handler = telemetry.instrumented(_handle)


@cache
def _answering() -> Answering:
    config = _model_config()
    return Answering(
        tiers=Tiers.of(container.services()),
        model=_model(config),
        settings=Settings(
            system=config.system,
            context_messages_max=config.context_messages_max,
            context_tokens_max=config.context_tokens_max,
        ),
    )


def _model_config() -> ModelConfig:
    config = container.config().model
    if config is None:
        raise ConfigError("environment of the function: THREADKEEP_MODEL_KIND is missing")
    return config


def _model(config: ModelConfig) -> Model:
    """The model that is set; what the others need is not loaded."""
    match config.kind:
        case "recorded":
            from threadkeep.responder.recorded import Recorded, read_answers  # noqa: PLC0415

            return Recorded(read_answers())
        case "openai":
            from aws_lambda_powertools.utilities import parameters  # noqa: PLC0415

            from threadkeep.responder.openai_chat import OpenAIChat  # noqa: PLC0415

            def api_key() -> str:
                return str(parameters.get_secret(config.api_key_secret, max_age=_SECRET_AGE_S))

            return OpenAIChat(
                base_url=config.base_url,
                name=config.name,
                api_key=api_key if config.api_key_secret else None,
                silence_s=SILENCE_S,
            )
        case "bedrock":
            import boto3  # noqa: PLC0415
            from botocore.config import Config  # noqa: PLC0415

            from threadkeep.responder.bedrock import Bedrock  # noqa: PLC0415

            # One attempt: a model is asked once, and whoever asked the question may ask again.
            waits = Config(connect_timeout=10, read_timeout=SILENCE_S, retries={"total_max_attempts": 1})
            client = boto3.client("bedrock-runtime", region_name=container.config().region, config=waits)
            return Bedrock(client, config.name)


def _transport(request: AnswerRequest) -> Transport:
    caller = producing(request.tenant, request.user)
    function = container.config().produce_function
    if function:
        return InvokeTransport(_lambda_client(), function, caller)
    return DirectTransport(container.services(), caller)


@cache
def _lambda_client() -> Any:
    import boto3  # noqa: PLC0415
    from botocore.config import Config  # noqa: PLC0415

    # The function it calls has 10 s; the producer itself repeats what fails.
    waits = Config(connect_timeout=1, read_timeout=10, retries={"total_max_attempts": 1})
    return boto3.client("lambda", region_name=container.config().region, config=waits)
