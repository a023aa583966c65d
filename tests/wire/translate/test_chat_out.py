"""Requests towards Chat targets: the flags of compatible servers, text-only tool messages, custom tools."""

import pytest

from combos.wire.translate import Unsupported
from translations import DIALECTS, Json, ask, translate

R, C, M, G = DIALECTS
PNG = {"type": "base64", "media_type": "image/png", "data": "AA=="}
HI = {"role": "user", "content": "Hi"}


def messages(*turns: Json, **members: object) -> Json:
    return {"max_tokens": 100, "messages": [HI, *turns], **members}


@pytest.mark.parametrize(("legacy", "name"), [(False, "max_completion_tokens"), (True, "max_tokens")])
def test_output_limit(legacy: bool, name: str) -> None:
    body = ask(messages(), M, C, legacy_max_tokens=legacy)
    assert {key: value for key, value in body.items() if "max" in key} == {name: 100}


def test_usage_is_always_asked_for_in_streams() -> None:
    assert ask(messages(stream=True), M, C)["stream_options"] == {"include_usage": True}
    assert "stream_options" not in ask(messages(), M, C)


@pytest.mark.parametrize(("flag", "role"), [(False, "system"), (True, "developer")])
def test_system_role(flag: bool, role: str) -> None:
    later = {"role": "system", "content": "Later."}
    body = ask(messages(later, HI, system=[{"type": "text", "text": "A"}, {"text": "B"}]), M, C, developer_role=flag)
    assert [(turn["role"], turn["content"]) for turn in body["messages"]] == [
        (role, "A"),
        (role, "B"),
        ("user", "Hi"),
        (role, "Later."),
        ("user", "Hi"),
    ]


def test_images_of_results_follow_all_tool_messages() -> None:
    calls = [{"type": "tool_use", "id": name, "name": "f", "input": {}} for name in "ab"]
    results = [
        {"type": "tool_result", "tool_use_id": "a", "content": [{"type": "image", "source": PNG}]},
        {"type": "tool_result", "tool_use_id": "b", "content": "ok", "is_error": True},
        {"type": "text", "text": "So?"},
    ]
    body = ask(messages({"role": "assistant", "content": calls}, {"role": "user", "content": results}), M, C)
    assert [turn["role"] for turn in body["messages"]] == ["user", "assistant", "tool", "tool", "user", "user"]
    assert body["messages"][1]["content"] is None
    assert body["messages"][2]["content"] == "[see attachment]"
    assert body["messages"][3]["content"] == "[tool error] ok"
    assert body["messages"][4]["content"][0]["text"] == "[attachments of tool result a]"
    assert body["messages"][5]["content"] == "So?"


def test_text_only_targets() -> None:
    two = {"role": "user", "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]}
    assert ask({"max_tokens": 1, "messages": [two]}, M, C, text_only=True)["messages"][0]["content"] == "a\nb"
    shown = {"role": "user", "content": [{"type": "image", "source": PNG}]}
    with pytest.raises(Unsupported, match=r"messages\[0\].content\[0\]"):
        ask({"max_tokens": 1, "messages": [shown]}, M, C, text_only=True)
    call = {"role": "assistant", "content": [{"type": "tool_use", "id": "a", "name": "f", "input": {}}]}
    block = {"type": "tool_result", "tool_use_id": "a", "content": [{"type": "image", "source": PNG}]}
    with pytest.raises(Unsupported, match="takes text only"):
        ask(messages(call, {"role": "user", "content": [block]}), M, C, text_only=True)


@pytest.mark.parametrize("flag", [True, False])
def test_reasoning_of_the_history_goes_only_to_targets_that_take_it(flag: bool) -> None:
    turn = {"role": "assistant", "content": [{"type": "thinking", "thinking": "Hm.", "signature": ""}]}
    body = ask(messages(turn, HI), M, C, reasoning_content=flag)
    said = [entry.get("reasoning_content") for entry in body["messages"] if entry["role"] == "assistant"]
    assert said == (["Hm."] if flag else [])


CUSTOM = {
    "type": "custom",
    "name": "apply_patch",
    "description": "Edit.",
    "format": {"type": "grammar", "syntax": "lark", "definition": "start: /x/"},
}
CALL = {"type": "custom_tool_call", "call_id": "c", "name": "apply_patch", "input": 'a "b"'}


def test_custom_tools_where_the_target_knows_them() -> None:
    body = ask({"input": [HI, CALL], "tools": [CUSTOM], "tool_choice": {"type": "custom", "name": "apply_patch"}}, R, C,
               custom_tools=True)  # fmt: skip
    grammar = {"type": "grammar", "grammar": {"syntax": "lark", "definition": "start: /x/"}}
    custom = {"name": "apply_patch", "description": "Edit.", "format": grammar}
    assert body["tools"] == [{"type": "custom", "custom": custom}]
    assert body["tool_choice"] == {"type": "custom", "custom": {"name": "apply_patch"}}
    assert body["messages"][1]["tool_calls"][0]["custom"]["input"] == 'a "b"'


def test_custom_tools_where_it_does_not() -> None:
    body = ask({"input": [HI, CALL], "tools": [CUSTOM], "tool_choice": {"type": "custom", "name": "apply_patch"}}, R, C)
    function = body["tools"][0]["function"]
    assert function["parameters"]["required"] == ["input"]
    assert "start: /x/" in function["description"]
    assert body["tool_choice"] == {"type": "function", "function": {"name": "apply_patch"}}
    assert body["messages"][1]["tool_calls"][0]["function"]["arguments"] == '{"input":"a \\"b\\""}'


def test_arguments_stay_byte_identical_between_string_dialects() -> None:
    text = '{ "a" : 1.0 ,"b":"\\u00e9"}'
    call = {"type": "function_call", "call_id": "c", "name": "f", "arguments": text}
    assert ask({"input": [HI, call]}, R, C)["messages"][1]["tool_calls"][0]["function"]["arguments"] == text


def test_call_ids_are_short_enough_and_pair() -> None:
    items = [
        HI,
        {"type": "function_call", "call_id": "x" * 50, "name": "f", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "x" * 50, "output": "1"},
        {"type": "function_call", "call_id": "x" * 51, "name": "f", "arguments": "{}"},
    ]
    turns = ask({"input": items}, R, C)["messages"]
    first, second = turns[1]["tool_calls"][0]["id"], turns[3]["tool_calls"][0]["id"]
    assert turns[2]["tool_call_id"] == first
    assert first != second
    assert max(len(first), len(second)) <= 40


def test_the_most_stop_strings() -> None:
    translated = translate({"max_tokens": 1, "messages": [HI], "stop_sequences": list("abcdef")}, M, C)
    assert translated.dropped == ("stop_sequences",)
    assert b'"stop":["a","b","c","d"]' in translated.body
