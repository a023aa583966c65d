"""The model method: the prompt, and which texts are a choice."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from combos.decision import model
from combos.decision.gates import Closed, Gate
from combos.decision.model import ModelReply, effort_for, read_choice, read_reply, request_body
from combos.decision.options import Candidate, options_of
from combos.decision.systemone import Answer
from decisions import provider, registry, target

CANDIDATES = (Candidate("p", "a", ("low", "high")), Candidate("q", "b"))
OPTIONS = options_of(CANDIDATES)
LOW = "p/a:low"
STATE = {"task": "x", "signals": {"has_image": False, "tool_history": False}, "step": {"type": "user_turn"}}
GOLDEN = Path(__file__).parents[1] / "data" / "decision" / "model.json"


def test_the_same_input_gives_the_same_bytes() -> None:
    assert request_body("ollama/qwen3:4b", "low", OPTIONS, STATE) == GOLDEN.read_bytes()


def test_an_unknown_ladder_sends_no_effort() -> None:
    document = json.loads(request_body("ollama/qwen3:4b", None, OPTIONS, STATE))
    assert "reasoning" not in document
    assert (document["stream"], document["store"], document["tools"]) == (True, False, [])
    prompt = json.loads(document["input"][0]["content"][0]["text"])
    assert prompt == {"state": STATE, "options": {key: option.description for key, option in OPTIONS.items()}}


@pytest.mark.parametrize("extra", [0, 1])
def test_too_much_text_is_invalid(extra: int) -> None:
    """Text that needs no escape within the envelope, so that the envelope is larger by its own members only."""
    size = len(json.dumps({"state": {"task": ""}, "options": _plain()}, separators=(",", ":")).encode())
    room = model.PROMPT_MAX - len(model.ROUTER.encode()) - size
    with pytest.raises(Closed) as closed:
        request_body("m", None, OPTIONS, {"task": "x" * (room + extra)})
    # One byte less and the prompt would do; then it is the envelope that is too large.
    assert closed.value.gate is (Gate.INVALID if extra else Gate.MALFORMED)


def _plain() -> dict[str, str]:
    return {key: option.description for key, option in OPTIONS.items()}


def test_a_prompt_that_fits_with_its_envelope() -> None:
    assert len(request_body("m", None, OPTIONS, {"task": "x" * 60_000})) <= 65_536


@pytest.mark.parametrize("count", [64, 65])
def test_how_many_options_a_model_gets(count: int) -> None:
    options = {str(n): OPTIONS[LOW] for n in range(count)}
    if count == 64:
        model.check_count(options)
    else:
        with pytest.raises(Closed, match="invalid"):
            model.check_count(options)


@pytest.mark.parametrize(
    ("route", "effort"),
    [
        ("alpha/m1", "low"),
        ("gamma/m", "high"),
        ("beta/m2", None),
        ("delta/m", None),
        ("combo/plain", "low"),
        ("combo/mixed", None),
        ("nobody/m", None),
        ("combo/unknown", None),
    ],
)
def test_the_lowest_effort_that_the_route_has(route: str, effort: str | None) -> None:
    made = registry(
        providers={"gamma": provider(reasoningEfforts=["high", "max"]), "delta": provider(reasoningEfforts=[])},
        combos={
            "plain": {"targets": [target("alpha/m1"), target("alpha/m2")]},
            "mixed": {"targets": [target("alpha/m1"), target("beta/m2")]},
        },
    )
    assert effort_for(route, made) == effort


@pytest.mark.parametrize(
    "text",
    [
        '{"choice":"p/a:low"}',
        '{"why":"cheap","choice":"p/a:low","more":[1]}',
        '"p/a:low"',
        ' \n{"choice":"p/a:low"}\n',
        '```json\n{"choice":"p/a:low"}\n```',
        '```\n{"choice":"p/a:low"}\n```',
        '```json {"choice":"p/a:low"} ```',
        '<think>hm {"choice":"q/b:none"}</think>{"choice":"p/a:low"}',
        '<think>hm</think>\n```json\n"p/a:low"\n```\n',
        '{"choice":"p\\/a:low"}',
    ],
)
def test_texts_that_choose(text: str) -> None:
    assert read_choice(text, OPTIONS) == LOW


@pytest.mark.parametrize(
    "text",
    [
        "",
        "p/a:low",
        '```JSON\n{"choice":"p/a:low"}\n```',
        'I choose {"choice":"p/a:low"}',
        '{"choice":"p/a:low"} because',
        '<think>a</think><think>b</think>{"choice":"p/a:low"}',
        '<think>{"choice":"p/a:low"}',
        'x<think>a</think>{"choice":"p/a:low"}',
        '```json\n{"choice":"p/a:low"}\n``` and',
        '```\n"p/a:low"\n```\n```\n"p/a:low"\n```',
        '{"choice":"p/a:low"',
        '{"choice":"p/a:low"}' + " " * 4_077,
    ],
)
def test_texts_that_are_no_json(text: str) -> None:
    with pytest.raises(Closed, match="malformed"):
        read_choice(text, OPTIONS)


def test_a_text_of_the_greatest_length() -> None:
    text = '{"choice":"p/a:low"}'
    assert read_choice(text + " " * (4_096 - len(text)), OPTIONS) == LOW


@pytest.mark.parametrize(
    "text",
    ['{"choice":"p/a:max"}', '"x"', "7", "[]", "null", '{"choice":" p/a:low"}', '{"choice":["p/a:low"]}', "{}", "true"],
)
def test_json_that_chooses_nothing_on_offer(text: str) -> None:
    with pytest.raises(Closed, match="invalid"):
        read_choice(text, OPTIONS)


CHOICE = '{"choice":"p/a:low"}'


def message(*texts: str) -> dict[str, Any]:
    return {"type": "message", "content": [{"type": "output_text", "text": text} for text in texts]}


def whole(status: str = "completed", **fields: Any) -> dict[str, Any]:
    return {"id": "r", "status": status, "output": [message(CHOICE)], **fields}


def streamed(*events: dict[str, Any], status: int = 200) -> ModelReply:
    return ModelReply(status, b"".join(b"data: " + json.dumps(event).encode() + b"\n\n" for event in events), True)


def terminal(kind: str = "completed", **fields: Any) -> dict[str, Any]:
    return {"type": f"response.{kind}", "response": {**whole(kind), **fields}}


def test_a_streamed_answer() -> None:
    usage = {"input_tokens": 3, "output_tokens": 2, "total_tokens": 5}
    reply = streamed({"type": "response.created", "response": {}}, terminal(usage=usage))
    assert read_reply(reply, OPTIONS) == Answer(LOW, usage={"input_tokens": 3, "output_tokens": 2})


def test_a_whole_answer() -> None:
    assert read_reply(ModelReply(200, json.dumps(whole()).encode(), False), OPTIONS) == Answer(LOW)


def test_the_text_is_that_of_all_messages() -> None:
    output = [{"type": "reasoning", "summary": []}, message('{"choice":', '"p/a'), message(':low"}')]
    assert read_reply(streamed(terminal(output=output)), OPTIONS).choice == LOW


def test_pieces_count_where_the_terminal_has_no_text() -> None:
    pieces = [{"type": "response.output_text.delta", "delta": piece} for piece in ('{"choice":', '"p/a:low"}')]
    assert read_reply(streamed(*pieces, terminal(output=[])), OPTIONS).choice == LOW


def test_the_stream_may_end_with_done() -> None:
    reply = streamed(terminal())
    assert read_reply(ModelReply(200, reply.body + b"data: [DONE]\n\n", True), OPTIONS).choice == LOW


@pytest.mark.parametrize(
    ("reply", "gate"),
    [
        (ModelReply(503, b"", False), Gate.HTTP),
        (ModelReply(302, b"", False), Gate.HTTP),
        (streamed(terminal("failed")), Gate.HTTP),
        (streamed({"type": "error", "message": "no"}), Gate.HTTP),
        (streamed(terminal("incomplete")), Gate.MALFORMED),
        (streamed({"type": "response.output_text.delta", "delta": CHOICE}), Gate.MALFORMED),
        (streamed(), Gate.MALFORMED),
        (ModelReply(200, b"data: {broken\n\n", True), Gate.MALFORMED),
        (ModelReply(200, b"data: [1]\n\n", True), Gate.MALFORMED),
        (ModelReply(200, json.dumps(whole("failed")).encode(), False), Gate.HTTP),
        (ModelReply(200, json.dumps(whole("incomplete")).encode(), False), Gate.MALFORMED),
        (ModelReply(200, b"{}", False), Gate.MALFORMED),
        (ModelReply(200, b"[]", False), Gate.MALFORMED),
        (ModelReply(200, b"nothing", False), Gate.MALFORMED),
        (ModelReply(200, b" " * 65_537, False), Gate.MALFORMED),
        (streamed(terminal(output=[message("no json")])), Gate.MALFORMED),
        (streamed(terminal(output=[message('{"choice":"x"}')])), Gate.INVALID),
        (streamed(terminal(output="odd")), Gate.MALFORMED),
    ],
)
def test_replies_that_are_no_answer(reply: ModelReply, gate: Gate) -> None:
    with pytest.raises(Closed, match=f"^{gate}$"):
        read_reply(reply, OPTIONS)


PIECES = st.sampled_from(["<think>", "</think>", "```", "json", "\n", " ", CHOICE, '"p/a:low"', "{", "}", "x"])


@settings(max_examples=200)
@given(st.lists(PIECES, max_size=8).map("".join))
def test_whatever_a_model_says_is_an_option_on_offer_or_a_gate(text: str) -> None:
    assert _gate_or_choice(text) in {*OPTIONS, Gate.INVALID, Gate.MALFORMED}


def _gate_or_choice(text: str) -> str:
    try:
        return read_choice(text, OPTIONS)
    except Closed as closed:
        return closed.gate


FRAMES = st.lists(st.sampled_from([b"data: ", b"{}", b"\n\n", b'{"type":1}', b"7"])).map(b"".join)


@settings(max_examples=100)
@given(st.binary(max_size=60) | FRAMES)
def test_whatever_bytes_come_are_an_answer_or_a_gate(body: bytes) -> None:
    for streamed in (True, False):
        with pytest.raises(Closed):
            read_reply(ModelReply(200, body, streamed), OPTIONS)
