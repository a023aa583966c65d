"""Opaque reasoning state: sealed on the way out, restored for its own provider, dropped for any other."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from combos.core.facts import Dialect
from combos.wire.translate import opaque, scrub, translate_request, translate_response
from combos.wire.translate.ir import Opaque
from oracle_requests import digest_request
from translations import CASES, GIVEN, Json, context, profile, read

R, C, M, G = Dialect.RESPONSES, Dialect.CHAT, Dialect.MESSAGES, Dialect.GEMINI
FULL = {dialect: f"responses/{dialect.value}.full.json" for dialect in (R, C, M, G)}


def full(target: Dialect) -> bytes:
    return next(read(case) for case in CASES if case["file"] == FULL[target])


def replay(client: Dialect, answer: Json) -> Json:
    """The client's next request: the answer in its history, results for the calls, a new question."""
    match client:
        case Dialect.RESPONSES:
            calls = [item["call_id"] for item in answer["output"] if item["type"] == "function_call"]
            results = [{"type": "function_call_output", "call_id": call_id, "output": "ok"} for call_id in calls]
            return {"input": [{"role": "user", "content": "Hi"}, *answer["output"], *results]}
        case Dialect.MESSAGES:
            calls = [block["id"] for block in answer["content"] if block["type"] == "tool_use"]
            results = [{"type": "tool_result", "tool_use_id": call_id, "content": "ok"} for call_id in calls]
            return {
                "max_tokens": 100,
                "messages": [
                    {"role": "user", "content": "Hi"},
                    {"role": "assistant", "content": answer["content"]},
                    {"role": "user", "content": results},
                ],
            }
        case Dialect.GEMINI:
            content = answer["candidates"][0]["content"]
            calls = [part["functionCall"] for part in content["parts"] if "functionCall" in part]
            results = [
                {"functionResponse": {"id": call["id"], "name": call["name"], "response": {"output": "ok"}}}
                for call in calls
            ]
            user = {"role": "user", "parts": [{"text": "Hi"}]}
            return {"contents": [user, content, {"role": "user", "parts": results}]}
        case Dialect.CHAT:
            message = answer["choices"][0]["message"]
            results = [{"role": "tool", "tool_call_id": call["id"], "content": "ok"} for call in message["tool_calls"]]
            return {"messages": [{"role": "user", "content": "Hi"}, message, *results]}


def next_request(client: Dialect, maker: Dialect, target: Dialect, key: str | None = None) -> list[list[Any]]:
    """The turns that `target` gets after `maker` answered a client; `key` names another target of that dialect."""
    answer = json.loads(translate_response(full(maker), client, maker, context(client, maker)))
    wanted = profile(target)
    if key is not None:
        wanted = type(wanted)(key, key.partition("/")[2])
    body = translate_request(replay(client, answer), client, target, wanted, GIVEN).body
    turns: list[list[Any]] = digest_request(target.value, json.loads(body))["turns"]
    return turns


def native(maker: Dialect) -> list[list[Any]]:
    """The turns that the maker would get from a client of its own dialect."""
    turns: list[list[Any]] = digest_request(maker.value, replay(maker, json.loads(full(maker))))["turns"]
    return turns


@pytest.mark.parametrize("client", [R, M, G])
@pytest.mark.parametrize("maker", [R, M, G])
def test_state_comes_back_to_its_maker_exactly(client: Dialect, maker: Dialect) -> None:
    if client is maker:
        return
    turns, want = next_request(client, maker, maker), native(maker)
    if maker is G:
        # A thought without signature has nothing to restore; the signature sat on the first call.
        want = [turn for turn in want if turn[1] != "reasoning"]
    assert turns == want


@pytest.mark.parametrize("maker", [R, M, G])
def test_chat_clients_have_no_slot(maker: Dialect) -> None:
    assert not [turn for turn in next_request(C, maker, maker) if turn[1] in ("opaque", "reasoning")]


@pytest.mark.parametrize(("client", "maker", "target"), [(R, M, G), (R, G, M), (M, R, G), (M, G, R), (G, R, M)])
def test_state_is_dropped_for_other_dialects(client: Dialect, maker: Dialect, target: Dialect) -> None:
    assert not [turn for turn in next_request(client, maker, target) if turn[1] in ("opaque", "reasoning")]


@pytest.mark.parametrize(("key", "kept"), [("anthropic/other-model", True), ("elsewhere/claude-opus-4-8", False)])
def test_the_provider_decides_and_not_the_model(key: str, kept: bool) -> None:
    turns = next_request(R, M, M, key)
    assert bool([turn for turn in turns if turn[1] == "opaque"]) is kept


