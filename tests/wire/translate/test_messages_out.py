"""Requests towards Messages targets: thinking, limits, cache markers, turns."""

import pytest

from combos.core.facts import Dialect
from combos.wire.translate import Thinking, Unsupported, opaque
from combos.wire.translate.ir import Opaque
from translations import DIALECTS, Json, ask, translate

R, C, M, G = DIALECTS
HI = {"role": "user", "content": "Hi"}
TOOL = {"type": "function", "name": "f", "parameters": {"type": "object", "properties": {}}}


def chat(**members: object) -> Json:
    return {"messages": [HI], **members}


def test_the_worked_example() -> None:
    """A tool turn of a Responses client whose reasoning was made by this very provider."""
    sealed = opaque.seal(Opaque(M, "EqQB", text="Need the table."), "anthropic/claude-opus-4-8")
    schema = {"type": "object", "properties": {"port": {"type": "string"}}, "required": ["port"]}
    call = {"type": "function_call", "call_id": "toolu_A1", "name": "tide_table", "arguments": '{"port":"Vesna"}'}
    document = {
        "model": "combo/main",
        "input": [
            {"role": "user", "content": "Tide?"},
            {
                "type": "reasoning",
                "id": "rs_1",
                "summary": [{"type": "summary_text", "text": "Need the table."}],
                "encrypted_content": sealed,
            },
            call,
            {"type": "function_call_output", "call_id": "toolu_A1", "output": "14:20"},
        ],
        "tools": [{"type": "function", "name": "tide_table", "parameters": schema, "strict": False}],
        "reasoning": {"effort": "high"},
        "stream": True,
    }
    marker = {"cache_control": {"type": "ephemeral"}}
    assert ask(document, R, M) == {
        "model": "claude-opus-4-8",
        "max_tokens": 24576,
        "stream": True,
        "messages": [
            {"role": "user", "content": [{"type": "text", "text": "Tide?", **marker}]},
            {
                "role": "assistant",
                "content": [
                    {"type": "thinking", "thinking": "Need the table.", "signature": "EqQB"},
                    {"type": "tool_use", "id": "toolu_A1", "name": "tide_table", "input": {"port": "Vesna"}},
                ],
            },
            {
                "role": "user",
                "content": [{"type": "tool_result", "tool_use_id": "toolu_A1", "content": "14:20", **marker}],
            },
        ],
        "tools": [{"name": "tide_table", "input_schema": schema, **marker}],
        "thinking": {"type": "adaptive"},
        "output_config": {"effort": "high"},
    }


@pytest.mark.parametrize(
    ("effort", "flags", "limit", "thinking", "level"),
    [
        (None, {}, 8192, None, None),
        (None, {"max_output_tokens": 5000}, 5000, None, None),
        ("none", {}, 8192, None, None),
        ("none", {"thinking_disable": True}, 8192, {"type": "disabled"}, None),
        ("minimal", {}, 9216, {"type": "adaptive"}, "low"),
        ("low", {}, 12288, {"type": "adaptive"}, "low"),
        ("max", {}, 40192, {"type": "adaptive"}, "max"),
        ("ultra", {}, 40192, {"type": "adaptive"}, "max"),
        ("minimal", {"thinking": Thinking.BUDGET}, 9216, {"type": "enabled", "budget_tokens": 1024}, None),
        ("medium", {"thinking": Thinking.BUDGET}, 16384, {"type": "enabled", "budget_tokens": 8192}, None),
        ("high", {"thinking": Thinking.BUDGET}, 24576, {"type": "enabled", "budget_tokens": 16384}, None),
        ("max", {"thinking": Thinking.BUDGET}, 32000, {"type": "enabled", "budget_tokens": 27904}, None),
        ("high", {"thinking": Thinking.NONE}, 8192, None, None),
        ("high", {"effort": False}, 8192, {"type": "adaptive"}, None),
    ],
)
def test_effort(effort: str | None, flags: Json, limit: int, thinking: Json | None, level: str | None) -> None:
    body = ask(chat(reasoning_effort=effort, temperature=0.5), C, M, **flags)
    assert body["max_tokens"] == limit
    assert body.get("thinking") == thinking
    assert body.get("output_config") == ({"effort": level} if level else None)
    assert body.get("temperature") == (None if thinking and thinking["type"] != "disabled" else 0.5)


