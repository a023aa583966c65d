"""Requests towards Responses targets: stateless, strictness, images in results, reasoning settings."""

import pytest

from combos.core.facts import Dialect
from translations import DIALECTS, Json, ask, translate

R, C, M, G = DIALECTS
HI = {"role": "user", "content": "Hi"}


def chat(**members: object) -> Json:
    return {"messages": [HI], **members}


def test_it_is_stateless_and_named() -> None:
    assert ask(chat(store=True), C, R)["store"] is False
    assert translate(chat(store=True), C, R).dropped == ("store",)
    assert translate(chat(store=False), C, R).dropped == ()


@pytest.mark.parametrize(("asked", "sent"), [(1, 16), (15, 16), (16, 16), (300, 300)])
def test_small_output_limits_are_raised(asked: int, sent: int) -> None:
    assert ask(chat(max_tokens=asked), C, R)["max_output_tokens"] == sent


@pytest.mark.parametrize(("strict", "sent"), [(None, False), (True, True), (False, False)])
def test_strict_is_always_said(strict: bool | None, sent: bool) -> None:
    tool = {"type": "function", "function": {"name": "f", "strict": strict}}
    assert ask(chat(tools=[tool]), C, R)["tools"][0]["strict"] is sent


def test_leading_system_text_is_joined_and_later_text_stays_in_place() -> None:
    system = [{"role": "system", "content": "A"}, {"role": "developer", "content": "B"}]
    body = ask({"messages": [*system, HI, {"role": "system", "content": "C"}, HI]}, C, R)
    assert body["instructions"] == "A\n\nB"
    assert [item["role"] for item in body["input"]] == ["user", "developer", "user"]


@pytest.mark.parametrize(
    ("document", "client", "reasoning"),
    [
        (chat(), C, None),
        (chat(reasoning_effort="high"), C, {"effort": "high", "summary": "auto"}),
        (chat(reasoning_effort="none"), C, {"effort": "none"}),
        (chat(reasoning_effort="huge"), C, None),
        (chat(include_reasoning=True), C, {"summary": "auto"}),
        (chat(reasoning_effort="low", include_reasoning=False), C, {"effort": "low"}),
        (chat(thinking={"type": "enabled", "budget_tokens": 20000}), M, {"effort": "high", "summary": "auto"}),
        (chat(thinking={"type": "enabled", "budget_tokens": 9000}), M, {"effort": "medium", "summary": "auto"}),
        (chat(thinking={"type": "adaptive"}), M, {"summary": "auto"}),
        (chat(thinking={"type": "adaptive"}, output_config={"effort": "max"}), M, {"effort": "max", "summary": "auto"}),
        (chat(thinking={"type": "disabled"}), M, {"effort": "none"}),
        (chat(output_config={"effort": "low"}), M, {"effort": "low"}),
    ],
)
def test_reasoning(document: Json, client: Dialect, reasoning: Json | None) -> None:
    body = ask(document, client, R)
    assert body.get("reasoning") == reasoning
    assert body.get("include") == (["reasoning.encrypted_content"] if reasoning else None)


def test_an_empty_ladder_keeps_the_summary() -> None:
    translated = translate(chat(thinking={"type": "adaptive"}, output_config={"effort": "max"}), M, R, effort=False)
    assert translated.dropped == ("output_config.effort",)
    assert b'"reasoning":{"summary":"auto"}' in translated.body


def test_the_cache_key_of_a_messages_client_comes_from_its_user() -> None:
    one = ask(chat(metadata={"user_id": "u-1"}), M, R)
    assert one["user"] == "u-1"
    assert len(one["prompt_cache_key"]) == 32
    assert one["prompt_cache_key"] != ask(chat(metadata={"user_id": "u-2"}), M, R)["prompt_cache_key"]


def test_the_billing_header_stays_with_its_vendor() -> None:
    system = [{"type": "text", "text": "x-anthropic-billing-header: cc=1;"}, {"type": "text", "text": "Be kind."}]
    assert ask(chat(system=system), M, R)["instructions"] == "Be kind."


def test_item_ids_are_not_sent() -> None:
    call = {"id": "x", "type": "function", "function": {"name": "f", "arguments": ""}}
    body = ask({"messages": [HI, {"role": "assistant", "tool_calls": [call]}]}, C, R)
    assert [item.get("id") for item in body["input"]] == [None] * 3
    assert body["input"][1]["arguments"] == "{}"


@pytest.mark.parametrize(
    ("value", "want"),
    [
        ({"type": "json_object"}, {"type": "json_object"}),
        (
            {"type": "json_schema", "json_schema": {"name": "n", "schema": {"type": "object"}, "strict": True}},
            {"type": "json_schema", "name": "n", "schema": {"type": "object"}, "strict": True},
        ),
        ({"type": "text"}, None),
    ],
)
def test_structured_output(value: Json, want: Json | None) -> None:
    assert (ask(chat(response_format=value), C, R).get("text") or {}).get("format") == want


@pytest.mark.parametrize(
    ("choice", "want"),
    [
        ("auto", "auto"),
        ("none", "none"),
        ({"type": "function", "function": {"name": "f"}}, {"type": "function", "name": "f"}),
        (
            {
                "type": "allowed_tools",
                "allowed_tools": {"mode": "required", "tools": [{"type": "function", "function": {"name": "f"}}]},
            },
            {"type": "allowed_tools", "mode": "required", "tools": [{"type": "function", "name": "f"}]},
        ),
    ],
)
def test_tool_choice(choice: object, want: object) -> None:
    tools = [{"type": "function", "function": {"name": name}} for name in "fg"]
    assert ask(chat(tools=tools, tool_choice=choice), C, R)["tool_choice"] == want
    assert "tool_choice" not in ask(chat(tool_choice=choice), C, R), "no tools, no choice"


CLAUDE_CODE_USER = (
    f"user_{'a1' * 32}_account_00000000-0000-4000-8000-000000000001_session_00000000-0000-4000-8000-000000000002"
)


@pytest.mark.parametrize("target", [R, C], ids=str)
def test_a_users_id_is_shortened_where_the_api_refuses_long_ones(target: Dialect) -> None:
    def told(user: str) -> str:
        body = ask({"messages": [HI], "metadata": {"user_id": user}}, M, target)
        return str(body["user"])

    assert [told(user) for user in ("me", "u" * 64)] == ["me", "u" * 64]
    made = told(CLAUDE_CODE_USER)
    assert len(made) == 64
    assert made == told(CLAUDE_CODE_USER)
    assert made != told(CLAUDE_CODE_USER[:-1] + "3")
