"""Targets of another dialect: what they are asked, and that nothing is translated for those that are not asked."""

import json
from typing import Any

import pytest

from combos.core.facts import Headers, TransportFault
from combos.engine import speech
from combos.engine.events import Failed, Started, WaitOver
from combos.engine.record import Outcome
from mixed import PAIRS, WIRES, conversation, mixed
from oracle_requests import digest_request
from playbook import (
    PATHS,
    After,
    Play,
    World,
    completed,
    config,
    created,
    delta,
    discards,
    event,
    finishes,
    provider,
    replies,
    sends,
    waits,
)

DOWN = Failed(0, TransportFault.RESET)


def ask(world: World, document: dict[str, Any], **kwargs: Any) -> Play:
    kwargs.setdefault("path", PATHS[world.wire])
    return world.turn(body=json.dumps(document).encode(), **kwargs) >> Started()


def sent(play: Play, attempt: int = 0) -> dict[str, Any]:
    body: dict[str, Any] = json.loads(play.sends[attempt].request.body)
    return body


@pytest.mark.parametrize(("client", "other"), PAIRS)
def test_over_a_hop_the_other_target_gets_the_same_conversation(client: str, other: str) -> None:
    world = mixed(client, client, other)
    play = ask(world, conversation(client)) << sends("alpha/m1")
    play >> DOWN << discards(0) << sends("beta/m2")
    wanted = digest_request(WIRES[client], conversation(client))
    found = digest_request(WIRES[other], sent(play, 1))
    assert [name for name, *_ in found["tools"]] == [name for name, *_ in wanted["tools"]]
    assert [text for role, kind, text, *_ in _texts(found)] == [text for role, kind, text, *_ in _texts(wanted)]
    assert play.sends[1].request.url.startswith("http://127.0.0.1:7102/v1")


def _texts(digest: dict[str, Any]) -> list[Any]:
    return [turn for turn in digest["turns"] if turn[:2] == ["user", "text"]]


@pytest.mark.parametrize(
    ("other", "path", "accept"),
    [
        ("R", "/v1/responses", b"text/event-stream"),
        ("C", "/v1/chat/completions", b"text/event-stream"),
        ("M", "/v1/messages", b"text/event-stream"),
        ("G", "/v1/models/m1:streamGenerateContent?alt=sse", b"text/event-stream"),
    ],
)
def test_addresses_and_fields_of_another_dialect(other: str, path: str, accept: bytes) -> None:
    client = "M" if other != "M" else "C"
    headers: Headers = (
        (b"accept", b"application/json"),
        (b"anthropic-beta", b"x"),
        (b"x-stainless-lang", b"python"),
        (b"x-api-key", b"mine"),
        (b"user-agent", b"me"),
    )
    play = mixed(client, other).turn(headers=headers, path=f"{PATHS[client]}?beta=true") >> Started()
    request = play.sends[0].request
    names = {name.lower(): value for name, value in request.headers}
    assert request.url == f"http://127.0.0.1:7101{path}"
    assert names.pop(b"anthropic-version", b"2023-06-01") == b"2023-06-01"
    assert names == {
        b"accept": accept,
        b"user-agent": b"me",
        b"content-type": b"application/json",
        b"accept-encoding": b"identity",
    }


@pytest.mark.parametrize(
    ("adapter", "base", "url"),
    [
        ("ollama-native", "http://localhost:11434", "http://localhost:11434/v1/chat/completions"),
        ("ollama-native", "http://localhost:11434/api/", "http://localhost:11434/v1/chat/completions"),
        ("ollama-native", "http://localhost:11434/v1", "http://localhost:11434/v1/chat/completions"),
        ("azure-openai", "https://r.openai.azure.com/openai", "https://r.openai.azure.com/openai/v1/responses"),
        ("azure-openai", "https://r.openai.azure.com/openai/v1/", "https://r.openai.azure.com/openai/v1/responses"),
        ("google", "https://g.example", "https://g.example/v1beta/models/m:generateContent"),
        ("google", "https://g.example/v1beta", "https://g.example/v1beta/models/m:generateContent"),
    ],
)
def test_addresses_of_adapters(adapter: str, base: str, url: str) -> None:
    row = {"adapter": adapter, "baseUrl": base, "apiKey": "k", "allowPrivateNetwork": True}
    world = World(config("delta/m", providers={"delta": row}), wire="M")
    assert (world.turn(stream=False) >> Started()).sends[0].request.url == url


