from __future__ import annotations

import json
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import Raw

from tests.support.conversations import message
from tests.support.hot import new_key
from threadkeep.domain.json_values import encode
from threadkeep.domain.model import Message
from threadkeep.responder.bedrock import request_from
from threadkeep.responder.openai_chat import messages_from
from threadkeep.responder.prompt import (
    INTERRUPTED,
    NO_OUTPUT,
    AssistantTurn,
    Prompt,
    ToolUse,
    UserTurn,
    object_text,
    prompt_from,
)

KEY = new_key()


def said(role: str, *parts: dict[str, Any] | str) -> Message:
    whole = [{"type": "text", "text": part} if isinstance(part, str) else part for part in parts]
    raw = tuple({name: Raw(encode(value)) for name, value in part.items()} for part in whole)
    return message(KEY, raw, role=role)


def call(call_id: str = "c1", arguments: Any = "{}", name: Any = "look") -> dict[str, Any]:
    return {"type": "tool_call", "call_id": call_id, "name": name, "arguments": arguments, "state": "incomplete"}


def result(call_id: str = "c1", output: Any = "seen", **fields: Any) -> dict[str, Any]:
    return {"type": "tool_result", "call_id": call_id, "output": output, **fields}


def use(number: int = 0, output: str = "seen", arguments: str = "{}", name: str = "look") -> ToolUse:
    return ToolUse(f"call{number:05d}", name, arguments, output)


def turns(*messages: Message) -> tuple[Any, ...]:
    return prompt_from(messages).turns


# --- texts ----------------------------------------------------------------------------------------------------------


def test_texts_become_turns_and_system_texts_stand_apart() -> None:
    prompt = prompt_from(
        [
            said("system", "Be kind."),
            said("user", "Hi"),
            said("assistant", "Hello"),
            said("system", "Be brief."),
            said("user", "Bye"),
        ],
        system="You are a test.",
    )
    assert prompt == Prompt(
        "You are a test.\n\nBe kind.\n\nBe brief.", (UserTurn("Hi"), AssistantTurn("Hello"), UserTurn("Bye"))
    )


@pytest.mark.parametrize("empty", ["", " ", "\n\t "])
def test_no_empty_text_ever_comes_in(empty: str) -> None:
    prompt = prompt_from(
        [
            said("system", empty),
            said("user", "Hi", empty),
            said("assistant", empty),
            said("user", empty),
            said("user", "Oh"),
        ],
        system=empty,
    )
    assert prompt == Prompt("", (UserTurn("Hi\n\nOh"),))


def test_what_is_not_for_a_model_is_left_out() -> None:
    assert turns(
        said("user", "Hi", {"type": "blob", "ref": "r"}, {"type": "data", "text": "x"}, {"text": "no type"}),
        said("assistant", {"type": "reasoning", "text": "hm"}, {"type": "text", "text": 7}),
        said("assistant", "Hello"),
    ) == (UserTurn("Hi"), AssistantTurn("Hello"))


def test_it_begins_with_the_user() -> None:
    assert turns(said("assistant", "of an older page", call()), said("tool", result()), said("user", "Hi")) == (
        UserTurn("Hi"),
    )
    assert turns(said("assistant", "alone")) == ()


# --- tools ----------------------------------------------------------------------------------------------------------


def test_a_call_and_its_result_are_one_wherever_the_result_stands() -> None:
    pair = (UserTurn("Hi"), AssistantTurn("Let me see.", (use(),)), AssistantTurn("Seen."))
    assert turns(said("user", "Hi"), said("assistant", "Let me see.", call(), result(), "Seen.")) == pair
    assert (
        turns(
            said("user", "Hi"),
            said("assistant", "Let me see.", call()),
            said("tool", result()),
            said("assistant", "Seen."),
        )
        == pair
    )


