from __future__ import annotations

from typing import Any

import pytest

from threadkeep.config import Config, ConfigError, HotConfig, ModelConfig

MODELS = (
    ModelConfig(),
    ModelConfig(kind="bedrock", name="some.model-v1:0", system="Be brief.\nBe kind.", context_tokens_max=1),
    ModelConfig(
        kind="openai", name="m", base_url="http://127.0.0.1:1/v1", api_key_secret="key", context_messages_max=3
    ),
)


@pytest.mark.parametrize("model", MODELS, ids=lambda model: model.kind)
@pytest.mark.parametrize("hot", [None, HotConfig(host="h", port=1)])
def test_the_model_goes_through_the_environment_and_comes_back_equal(model: ModelConfig, hot: HotConfig | None) -> None:
    config = Config(
        stage="s", region="r", hot=hot, model=model, responder_function="answers", produce_function="produce"
    )
    assert Config.from_environment(config.to_environment()) == config


def test_a_function_without_a_model_has_none_of_its_variables() -> None:
    environment = Config(stage="s", region="r").to_environment()
    assert not [name for name in environment if "MODEL" in name]
    assert Config.from_environment(environment).model is None


def test_its_variables_are_named_after_its_fields() -> None:
    environment = Config(stage="s", region="r", model=MODELS[2]).to_environment()
    assert environment["THREADKEEP_MODEL_KIND"] == "openai"
    assert environment["THREADKEEP_MODEL_BASE_URL"] == "http://127.0.0.1:1/v1"
    assert environment["THREADKEEP_MODEL_CONTEXT_MESSAGES_MAX"] == "3"


@pytest.mark.parametrize(
    ("fields", "named"),
    [
        ({"kind": "openai", "name": "m"}, "base_url"),
        ({"kind": "openai", "base_url": "http://h"}, "name"),
        ({"kind": "bedrock"}, "name"),
        ({"kind": "clairvoyant"}, "clairvoyant"),
        ({"context_messages_max": "0"}, "context_messages_max"),
    ],
)
def test_a_model_that_cannot_be_asked_is_an_error_that_says_why(fields: dict[str, Any], named: str) -> None:
    environment = {"THREADKEEP_STAGE": "s", "THREADKEEP_REGION": "r"}
    environment |= {f"THREADKEEP_MODEL_{name.upper()}": value for name, value in fields.items()}
    with pytest.raises(ConfigError, match=named):
        Config.from_environment(environment)