@pytest.mark.parametrize("model", ["gemini-3-pro", "models/gemini-3-pro"])
def test_a_gemini_model_is_named_as_the_vendor_lists_it_or_bare(model: str) -> None:
    row = {"adapter": "google", "baseUrl": "https://g.example", "apiKey": "k"}
    play = World(config(f"delta/{model}", providers={"delta": row}), wire="G").turn() >> Started()
    assert play.sends[0].request.url == "https://g.example/v1beta/models/gemini-3-pro:streamGenerateContent?alt=sse"


def test_a_failover_to_the_clients_dialect_translates_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise AssertionError("translated for a target that is not asked")

    monkeypatch.setattr(speech, "translate_request", refuse)
    world = mixed("R", "R", "M", "C")
    world.turn() >> Started() << sends("alpha/m1")


def test_one_translation_serves_a_look_and_the_send(monkeypatch: pytest.MonkeyPatch) -> None:
    made = []
    translate = speech.translate_request
    monkeypatch.setattr(speech, "translate_request", lambda *given: made.append(1) or translate(*given))
    world = mixed("R", "M", "C", strategy="round-robin")
    world.turn() >> Started() << sends("alpha/m1")
    assert len(made) == 1


# -- what a target cannot be told


def test_a_target_that_cannot_be_told_is_passed_over() -> None:
    world = mixed("C", "M", "C", "R", strategy="round-robin")
    seen = [(world.turn(n=2) >> Started()).calls for _ in range(3)]
    assert seen == [["beta/m2"]] * 3


def test_the_refusal_names_the_field() -> None:
    world = mixed("C", "M", "R")
    play = world.turn(n=2) >> Started()
    reply = play.pending[0]
    play << replies(400, code="unsupported_by_target") << finishes(Outcome.REFUSED)
    error = json.loads(reply.body)["error"]  # type: ignore[union-attr]
    assert (error["type"], error["param"]) == ("invalid_request_error", "n")
    assert "alpha/m1" in error["message"]
    assert play.done().reason == "alpha/m1: unsupported_by_target, beta/m2: unsupported_by_target"


def test_after_a_failure_that_failure_is_given_and_not_the_refusal() -> None:
    world = mixed("C", "C", "M")
    play = world.turn(n=2) >> Started() << sends("alpha/m1")
    play.answer(0, 503, b'{"error":{"message":"down"}}') << replies(503, b'{"error":{"message":"down"}}')
    play << discards(0) << finishes(Outcome.EXHAUSTED)


def test_nobody_waits_for_a_target_that_cannot_be_told() -> None:
    world = mixed("C", "C", "M", waitForCooldownMs=60_000, cooldownMs=20_000)
    first = world.turn() >> Started() << sends("alpha/m1") >> DOWN << discards(0) << sends("beta/m2")
    first >> Failed(1, TransportFault.RESET)
    world.mono_ms += 10_000
    world.reload(config("beta/m2", providers={"beta": provider("beta", "M")}, waitForCooldownMs=60_000))
    world.turn(n=2) >> Started() << replies(400, code="unsupported_by_target") << finishes(Outcome.REFUSED)


def test_tokens_are_counted_by_the_clients_dialect_only() -> None:
    world = mixed("M", "R", "M")
    play = world.turn(path="/v1/messages/count_tokens") >> Started() << sends("beta/m2")
    assert play.sends[0].request.url.endswith("/v1/messages/count_tokens")
    alone = mixed("M", "C").turn(path="/v1/messages/count_tokens") >> Started()
    alone << replies(400, code="count_tokens") << finishes(Outcome.REFUSED)


