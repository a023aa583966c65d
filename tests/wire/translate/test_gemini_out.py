"""Requests towards Gemini targets: thinking form, signatures, calls and results, the URL's share."""

import pytest

from combos.wire.translate import Circumstances, Thinking
from combos.wire.translate.gemini_out import SKIP_SIGNATURE
from translations import DIALECTS, GIVEN, Json, ask, translate

R, C, M, G = DIALECTS
HI = {"role": "user", "content": "Hi"}


def chat(**members: object) -> Json:
    return {"messages": [HI], **members}


@pytest.mark.parametrize(
    ("effort", "form", "want"),
    [
        (None, Thinking.BUDGET, None),
        ("none", Thinking.BUDGET, {"thinkingBudget": 0}),
        ("minimal", Thinking.BUDGET, {"thinkingBudget": 512, "includeThoughts": True}),
        ("max", Thinking.BUDGET, {"thinkingBudget": 32768, "includeThoughts": True}),
        ("none", Thinking.LEVEL, {"thinkingLevel": "MINIMAL"}),
        ("medium", Thinking.LEVEL, {"thinkingLevel": "MEDIUM", "includeThoughts": True}),
        ("xhigh", Thinking.LEVEL, {"thinkingLevel": "HIGH", "includeThoughts": True}),
        ("high", Thinking.NONE, None),
    ],
)
def test_effort(effort: str | None, form: Thinking, want: Json | None) -> None:
    config = ask(chat(reasoning_effort=effort), C, G, thinking=form).get("generationConfig", {})
    assert config.get("thinkingConfig") == want


def test_calls_of_other_models_get_the_apis_stand_in_signature() -> None:
    calls = [{"id": name, "type": "function", "function": {"name": "f", "arguments": "{}"}} for name in "ab"]
    document = {"messages": [HI, {"role": "assistant", "content": "t", "tool_calls": calls}]}
    parts = ask(document, C, G, skip_signature=True)["contents"][1]["parts"]
    assert [part.get("thoughtSignature") for part in parts] == [None, SKIP_SIGNATURE, None]
    assert SKIP_SIGNATURE not in str(ask(document, C, G))


def test_results_name_their_call_and_come_first() -> None:
    call = {"id": "a", "type": "function", "function": {"name": "f", "arguments": "[1]"}}
    turns = [
        HI,
        {"role": "assistant", "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "a", "content": '{"x":1}'},
    ]
    contents = ask({"messages": [*turns, HI]}, C, G)["contents"]
    assert contents[1]["parts"] == [{"functionCall": {"id": "a", "name": "f", "args": {"_raw": "[1]"}}}]
    response = {"id": "a", "name": "f", "response": {"output": '{"x":1}'}}
    assert contents[2]["parts"] == [{"functionResponse": response}, {"text": "Hi"}]


@pytest.mark.parametrize(
    ("choice", "want"),
    [
        ("auto", {"mode": "AUTO"}),
        ("required", {"mode": "ANY"}),
        ("none", {"mode": "NONE"}),
        ({"type": "function", "function": {"name": "f"}}, {"mode": "ANY", "allowedFunctionNames": ["f"]}),
    ],
)
def test_tool_choice(choice: object, want: Json) -> None:
    tools = [{"type": "function", "function": {"name": "f"}}]
    body = ask(chat(tools=tools, tool_choice=choice), C, G)
    assert body["toolConfig"]["functionCallingConfig"] == want


def test_streaming_and_model_stand_in_the_url() -> None:
    translated = translate(chat(stream=True), C, G)
    assert translated.stream
    assert "model" not in str(ask(chat(stream=True), C, G))
    document = {"contents": [{"role": "user", "parts": [{"text": "Hi"}]}]}
    assert ask(document, G, C, Circumstances("s", 1, stream=True))["stream"] is True
    assert ask(document, G, C, GIVEN)["stream"] is False


def test_a_gemini_client_without_ids_still_pairs_its_results() -> None:
    calls = [{"functionCall": {"name": "f", "args": {"n": n}}} for n in (1, 2)]
    answers = [{"functionResponse": {"name": "f", "response": {"result": n}}} for n in (1, 2)]
    contents = [
        {"role": "user", "parts": [{"text": "Hi"}]},
        {"role": "model", "parts": calls},
        {"role": "user", "parts": answers},
    ]
    turns = ask({"contents": contents}, G, C)["messages"]
    ids = [call["id"] for call in turns[1]["tool_calls"]]
    assert [turn["tool_call_id"] for turn in turns[2:]] == ids
    assert [turn["content"] for turn in turns[2:]] == ["1", "2"]
    assert len(set(ids)) == 2


def test_schemas_in_capitals_become_json_schema() -> None:
    schema = {"type": "OBJECT", "properties": {"a": {"type": "STRING", "nullable": True}, "type": {"type": "NUMBER"}}}
    document = {"contents": [], "tools": [{"functionDeclarations": [{"name": "f", "parameters": schema}]}]}
    assert ask(document, G, C)["tools"][0]["function"]["parameters"]["properties"] == {
        "a": {"type": ["string", "null"]},
        "type": {"type": "number"},
    }