def test_parallel_calls_are_one_turn_and_calls_after_a_result_another() -> None:
    assert turns(
        said("user", "Hi"),
        said("assistant", call("a"), call("b")),
        said("tool", result("b", "2"), result("a", "1")),
        said("assistant", call("c")),
        said("tool", result("c", "3")),
    ) == (
        UserTurn("Hi"),
        AssistantTurn("", (use(0, "1"), use(1, "2"))),
        AssistantTurn("", (use(2, "3"),)),
    )


def test_a_call_without_a_result_has_one_that_says_so_and_a_result_without_a_call_is_left_out() -> None:
    assert turns(
        said("user", "Hi"), said("assistant", call("a")), said("tool", result("other")), said("user", "And?")
    ) == (UserTurn("Hi"), AssistantTurn("", (use(0, INTERRUPTED),)), UserTurn("And?"))


def test_ids_that_count_anew_in_every_answer_are_told_apart() -> None:
    assert turns(
        said("user", "Hi"),
        said("assistant", call("call_0")),
        said("user", "Go on"),
        said("assistant", call("call_0")),
        said("tool", result("call_0", "second")),
        said("tool", result("call_0", "nobody's")),
    ) == (
        UserTurn("Hi"),
        AssistantTurn("", (use(0, INTERRUPTED),)),
        UserTurn("Go on"),
        AssistantTurn("", (use(1, "second"),)),
    )


@pytest.mark.parametrize(
    ("fields", "output"),
    [
        ({"output": ""}, NO_OUTPUT),
        ({"output": " "}, NO_OUTPUT),
        ({"output": None}, NO_OUTPUT),
        ({"output": {"n": 1}}, '{"n":1}'),
        ({"output": "half", "error": "broke"}, "half\n\nerror: broke"),
        ({"output": "", "error": {"code": 5}}, 'error: {"code":5}'),
    ],
)
def test_a_result_is_always_a_text(fields: dict[str, Any], output: str) -> None:
    (_, turn) = turns(said("user", "Hi"), said("assistant", call()), said("tool", result(**fields)))
    assert turn.uses[0].output == output


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ('{"a": 1}', '{"a": 1}'),
        ("", "{}"),
        ({"a": 1}, '{"a":1}'),
        ('{"a": ', '{"malformed_arguments":"{\\"a\\": "}'),
        ("[1]", '{"malformed_arguments":"[1]"}'),
        ('{"a": NaN}', '{"malformed_arguments":"{\\"a\\": NaN}"}'),
        ("[" * 100_000, None),
    ],
)
def test_arguments_are_always_an_object(arguments: Any, text: str | None) -> None:
    (_, turn) = turns(said("user", "Hi"), said("assistant", call(arguments=arguments)))
    assert isinstance(json.loads(turn.uses[0].arguments), dict)
    assert text is None or turn.uses[0].arguments == text


def test_names_are_such_as_providers_take() -> None:
    (_, turn) = turns(
        said("user", "Hi"),
        said("assistant", call("a", name="fs.read file/é"), call("b", name=""), call("c", name="x" * 99)),
    )
    assert [use.name for use in turn.uses] == ["fs_read_file__", "unnamed", "x" * 64]


def test_object_text_keeps_an_object_as_it_is_written() -> None:
    assert object_text('{ "a" :1.0}') == '{ "a" :1.0}'
    assert object_text('{"a":"\ud83d"}') is None


# --- as providers have it -------------------------------------------------------------------------------------------

PROMPT = Prompt(
    "Be kind.",
    (
        UserTurn("Hi"),
        AssistantTurn("Let me see.", (use(0, "1", '{"n":1}'), use(1, "2"))),
        AssistantTurn("Seen."),
        UserTurn("Bye"),
    ),
)