def test_the_record_names_what_was_left_out() -> None:
    play = mixed("C", "M").turn(seed=7, logit_bias={"1": 2}) >> Started()
    assert play.record.attempts[0].dropped == ("logit_bias", "seed")
    assert (mixed("C", "C").turn(seed=7) >> Started()).record.attempts[0].dropped == ()


def test_a_target_may_be_exchanged_while_the_request_waits() -> None:
    world = mixed("R", "R", "M", waitForCooldownMs=90_000, cooldownMs=60_000)
    play = world.turn() >> Started() << sends("alpha/m1") >> DOWN << discards(0) << sends("beta/m2")
    play >> Failed(1, TransportFault.RESET)
    held = world.turn() >> Started() << waits(60_000)
    world.reload(config("alpha/m1", "beta/m2", providers={"alpha": provider("alpha", "M")}))
    held >> After(60_000) >> WaitOver(1) << sends("alpha/m1")
    assert held.sends[0].request.url.endswith("/v1/messages")


# -- effort


@pytest.mark.parametrize(
    ("client", "fields", "effort"),
    [
        ("R", {}, "high"),
        ("R", {"reasoning": {"effort": "low"}}, "low"),
        ("C", {"reasoning_effort": "low"}, "low"),
        ("M", {}, "high"),
        ("M", {"thinking": {"type": "enabled", "budget_tokens": 5000}}, "medium"),
        ("M", {"thinking": {"type": "disabled"}}, "none"),
        ("G", {}, "high"),
        ("G", {"generationConfig": {"thinkingConfig": {"thinkingBudget": 1024}}}, "low"),
    ],
)
def test_the_combos_effort_reaches_a_target_of_another_dialect(
    client: str, fields: dict[str, Any], effort: str
) -> None:
    other = "C" if client != "C" else "R"
    efforts = ["low", "medium", "high"]
    row = provider("alpha", other, reasoningEfforts=efforts)
    world = World(config("alpha/m1", providers={"alpha": row}, defaultEffort="high"), wire=client)
    document = json.loads(world.body(**fields))
    body = sent(ask(world, document))
    assert (body.get("reasoning_effort") or body["reasoning"]["effort"]) == effort


@pytest.mark.parametrize("client", ["R", "C", "M", "G"])
def test_a_target_without_efforts_gets_none(client: str) -> None:
    asked: dict[str, dict[str, Any]] = {
        "R": {"reasoning": {"effort": "high"}},
        "C": {"reasoning_effort": "high"},
        "M": {"output_config": {"effort": "high"}, "thinking": {"type": "adaptive"}},
        "G": {"generationConfig": {"thinkingConfig": {"thinkingLevel": "HIGH"}}},
    }
    other = "C" if client != "C" else "M"
    row = provider("alpha", other, reasoningEfforts=[])
    world = World(config("alpha/m1", providers={"alpha": row}), wire=client)
    body = sent(ask(world, json.loads(world.body(**asked[client]))))
    assert not {"reasoning_effort", "reasoning", "thinking", "output_config"} & set(body)


# -- state that one target or provider keeps


FILTERED: dict[str, object] = {
    "id": "resp_a",
    "status": "incomplete",
    "incomplete_details": {"reason": "content_filter"},
    "output": [{"type": "message"}],
}
"""An answer whose history is not kept here, only who gave it."""


def test_a_response_id_leads_back_to_its_target() -> None:
    world = mixed("R", "R", "R", strategy="round-robin")
    play = world.turn() >> Started() << sends("alpha/m1")
    play.stream(0, created("resp_a"), delta("x"), completed("resp_a", output=[]))
    for _ in range(3):
        world.turn(previous_response_id="resp_a") >> Started() << sends("alpha/m1")


