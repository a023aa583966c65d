"""Tools: wire names and the way back, freeform stand-ins, forced and allowed choices."""

import json
import re
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from combos.core.facts import Dialect
from combos.wire.translate import AnswerError, Context, StreamTranslator, translate_response
from combos.wire.translate.ir import Tool
from combos.wire.translate.toolset import build_catalog, fit_id, plain_name, unwrap_freeform, wrap_freeform
from translations import DIALECTS, Json, ask, context, stream, translate

R, C, M, G = DIALECTS
HI = {"role": "user", "content": "Hi"}
LEGAL = re.compile(r"[A-Za-z0-9_-]{1,64}")

names = st.text(min_size=1, max_size=90)


@given(st.lists(st.tuples(st.one_of(st.none(), names), names), max_size=8))
def test_wire_names_are_legal_and_lead_back(pairs: list[tuple[str | None, str]]) -> None:
    tools = [Tool(name, namespace) for namespace, name in pairs]
    catalog = build_catalog(tools)
    for tool in tools:
        wire = catalog.wire_name(tool.namespace, tool.name)
        found = catalog.find(wire)
        assert LEGAL.fullmatch(wire)
        assert found is not None
        assert (found.namespace or "", found.name) == (tool.namespace or "", tool.name)


@pytest.mark.parametrize(
    ("namespace", "name", "wire"),
    [
        (None, "exec", "exec"),
        ("functions", "exec", "exec"),
        ("multi_agent_v1", "spawn_agent", "multi_agent_v1__spawn_agent"),
        (None, "a.b c", "a_b_c"),
        (None, "", "tool"),
    ],
)
def test_plain_names(namespace: str | None, name: str, wire: str) -> None:
    assert plain_name(namespace, name) == wire


@given(names, names)
def test_ids_fit_and_differ(one: str, two: str) -> None:
    for limit in (40, 64):
        fitted = fit_id(one, limit, re.compile(r"[^A-Za-z0-9_-]"))
        assert len(fitted) <= limit
        assert (fit_id(two, limit) == fit_id(one, limit)) is (one == two)


@given(st.text())
def test_freeform_input_survives_its_wrapping(text: str) -> None:
    assert unwrap_freeform(wrap_freeform(text)) == text


@pytest.mark.parametrize("text", ["plain", "", "{", '{"input": 1}', '{"input": "a", "b": 1}', '["input"]', "null"])
def test_what_is_not_the_wrapping_is_taken_verbatim(text: str) -> None:
    assert unwrap_freeform(text) == text


CODEX: Json = {
    "input": [
        {
            "type": "additional_tools",
            "tools": [
                {"type": "namespace", "name": "functions", "tools": [{"type": "custom", "name": "exec"}]},
                {"type": "namespace", "name": "agents", "tools": [{"type": "function", "name": "send"}]},
            ],
        },
        HI,
    ]
}


def sse(*payloads: Json) -> bytes:
    return b"".join(b"data: " + json.dumps(payload).encode() + b"\n\n" for payload in payloads)


def anthropic_call(name: str, *deltas: str) -> bytes:
    block = {"type": "tool_use", "id": "t1", "name": name, "input": {}}
    return sse(
        {"type": "message_start", "message": {"id": "m", "usage": {}}},
        {"type": "content_block_start", "index": 0, "content_block": block},
        *(
            {"type": "content_block_delta", "index": 0, "delta": {"type": "input_json_delta", "partial_json": delta}}
            for delta in deltas
        ),
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": {"stop_reason": "tool_use"}, "usage": {"output_tokens": 1}},
    )


def done_items(out: bytes) -> list[Json]:
    events = [json.loads(line[6:]) for line in out.splitlines() if line.startswith(b"data: ")]
    return [event["item"] for event in events if event["type"] == "response.output_item.done"]