def test_openai_has_results_as_messages_behind_the_calls() -> None:
    assert list(messages_from(PROMPT)) == [
        {"role": "system", "content": "Be kind."},
        {"role": "user", "content": "Hi"},
        {
            "role": "assistant",
            "content": "Let me see.",
            "tool_calls": [
                {"id": "call00000", "type": "function", "function": {"name": "look", "arguments": '{"n":1}'}},
                {"id": "call00001", "type": "function", "function": {"name": "look", "arguments": "{}"}},
            ],
        },
        {"role": "tool", "tool_call_id": "call00000", "content": "1"},
        {"role": "tool", "tool_call_id": "call00001", "content": "2"},
        {"role": "assistant", "content": "Seen."},
        {"role": "user", "content": "Bye"},
    ]


def test_bedrock_has_results_as_the_users_and_roles_in_turns() -> None:
    prompt = Prompt("Be kind.", (*PROMPT.turns[:2], UserTurn("Bye")))
    assert request_from(prompt, "m") == {
        "modelId": "m",
        "system": [{"text": "Be kind."}],
        "messages": [
            {"role": "user", "content": [{"text": "Hi"}]},
            {
                "role": "assistant",
                "content": [
                    {"text": "Let me see."},
                    {"toolUse": {"toolUseId": "call00000", "name": "look", "input": {"n": 1}}},
                    {"toolUse": {"toolUseId": "call00001", "name": "look", "input": {}}},
                ],
            },
            {
                "role": "user",
                "content": [
                    {"toolResult": {"toolUseId": "call00000", "content": [{"text": "1"}]}},
                    {"toolResult": {"toolUseId": "call00001", "content": [{"text": "2"}]}},
                    {"text": "Bye"},
                ],
            },
        ],
        "toolConfig": {"tools": [{"toolSpec": {"name": "look", "inputSchema": {"json": {"type": "object"}}}}]},
    }


PART = st.one_of(
    st.sampled_from(["", " ", "a", "b"]).map(lambda text: {"type": "text", "text": text}),
    st.sampled_from(["", "x"]).map(lambda text: {"type": "reasoning", "text": text}),
    st.builds(call, st.sampled_from("pqr"), st.sampled_from(["", "{}", '{"a":1}', "{", "[]", {"a": 1}])),
    st.builds(result, st.sampled_from("pqr"), st.sampled_from(["", "out", None, {}])),
)
MESSAGES = st.lists(
    st.tuples(st.sampled_from(["user", "assistant", "tool", "system"]), st.lists(PART, max_size=4)), max_size=8
).map(lambda drafts: [said(role, *parts) for role, parts in drafts])


@settings(deadline=None)
@given(MESSAGES)
def test_no_history_makes_a_prompt_that_a_provider_refuses(messages: list[Message]) -> None:
    prompt = prompt_from(messages)
    openai = list(messages_from(prompt))
    spoken = [entry for entry in openai if entry["role"] != "system"]
    assert not spoken or spoken[0]["role"] == "user"
    assert not any(
        one["role"] == other["role"] != "tool" and "tool_calls" not in one for one, other in pairwise(spoken)
    )
    waiting: list[str] = []
    for entry in spoken:
        if entry["role"] == "tool":
            assert entry["tool_call_id"] == waiting.pop(0)
            assert entry["content"].strip()
            continue
        assert waiting == [], "every result stands right behind its call"
        waiting = [called["id"] for called in entry.get("tool_calls", [])]
        assert waiting or entry["content"].strip()
    assert waiting == []
    request = request_from(prompt, "m")
    roles = [entry["role"] for entry in request["messages"]]
    assert all(one != other for one, other in pairwise(roles))
    blocks = [block for entry in request["messages"] for block in entry["content"]]
    assert all(block["text"].strip() for block in blocks if "text" in block)
    used = [block["toolUse"]["toolUseId"] for block in blocks if "toolUse" in block]
    assert used == [block["toolResult"]["toolUseId"] for block in blocks if "toolResult" in block]
    assert len(set(used)) == len(used)
    assert bool(used) == ("toolConfig" in request)