def test_a_response_id_of_a_cooling_target_is_worth_waiting_for() -> None:
    world = mixed("R", "R", "R", cooldownMs=60_000)
    play = world.turn() >> Started() << sends("alpha/m1")
    play.answer(0, 200, FILTERED)
    world.turn() >> Started() << sends("alpha/m1") >> DOWN
    play = world.turn(previous_response_id="resp_a") >> Started()
    play << replies(503, code="combo_unavailable") << finishes(Outcome.UNAVAILABLE)


@pytest.mark.parametrize("wire", ["R", "M"])
def test_an_unknown_response_id_goes_nowhere(wire: str) -> None:
    play = mixed("R", wire).turn(previous_response_id="resp_x") >> Started()
    play << replies(400, code="previous_response_not_found") << finishes(Outcome.REFUSED)


def test_a_direct_target_may_know_the_response_itself() -> None:
    world = mixed("R", "R", "R")
    world.turn("alpha/m1", previous_response_id="resp_x") >> Started() << sends("alpha/m1")
    play = world.turn("alpha/m1") >> Started() << sends("alpha/m1")
    play.answer(0, 200, FILTERED)
    play = world.turn("beta/m2", previous_response_id="resp_a") >> Started()
    play << replies(400, code="previous_response_not_found") << finishes(Outcome.REFUSED)


def reasoning(blob: str) -> dict[str, Any]:
    return {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": blob}


def test_state_of_another_provider_is_withheld_once_the_conversation_has_moved() -> None:
    world = mixed("R", "R", "R")
    history = [{"role": "user", "content": "hi"}, reasoning("gAAA")]
    play = world.turn(lane="l1") >> Started() << sends("alpha/m1")
    play.stream(0, created("r"), delta("x"), completed("r"))
    again = world.turn(lane="l1", input=history) >> Started() << sends("alpha/m1")
    assert sent(again)["input"] == history
    again.rewrites = True
    again >> DOWN << discards(0) << sends("beta/m2")
    assert sent(again, 1)["input"] == history[:1]
    other = world.turn(lane="l2", input=history) >> Started() << sends("beta/m2")
    assert sent(other)["input"] == history


def test_claude_codes_session_is_a_conversation_too() -> None:
    world = mixed("M", "M", "M")
    headers: Headers = ((b"x-claude-code-session-id", b"s1"),)
    ended = {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 1}}
    play = world.turn(headers=headers) >> Started() << sends("alpha/m1")
    play.stream(0, event(ended))
    thought = {"type": "thinking", "thinking": "hm", "signature": "Eq"}
    turns = [
        {"role": "user", "content": "a"},
        {"role": "assistant", "content": [thought, {"type": "text", "text": "b"}]},
        {"role": "user", "content": "c"},
    ]
    again = world.turn(headers=headers, messages=turns) >> Started() << sends("alpha/m1")
    assert sent(again)["messages"] == turns
    again.rewrites = True
    again >> DOWN << discards(0) << sends("beta/m2")
    assert sent(again, 1)["messages"][1]["content"] == [{"type": "text", "text": "b"}]


def test_members_that_are_not_cleaned_keep_their_bytes() -> None:
    world = mixed("R", "R")
    items = b'[{"type":"reasoning","summary":[],"encrypted_content":"cmb1.bad"}]'
    body = b'{ "big": 12345678901234567890123, "model":"combo/main", "f":1.10, "input":' + items + b"}"
    play = world.turn(body=body)
    play.rewrites = True
    raw = (play >> Started() << sends("alpha/m1")).sends[0].request.body
    assert raw == body.replace(b"combo/main", b"m1").replace(items, b"[]")


# -- compaction

TRIGGER = {"type": "compaction_trigger"}
HISTORY: list[dict[str, Any]] = [{"role": "user", "content": "Depth?"}, {"role": "assistant", "content": "6 m"}]


@pytest.mark.parametrize("wire", ["R", "C", "M", "G"])
def test_a_compaction_becomes_a_summarising_turn(wire: str) -> None:
    world = mixed("R", wire)
    play = world.turn(input=[*HISTORY, TRIGGER], tools=[{"type": "function", "name": "f"}])
    play.rewrites = True
    body = sent(play >> Started() << sends("alpha/m1"))
    assert "hand-off summary" in json.dumps(body)
    assert "compaction_trigger" not in json.dumps(body)
    assert "tools" not in body