def test_the_clients_own_limit_holds() -> None:
    assert ask(chat(reasoning_effort="high", max_tokens=50), C, M)["max_tokens"] == 50
    body = ask(chat(reasoning_effort="high", max_tokens=50), C, M, thinking=Thinking.BUDGET)
    assert body["thinking"]["budget_tokens"] < body["max_tokens"]


def test_sampling_is_dropped_for_models_that_reject_it() -> None:
    translated = translate(chat(temperature=0.5, top_p=0.9), C, M, sampling=False)
    assert translated.dropped == ("temperature", "top_p")
    assert b"temperature" not in translated.body


@pytest.mark.parametrize("choice", ["required", {"type": "function", "function": {"name": "f"}}])
@pytest.mark.parametrize("form", [Thinking.ADAPTIVE, Thinking.BUDGET])
def test_a_forced_call_leaves_thinking_out(choice: object, form: Thinking) -> None:
    tools = [{"type": "function", "function": {"name": "f"}}]
    body = ask(chat(reasoning_effort="high", tools=tools, tool_choice=choice), C, M, thinking=form)
    assert "thinking" not in body
    assert body.get("output_config") == ({"effort": "high"} if form is Thinking.ADAPTIVE else None)


def test_a_budget_needs_the_thinking_of_an_open_tool_round() -> None:
    call = {"id": "a", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    messages = [HI, {"role": "assistant", "tool_calls": [call]}, {"role": "tool", "tool_call_id": "a", "content": "1"}]
    document = {"messages": messages, "reasoning_effort": "high"}
    assert "thinking" not in ask(document, C, M, thinking=Thinking.BUDGET)
    assert "thinking" in ask(document, C, M, thinking=Thinking.ADAPTIVE)
    closed = {"messages": [*messages, {"role": "assistant", "content": "Done."}, HI], "reasoning_effort": "high"}
    assert "thinking" in ask(closed, C, M, thinking=Thinking.BUDGET)


def test_cache_markers_stand_on_the_last_tool_system_block_and_two_user_turns() -> None:
    turns = [{"role": role, "content": str(index)} for index, role in enumerate(["user", "assistant"] * 3)]
    tools = [{"type": "function", "function": {"name": name}} for name in "ab"]
    system = [{"role": "system", "content": "S"}, {"role": "system", "content": "T"}]
    body = ask({"messages": [*system, *turns], "tools": tools}, C, M)
    marked = [block.get("text") for turn in body["messages"] for block in turn["content"] if "cache_control" in block]
    assert marked == ["2", "4"]
    assert [tool["name"] for tool in body["tools"] if "cache_control" in tool] == ["b"]
    assert [block["text"] for block in body["system"] if "cache_control" in block] == ["T"]
    assert b"cache_control" not in translate({"messages": turns}, C, M, cache_markers=False).body


def test_results_come_first_and_mid_conversation_system_text_keeps_its_place() -> None:
    items = [
        HI,
        {"type": "function_call", "call_id": "a", "name": "f", "arguments": ""},
        {"type": "message", "role": "developer", "content": "Note."},
        {"role": "user", "content": "And?"},
        {"type": "function_call_output", "call_id": "a", "output": ""},
    ]
    user = ask({"input": items}, R, M)["messages"][2]["content"]
    assert [block["type"] for block in user] == ["tool_result", "text", "text"]
    assert user[0]["content"] == ""
    assert user[1]["text"] == "<system>\nNote.\n</system>"
    roles = [turn["role"] for turn in ask({"input": items}, R, M, mid_system=True)["messages"]]
    assert roles == ["user", "assistant", "user", "system", "user"]


@pytest.mark.parametrize(
    ("arguments", "want"),
    [
        ("", {}),
        ("  ", {}),
        ('{"a": 1}', {"a": 1}),
        ("[1]", {"_raw": "[1]"}),
        ('{"a":', {"_raw": '{"a":'}),
        ("x", {"_raw": "x"}),
    ],
)
def test_arguments_are_an_object(arguments: str, want: Json) -> None:
    call = {"type": "function_call", "call_id": "a", "name": "f", "arguments": arguments}
    assert ask({"input": [HI, call]}, R, M)["messages"][1]["content"][0]["input"] == want


def test_call_ids_fit_and_pair() -> None:
    long = "call:" + "x" * 80
    items = [
        HI,
        {"type": "function_call", "call_id": long, "name": "f", "arguments": "{}"},
        {"type": "function_call_output", "call_id": long, "output": "1"},
    ]
    turns = ask({"input": items}, R, M)["messages"]
    call, result = turns[1]["content"][0]["id"], turns[2]["content"][0]["tool_use_id"]
    assert call == result
    assert len(call) <= 64
    assert call.startswith("call_xxx")


def test_images_of_other_kinds_are_refused_by_their_place() -> None:
    image = {"type": "image_url", "image_url": {"url": "data:image/tiff;base64,AA=="}}
    with pytest.raises(Unsupported, match=r"messages\[0\].content\[0\]"):
        ask({"messages": [{"role": "user", "content": [image]}]}, C, M)


def test_structured_output_without_a_schema_is_dropped_and_named() -> None:
    assert translate(chat(response_format={"type": "json_object"}), C, M).dropped == ("response_format",)


def test_strict_goes_only_to_targets_that_know_it() -> None:
    tools = [{"type": "function", "function": {"name": "f", "strict": True}}]
    assert "strict" not in ask(chat(tools=tools), C, M)["tools"][0]
    assert ask(chat(tools=tools), C, M, strict_tools=True)["tools"][0]["strict"] is True


BLANKS = ["", " ", "\n\n", "\t \r\n", "\u00a0\u2003"]


def blank_conversation(client: Dialect, blank: str) -> Json:
    """Blank text everywhere a client can have it: instructions, both sides, beside a call, a result."""
    if client is C:
        call = {"id": "c1", "type": "function", "function": {"name": "f", "arguments": "{}"}}
        turns: list[Json] = [
            {"role": "system", "content": blank},
            HI,
            {"role": "assistant", "content": blank},
            {"role": "user", "content": [{"type": "text", "text": blank}, {"type": "text", "text": "More"}]},
            {"role": "system", "content": blank},
            {"role": "assistant", "content": blank, "tool_calls": [call]},
            {"role": "tool", "tool_call_id": "c1", "content": [{"type": "text", "text": blank}]},
            {"role": "user", "content": blank},
        ]
        return {"messages": turns}
    if client is R:
        said = {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": blank}]}
        items = [
            HI,
            said,
            {
                "role": "user",
                "content": [{"type": "input_text", "text": blank}, {"type": "input_text", "text": "More"}],
            },
            {"role": "developer", "content": blank},
            said,
            {"type": "function_call", "call_id": "c1", "name": "f", "arguments": "{}"},
            {"type": "function_call_output", "call_id": "c1", "output": [{"type": "input_text", "text": blank}]},
            {"role": "user", "content": blank},
        ]
        return {"instructions": blank, "input": items}
    contents: list[Json] = [
        {"role": "user", "parts": [{"text": "Hi"}]},
        {"role": "model", "parts": [{"text": blank}]},
        {"role": "user", "parts": [{"text": blank}, {"text": "More"}]},
        {"role": "model", "parts": [{"text": blank}, {"functionCall": {"name": "f", "args": {}}}]},
        {
            "role": "user",
            "parts": [{"functionResponse": {"name": "f", "response": {"output": blank}}}, {"text": blank}],
        },
    ]
    return {"systemInstruction": {"parts": [{"text": blank}]}, "contents": contents}


@pytest.mark.parametrize("mid_system", [False, True])
@pytest.mark.parametrize("blank", BLANKS, ids=ascii)
@pytest.mark.parametrize("client", [R, C, G], ids=str)
def test_blank_text_which_the_api_refuses_is_left_out_and_turns_still_alternate(
    client: Dialect, blank: str, mid_system: bool
) -> None:
    body = ask(blank_conversation(client, blank), client, M, mid_system=mid_system)
    assert "system" not in body
    assert [turn["role"] for turn in body["messages"]] == ["user", "assistant", "user"]
    first, second, third = (turn["content"] for turn in body["messages"])
    assert [block["text"] for block in first] == ["Hi", "More"]
    assert [block["type"] for block in second] == ["tool_use"]
    assert [(block["type"], block["content"]) for block in third] == [("tool_result", "")]