@pytest.mark.parametrize(
    ("wire", "deltas", "item"),
    [
        (
            "exec",
            ('{"inp', 'ut":"a\\nb"}'),
            {"type": "custom_tool_call", "name": "exec", "namespace": "functions", "input": "a\nb"},
        ),
        ("exec", ("raw",), {"type": "custom_tool_call", "name": "exec", "namespace": "functions", "input": "raw"}),
        (
            "agents__send",
            ('{"x":1}',),
            {"type": "function_call", "name": "send", "namespace": "agents", "arguments": '{"x":1}'},
        ),
        ("agents__send", (), {"type": "function_call", "name": "send", "namespace": "agents", "arguments": "{}"}),
    ],
)
def test_codex_gets_its_own_tools_back(wire: str, deltas: tuple[str, ...], item: Json) -> None:
    known = translate(CODEX, R, M).context
    (got,) = done_items(stream(anthropic_call(wire, *deltas), R, M, known))
    assert {key: got.get(key) for key in item} == item
    assert got["call_id"] == "t1"


def test_the_codex_catalog_reaches_the_target_once() -> None:
    twice = {"input": [*CODEX["input"], CODEX["input"][0]]}
    assert [tool["name"] for tool in ask(twice, R, M)["tools"]] == ["exec", "agents__send"]


def fault(raw: bytes, client: Dialect, known: Context) -> str | None:
    """The code of the failure that the client's stream ended with, None while it has not failed."""
    translator = StreamTranslator(client, M, known)
    translator.feed(raw)
    return None if translator.fault is None else translator.fault.code


def thought() -> bytes:
    start = {"type": "content_block_start", "index": 0, "content_block": {"type": "thinking", "thinking": "hm"}}
    return sse(start, {"type": "content_block_stop", "index": 0})


@pytest.mark.parametrize(
    ("raw", "code"),
    [
        (anthropic_call("bash"), "undeclared_tool_call"),
        (thought() + anthropic_call("bash"), "undeclared_tool_call"),
        (anthropic_call("send"), "undeclared_tool_call"),
        (anthropic_call("exec"), None),
        (anthropic_call("agents__send"), None),
        (anthropic_call("exec") + anthropic_call("bash"), None),
        (sse({"type": "message_start", "message": {}}), None),
        (b"", None),
        (b"data: {", None),
    ],
)
def test_an_answer_may_be_bound_to_begin_with_a_declared_call(raw: bytes, code: str | None) -> None:
    known = translate(CODEX, R, M).context
    assert fault(raw, R, replace(known, declared_only=True)) == code
    assert fault(raw, R, known) is None


def test_a_whole_answer_is_bound_as_well() -> None:
    known = context(R, M, declared_only=True)
    call = {"type": "tool_use", "id": "a", "name": "bash", "input": {}}
    body = {"type": "message", "content": [call], "stop_reason": "tool_use"}
    with pytest.raises(AnswerError, match="does not offer"):
        translate_response(json.dumps(body).encode(), R, M, known)
    spoken = {**body, "content": [{"type": "text", "text": "a"}, call]}
    assert b"bash" in translate_response(json.dumps(spoken).encode(), R, M, known)


TOOLS = [{"type": "function", "name": name} for name in "abc"]
ALLOWED = {"type": "allowed_tools", "mode": "required", "tools": [{"type": "function", "name": "b"}]}


def test_an_allowed_subset_is_a_shorter_list_where_nothing_else_says_it() -> None:
    document = {"input": [HI], "tools": TOOLS, "tool_choice": ALLOWED}
    body = ask(document, R, M)
    assert [tool["name"] for tool in body["tools"]] == ["b"]
    assert body["tool_choice"] == {"type": "any"}
    assert [tool["function"]["name"] for tool in ask(document, R, C)["tools"]] == ["b"]
    native = ask(document, R, C, custom_tools=True)
    assert len(native["tools"]) == 3
    assert native["tool_choice"]["allowed_tools"]["mode"] == "required"
    gemini = ask(document, R, G)
    assert [tool["name"] for tool in gemini["tools"][0]["functionDeclarations"]] == ["b"]


@pytest.mark.parametrize("target", [C, M, G])
def test_no_tools_left_means_no_choice(target: Dialect) -> None:
    document = {"input": [HI], "tools": [{"type": "web_search"}], "tool_choice": "required"}
    body = ask(document, R, target)
    assert not {"tools", "tool_choice", "toolConfig"} & set(body)