def test_the_native_backend_makes_its_own_compaction() -> None:
    chatgpt = {
        "adapter": "openai-responses",
        "baseUrl": "https://chatgpt.com/backend-api/codex",
        "authMode": "forward",
    }
    world = World(config("delta/m", providers={"delta": chatgpt}))
    body = sent(world.turn(input=[*HISTORY, TRIGGER]) >> Started() << sends("delta/m"))
    assert body["input"] == [*HISTORY, TRIGGER]


def test_the_compact_endpoint_of_a_combo_is_a_turn_and_of_a_target_its_own() -> None:
    world = mixed("R", "R")
    play = world.turn(path="/v1/responses/compact", input=HISTORY)
    play.rewrites = True
    play >> Started() << sends("alpha/m1")
    assert play.sends[0].request.url.endswith("/v1/responses")
    direct = world.turn("alpha/m1", path="/v1/responses/compact", input=HISTORY) >> Started() << sends("alpha/m1")
    assert direct.sends[0].request.url.endswith("/v1/responses/compact")
    assert sent(direct)["input"] == HISTORY


# -- Gemini clients


def test_a_gemini_client_names_its_model_in_the_path() -> None:
    world = mixed("G", "G", "R")
    play = world.turn(path="/v1beta/models/combo/main:generateContent?key=secret") >> Started() << sends("alpha/m1")
    request = play.sends[0].request
    assert request.url == "http://127.0.0.1:7101/v1/models/m1:generateContent"
    assert request.body == play.request.facts.body
    play >> DOWN << discards(0) << sends("beta/m2")
    assert sent(play, 1)["model"] == "m2"
    assert not sent(play, 1).get("stream")


def test_a_suffix_of_the_model_id_reaches_every_dialect() -> None:
    for client in ("R", "C", "M", "G"):
        other = "C" if client != "C" else "R"
        row = provider("alpha", other, reasoningEfforts=["low", "high"])
        document = config("alpha/m1", providers={"alpha": row}) | {"cursorEffortRows": True}
        world = World(document, wire=client)
        path = PATHS[client].replace("combo/main", "combo/main--low")
        body = sent(world.turn("combo/main--low", path=path) >> Started())
        assert (body.get("reasoning_effort") or body["reasoning"]["effort"]) == "low"


def test_a_compaction_goes_without_what_its_target_must_not_see() -> None:
    world = mixed("R", "R", "R")
    play = world.turn(lane="l") >> Started() << sends("alpha/m1")
    play.stream(0, created("r"), delta("x"), completed("r"))
    private = {"role": "user", "content": "Depth?", "internal_chat_message_metadata_passthrough": {"a": 1}}
    again = world.turn(lane="l", input=[private, reasoning("gAAA"), TRIGGER])
    again.rewrites = True
    again >> Started() << sends("alpha/m1") >> DOWN << discards(0) << sends("beta/m2")
    first, second = (json.dumps(sent(again, attempt)) for attempt in (0, 1))
    assert ("gAAA" in first, "gAAA" in second) == (True, False)
    assert "passthrough" not in first + second


def test_a_look_ahead_draws_once_and_leaves_the_rotation_fair() -> None:
    world = mixed("C", "C", "M", "C", strategy="random")
    world.draws = [0.5]
    assert (world.turn() >> Started()).calls == ["beta/m2"]
    assert world.draws == []
    turns = mixed("C", "C", "M", "C", strategy="round-robin")
    served = []
    for _ in range(12):
        play = turns.turn(n=2) >> Started()
        served += play.calls
        play.skip().stream(0, event({"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}))
    assert served[:1] == ["alpha/m1"]
    assert sorted(served[-6:]) == ["alpha/m1"] * 3 + ["gamma/m3"] * 3
    weights = turns.state.peek_rotation("main").weights
    assert all(abs(weight) <= 3 for weight in weights.values())