@pytest.mark.parametrize(("dialect", "maker"), [(R, M), (M, R), (R, C), (M, C), (G, M), (G, R), (M, G), (R, G)])
def test_scrubbing_removes_foreign_state_from_same_dialect_traffic(dialect: Dialect, maker: Dialect) -> None:
    answer = json.loads(translate_response(full(maker), dialect, maker, context(dialect, maker)))
    document = replay(dialect, answer)
    before = json.dumps(document)
    cleaned = {**document, **scrub(document, dialect, profile(dialect))}
    assert opaque.PREFIX[:4] in before or "Y21iMS" in before
    assert opaque.PREFIX not in json.dumps(cleaned)
    assert "Y21iMS" not in json.dumps(cleaned)
    kinds = [turn[:2] for turn in digest_request(dialect.value, cleaned)["turns"]]
    assert ["assistant", "call"] in kinds, "everything else stays"
    assert json.dumps(document) == before, "the client's document is left as it was"


@pytest.mark.parametrize("dialect", [R, M, G])
def test_native_state_stays_unless_its_provider_is_known_to_differ(dialect: Dialect) -> None:
    document = replay(dialect, json.loads(full(dialect)))
    own = profile(dialect).provider
    assert scrub(document, dialect, profile(dialect)) == {}
    assert scrub(document, dialect, profile(dialect), own) == {}
    cleaned = {**document, **scrub(document, dialect, profile(dialect), "elsewhere")}
    turns = digest_request(dialect.value, cleaned)["turns"]
    assert not [turn for turn in turns if turn[1] == "opaque"]
    assert [turn for turn in turns if turn[1] == "call"]


def test_scrubbing_restores_state_sealed_for_the_target_itself() -> None:
    """A turn answered across dialects by this very provider, replayed to it in its own dialect."""
    sealed = opaque.seal(Opaque(M, "EqQB", text="Need it."), "anthropic/x")
    hidden = opaque.seal(Opaque(M, "RED", redacted=True), "anthropic/x")
    content = [
        {"type": "thinking", "thinking": "shown", "signature": sealed},
        {"type": "redacted_thinking", "data": hidden},
        {"type": "text", "text": "a"},
    ]
    document = {"messages": [{"role": "assistant", "content": content}]}
    assert scrub(document, M, profile(M))["messages"][0]["content"] == [
        {"type": "thinking", "thinking": "Need it.", "signature": "EqQB"},
        {"type": "redacted_thinking", "data": "RED"},
        {"type": "text", "text": "a"},
    ]
    item = {"type": "reasoning", "encrypted_content": opaque.seal(Opaque(R, "gAAA", item_id="rs_1"), "openai/x")}
    assert scrub({"input": [item]}, R, profile(R))["input"] == [
        {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "gAAA"}
    ]
    part = {
        "text": "t",
        "thought": True,
        "thoughtSignature": opaque.to_gemini_slot(opaque.seal(Opaque(G, "s"), "google/x")),
    }
    assert scrub({"contents": [{"role": "model", "parts": [part]}]}, G, profile(G))["contents"][0]["parts"] == [
        {"text": "t", "thought": True, "thoughtSignature": "s"}
    ]


def test_an_open_tool_round_that_lost_its_thinking_is_sent_without_a_budget() -> None:
    sealed = opaque.seal(Opaque(R, "x"), "openai/y")
    messages = [
        {
            "role": "assistant",
            "content": [
                {"type": "thinking", "thinking": "", "signature": sealed},
                {"type": "tool_use", "id": "a", "name": "f", "input": {}},
            ],
        },
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "a", "content": "1"}]},
    ]
    thinking = {"type": "enabled", "budget_tokens": 2048}
    changes = scrub({"messages": messages, "thinking": thinking}, M, profile(M))
    assert changes["thinking"] is None
    assert "thinking" not in scrub({"messages": messages, "thinking": {"type": "adaptive"}}, M, profile(M))


blobs = st.text(alphabet=st.characters(codec="utf-8"), max_size=40)


@given(st.sampled_from([R, M, G]), blobs, blobs, blobs, st.booleans(), st.sampled_from(["", "call", "text"]))
def test_sealing_loses_nothing(dialect: Dialect, blob: str, item: str, text: str, red: bool, place: str) -> None:
    state = Opaque(dialect, blob, "p/m", item, red, text, place)
    assert opaque.unseal(opaque.seal(state, "p/m")) == state
    assert opaque.from_gemini_slot(opaque.to_gemini_slot(opaque.seal(state, "p/m"))) == opaque.seal(state, "p/m")


@given(st.one_of(st.text(), st.from_regex(r"cmb1\.[A-Za-z0-9_=-]{0,60}", fullmatch=True)))
def test_any_value_in_the_slot_is_read_or_dropped(value: str) -> None:
    state = opaque.read(value, M)
    assert state is None or (state.blob == value) or opaque.is_sealed(value)
    opaque.from_gemini_slot(value)


def test_a_sealed_value_that_is_too_large_is_dropped() -> None:
    assert opaque.unseal(opaque.seal(Opaque(M, "x" * opaque.MAX_SEALED), "p/m")) is None
    assert opaque.unseal(opaque.seal(None, "p/m")) is None
