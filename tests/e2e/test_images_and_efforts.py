"""Combos that take no images, and default efforts, as a running proxy applies them."""

import json
from pathlib import Path
from typing import Any

import pytest

from stage import Case, stage
from wires import WIRES, C, M, R, Wire

URL = "data:image/png;base64,iVBORw0KGgo="
PART = {"type": "input_image", "image_url": URL}
CHAT_PART = {"type": "image_url", "image_url": {"url": URL}}
BLOCK = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "iVBORw0KGgo="}}
SAID = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "hi"}]}
TOOL_RESULT = {"type": "tool_result", "tool_use_id": "t", "content": [BLOCK]}


@pytest.mark.parametrize(
    ("wire", "fields", "refused"),
    [
        (R, {"input": [{**SAID, "content": [PART]}, SAID]}, True),
        (R, {"input": [{"type": "function_call_output", "call_id": "c", "output": [PART]}, SAID]}, True),
        (R, {"input": [SAID], "metadata": {"type": "input_image"}}, False),
        (R, {"input": [SAID], "tools": [{"type": "function", "name": "f", "parameters": {"enum": [PART]}}]}, False),
        (C, {"messages": [{"role": "user", "content": [CHAT_PART]}, {"role": "user", "content": "hi"}]}, True),
        (C, {"messages": [{"role": "user", "content": "image_url"}]}, False),
        (M, {"messages": [{"role": "user", "content": [BLOCK]}]}, True),
        (M, {"messages": [{"role": "user", "content": [TOOL_RESULT]}]}, True),
        (M, {"messages": [{"role": "user", "content": "image"}]}, False),
    ],
)
async def test_images(confdir: Path, wire: Wire, fields: dict[str, Any], refused: bool) -> None:
    closed = Case(wire, combo={"imageInput": "disabled", "alias": "daily"}, alpha=wire.answers("ok"))
    taking = Case(wire, alpha=wire.answers("ok"))
    async with stage(confdir, closed, taking) as on:
        answer = await on.ask(closed, model="daily", **fields)
        assert (answer.status, closed.calls) == ((400, []) if refused else (200, ["alpha"]))
        if refused:
            assert answer.json()["error"]["message"] == f'Combo "{closed.id}" does not accept image input'
            assert answer.json()["error"]["type"] == "invalid_request_error"
        assert on.cooling(closed) == {}
        assert (await on.ask(taking, **fields)).status == 200


LADDER = {"alpha": {"reasoningEfforts": ["low", "medium", "high", "xhigh"]}}


@pytest.mark.parametrize(
    ("mode", "default", "asked", "sent"),
    [
        ("fallback", "max", None, {"effort": "xhigh"}),
        ("fallback", "max", {"summary": "auto"}, {"summary": "auto", "effort": "xhigh"}),
        ("fallback", "max", {"effort": "low"}, {"effort": "low"}),
        ("force", "low", {"effort": "high"}, {"effort": "low"}),
        ("force", "low", {"effort": "none"}, {"effort": "none"}),
    ],
)
async def test_default_efforts(
    confdir: Path, mode: str, default: str, asked: dict[str, Any] | None, sent: dict[str, Any]
) -> None:
    combo = {"defaultEffort": default, "defaultEffortMode": mode}
    one = Case(R, combo=combo, providers=LADDER, alpha=R.answers("ok"))
    async with stage(confdir, one) as on:
        await on.ask(one, **({} if asked is None else {"reasoning": asked}))
        assert json.loads(one.requests[0].body)["reasoning"] == sent


@pytest.mark.parametrize("wire", WIRES, ids=lambda wire: wire.name)
async def test_a_target_without_efforts_is_sent_none(confdir: Path, wire: Wire) -> None:
    fields = {
        "R": {"reasoning": {"effort": "high", "summary": "auto"}},
        "C": {"reasoning_effort": "high"},
        "M": {"thinking": {"type": "adaptive"}, "output_config": {"effort": "high", "format": {"type": "text"}}},
    }[wire.name]
    left = {"R": {"reasoning": {"summary": "auto"}}, "C": {}, "M": {"output_config": {"format": {"type": "text"}}}}
    one = Case(wire, providers={"alpha": {"reasoningEfforts": []}}, alpha=wire.answers("ok"))
    async with stage(confdir, one) as on:
        await on.ask(one, **fields)
        body = json.loads(one.requests[0].body)
        assert {key: value for key, value in body.items() if key in fields} == left[wire.name]
