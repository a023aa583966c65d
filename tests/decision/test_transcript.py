"""Conversations of three dialects as one list of items."""

from typing import Any

import pytest

from combos.decision.transcript import Item, Kind, items_of
from decisions import facts


def kinds(wire: str, conversation: Any) -> list[str]:
    return [item.kind.value for item in items_of(facts(wire, **{"input" if wire == "R" else "messages": conversation}))]


def only(wire: str, node: dict[str, Any]) -> Item:
    (item,) = items_of(facts(wire, **{"input" if wire == "R" else "messages": [node]}))
    return item


def test_a_text_is_one_message() -> None:
    assert items_of(facts("R", input="hi")) == [Item(Kind.USER, "hi")]


@pytest.mark.parametrize("conversation", [None, 7, {}, {"role": "user"}])
@pytest.mark.parametrize("wire", ["R", "C", "M"])
def test_what_is_no_list_has_no_items(wire: str, conversation: Any) -> None:
    assert kinds(wire, conversation) == []


@pytest.mark.parametrize("wire", ["R", "C", "M"])
def test_odd_nodes_are_items_of_no_kind(wire: str) -> None:
    assert kinds(wire, [7, None, {"role": 3}, {"type": 1}, []]) == ["other"] * 5


def test_items_of_a_responses_request() -> None:
    conversation = [
        {"role": "developer", "content": "rules"},
        {"type": "message", "role": "user", "content": "hi"},
        {"type": "reasoning", "encrypted_content": "x"},
        {"role": "assistant", "content": "ok"},
        {"type": "function_call", "call_id": "c1", "name": "shell", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "c1", "output": "done"},
        {"type": "custom_tool_call", "call_id": "c2", "name": "apply_patch", "input": "*** x"},
        {"type": "custom_tool_call_output", "call_id": "c2", "output": "ok"},
        {"type": "agent_message", "content": "x"},
    ]
    expected = ["other", "user", "other", "assistant", "call", "output", "call", "output", "other"]
    assert kinds("R", conversation) == expected
    assert [item.name for item in items_of(facts("R", input=conversation)) if item.kind is Kind.CALL] == [
        "shell",
        "apply_patch",
    ]


def test_items_of_a_chat_request_are_exploded() -> None:
    calls = [
        {"id": "a", "type": "function", "function": {"name": "ls", "arguments": "{}"}},
        {"id": "b", "type": "custom", "custom": {"name": "patch", "input": "x"}},
    ]
    conversation = [
        {"role": "system", "content": "rules"},
        {"role": "user", "content": "hi"},
        {"role": "assistant", "content": "I look", "tool_calls": calls},
        {"role": "assistant", "content": None, "tool_calls": calls[:1]},
        {"role": "tool", "tool_call_id": "a", "content": "x"},
    ]
    assert kinds("C", conversation) == ["other", "user", "assistant", "call", "call", "call", "output"]
    assert [item.name for item in items_of(facts("C", messages=conversation)) if item.kind is Kind.CALL] == [
        "ls",
        "patch",
        "ls",
    ]


def test_a_messages_turn_that_answers_a_tool_ends_with_the_answer() -> None:
    conversation = [
        {"role": "user", "content": "hi"},
        {
            "role": "assistant",
            "content": [
                {"type": "thinking", "thinking": "hm", "signature": "s"},
                {"type": "text", "text": "I look"},
                {"type": "tool_use", "id": "t1", "name": "Bash", "input": {"command": "ls"}},
            ],
        },
        {
            "role": "user",
            "content": [
                {"type": "tool_result", "tool_use_id": "t1", "content": "x"},
                {"type": "text", "text": "<system-reminder>note</system-reminder>"},
            ],
        },
    ]
    assert kinds("M", conversation) == ["user", "assistant", "call", "user", "output"]
    only_results = [{"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t1", "content": "x"}]}]
    assert kinds("M", only_results) == ["output"]


@pytest.mark.parametrize(
    ("content", "text"),
    [
        ("plain", "plain"),
        ([{"type": "input_text", "text": "a"}, {"type": "text", "text": "b"}], "a\nb"),
        ([{"type": "output_text", "text": "a"}, {"type": "refusal", "refusal": "r"}], "a"),
        ([{"type": "input_image", "image_url": "data:x", "text": "no"}, 3, None], ""),
        ([{"type": "text", "text": 5}], ""),
        ([{"type": "encrypted_content", "encrypted_content": "no", "text": "no"}], ""),
        (None, ""),
        ({"text": "no"}, ""),
    ],
)
def test_text_of_a_message(content: Any, text: str) -> None:
    assert only("R", {"role": "user", "content": content}).text == text


@pytest.mark.parametrize(
    ("output", "text"),
    [
        ("plain", "plain"),
        (["a", {"text": "b"}, {"output": "c"}, {"content": "d"}], "a\nb\nc\nd"),
        ([{"text": 3, "output": "x", "content": "y"}], "x"),
        ([{"type": "image", "source": {"data": "no"}}], ""),
        ({"output": "x"}, "x"),
        ({"text": "t", "output": "x"}, "t"),
        (7, ""),
        (None, ""),
    ],
)
def test_text_of_a_tool_output(output: Any, text: str) -> None:
    assert only("R", {"type": "function_call_output", "output": output}).output == text


def test_items_of_a_gemini_request() -> None:
    called = {"functionCall": {"id": "f", "name": "ls", "args": {}}}
    contents = [
        {"parts": [{"text": "hi"}, {"text": "there"}]},
        {"role": "model", "parts": [{"text": "hm", "thought": True}, {"text": "I look"}, called]},
        {"role": "user", "parts": [{"functionResponse": {"name": "ls", "response": {"result": "a.py"}}}]},
        {"role": "user", "parts": [{"function_response": {"name": "cat", "response": {"output": "b"}}}]},
        {"role": "function", "parts": []},
    ]
    items = items_of(facts("G", contents=contents))
    assert [item.kind.value for item in items] == ["user", "assistant", "call", "output", "output", "other"]
    assert [items[0].text, items[1].text, items[3].output, items[4].output] == ["hi\nthere", "I look", "a.py", "b"]
    assert [items[n].name for n in (2, 3, 4)] == ["ls", "ls", "cat"]
