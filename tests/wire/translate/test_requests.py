"""What a client may ask and a target of another dialect cannot do: refused with its name, or dropped and named."""

import json

import pytest

from combos.core.facts import Dialect
from combos.wire.translate import Unsupported, opaque, scrub
from combos.wire.translate.fields import FIELDS, HANDLED, REFUSED, Field
from combos.wire.translate.ir import Opaque
from combos.wire.translate.requests import PARSERS, RENDERERS
from translations import CORPUS, DIALECTS, Json, ask, profile, translate

R, C, M, G = DIALECTS
HI = {"role": "user", "content": "Hi"}
PART = {"role": "user", "parts": [{"text": "Hi"}]}
BASE: dict[Dialect, Json] = {
    R: {"input": [HI]},
    C: {"messages": [HI]},
    M: {"max_tokens": 10, "messages": [HI]},
    G: {"contents": [PART]},
}

REFUSALS: list[tuple[Dialect, Json, str]] = [
    (R, {"previous_response_id": "resp_1"}, "previous_response_id"),
    (R, {"conversation": "conv_1"}, "conversation"),
    (R, {"prompt": {"id": "pmpt_1"}}, "prompt"),
    (R, {"background": True}, "background"),
    (R, {"input": [{"type": "item_reference", "id": "x"}]}, "input"),
    (R, {"input": [{"type": "compaction", "encrypted_content": "gAAA"}]}, "input"),
    (R, {"input": [{"type": "mcp_call"}]}, "input"),
    (R, {"input": [{"type": "computer_call"}]}, "input"),
    (R, {"input": [{"type": "apply_patch_call"}]}, "input"),
    (R, {"input": [{"role": "user", "content": [{"type": "input_image", "file_id": "f"}]}]}, "input[0].content[0]"),
    (R, {"input": [{"role": "user", "content": [{"type": "input_file", "file_id": "f"}]}]}, "input[0].content[0]"),
    (R, {"input": [{"role": "user", "content": [{"type": "input_audio"}]}]}, "input[0].content[0]"),
    (
        R,
        {"input": [{"role": "user", "content": [{"type": "input_image", "image_url": "ftp://x"}]}]},
        "input[0].content[0]",
    ),
    (R, {"input": 7}, "input"),
    (R, {"tools": [{"type": "mcp"}]}, "tools"),
    (R, {"tools": [{"type": "shell"}]}, "tools"),
    (R, {"tools": [{"type": "computer_use_preview"}]}, "tools"),
    (R, {"tools": [{"name": "f"}]}, "tools"),
    (R, {"tool_choice": {"type": "web_search"}}, "tool_choice"),
    (C, {"n": 2}, "n"),
    (C, {"n": "x"}, "n"),
    (C, {"audio": {"voice": "a"}}, "audio"),
    (C, {"modalities": ["text", "audio"]}, "modalities"),
    (C, {"functions": [{"name": "f"}]}, "functions"),
    (C, {"function_call": "auto"}, "function_call"),
    (C, {"messages": "Hi"}, "messages"),
    (C, {"messages": [{"role": "function", "content": "x"}]}, "messages[0].role"),
    (C, {"messages": [{"role": "assistant", "function_call": {"name": "f"}}]}, "messages[0].function_call"),
    (C, {"messages": [{"role": "user", "content": [{"type": "input_audio"}]}]}, "messages[0].content[0]"),
    (
        C,
        {"messages": [{"role": "user", "content": [{"type": "file", "file": {"file_id": "f"}}]}]},
        "messages[0].content[0]",
    ),
    (C, {"tools": [{"type": "code"}]}, "tools"),
    (M, {"container": "c1"}, "container"),
    (M, {"mcp_servers": [{"url": "https://x"}]}, "mcp_servers"),
    (M, {"messages": None}, "messages"),
    (M, {"messages": [{"role": "tool", "content": "x"}]}, "messages[0].role"),
    (
        M,
        {"messages": [{"role": "user", "content": [{"type": "image", "source": {"type": "file", "file_id": "f"}}]}]},
        "messages[0].content[0]",
    ),
    (M, {"messages": [{"role": "user", "content": [{"type": "container_upload"}]}]}, "messages[0].content[0]"),
    (
        M,
        {"messages": [{"role": "assistant", "content": [{"type": "server_tool_use", "name": "bash"}]}]},
        "messages[0].content[0]",
    ),
    (M, {"tools": [{"type": "bash_20250124", "name": "bash"}]}, "tools"),
    (M, {"tools": [{"type": "memory_20250818", "name": "memory"}]}, "tools"),
    (M, {"tool_choice": {"type": "tool", "name": "web_search"}}, "tool_choice"),
    (G, {"cachedContent": "c"}, "cachedContent"),
    (G, {"generationConfig": {"candidateCount": 2}}, "generationConfig.candidateCount"),
    (G, {"generationConfig": {"responseModalities": ["IMAGE"]}}, "generationConfig.responseModalities"),
    (G, {"tools": [{"codeExecution": {}}]}, "tools"),
    (G, {"contents": [{"parts": [{"fileData": {"fileUri": "x"}}]}]}, "contents[0].parts[0]"),
    (G, {"contents": [{"parts": [{"inlineData": {"mimeType": "audio/wav", "data": ""}}]}]}, "contents[0].parts[0]"),
]


@pytest.mark.parametrize(("client", "members", "feature"), REFUSALS, ids=str)
def test_refused_for_every_other_dialect_and_for_no_other_reason(client: Dialect, members: Json, feature: str) -> None:
    for target in DIALECTS:
        if target is client:
            assert b"{" in translate({**BASE[client], **members}, client, target).body, "the same dialect may try"
            continue
        with pytest.raises(Unsupported) as caught:
            translate({**BASE[client], **members}, client, target)
        assert caught.value.feature == feature
        assert str(caught.value).startswith(feature)
        assert translate(BASE[client], client, target).dropped == ()


def test_the_answer_when_no_target_is_left() -> None:
    with pytest.raises(Unsupported) as caught:
        translate({**BASE[R], "previous_response_id": "r"}, R, M)
    error = caught.value.refusal("anthropic/claude-opus-4-8")
    assert (error.status, error.type, error.code) == (400, "invalid_request_error", "unsupported_by_target")
    assert error.message == (
        "previous_response_id refers to state kept by another provider and cannot be sent to anthropic/claude-opus-4-8."
    )


def test_every_refused_field_has_a_case() -> None:
    tried = {(client, feature) for client, _members, feature in REFUSALS}
    assert {(client, name) for client, names in REFUSED.items() for name in names} <= tried


DROPPED: list[tuple[Dialect, Json, tuple[str, ...]]] = [
    (
        R,
        {"service_tier": "flex", "truncation": "auto", "metadata": {"a": "b"}},
        ("metadata", "service_tier", "truncation"),
    ),
    (R, {"store": True}, ("store",)),
    (R, {"include": ["reasoning.encrypted_content"]}, ()),
    (R, {"include": ["web_search_call.action.sources"]}, ("include",)),
    (
        R,
        {"tools": [{"type": "web_search_preview"}, {"type": "image_generation"}]},
        ("tools.image_generation", "tools.web_search_preview"),
    ),
    (
        R,
        {"input": [HI, {"type": "web_search_call"}, {"type": "tool_search_output"}]},
        ("input.tool_search_output", "input.web_search_call"),
    ),
    (R, {"metadata": None}, ()),
    (
        C,
        {"seed": 1, "logit_bias": {}, "logprobs": True, "prediction": {}},
        ("logit_bias", "logprobs", "prediction", "seed"),
    ),
    (C, {"web_search_options": {}}, ("web_search_options",)),
    (M, {"metadata": {"user_id": None, "team": "x"}}, ("metadata",)),
    (M, {"container": None, "service_tier": "auto"}, ("service_tier",)),
    (M, {"tools": [{"type": "web_fetch_20250910", "name": "web_fetch"}]}, ("tools.web_fetch_20250910",)),
    (G, {"tools": [{"googleSearch": {}}], "safetySettings": []}, ("safetySettings", "tools.googleSearch")),
    (
        G,
        {"generationConfig": {"seed": 3, "presencePenalty": 0.1}},
        ("generationConfig.presencePenalty", "generationConfig.seed"),
    ),
]


@pytest.mark.parametrize(("client", "members", "names"), DROPPED, ids=str)
def test_dropped_and_named(client: Dialect, members: Json, names: tuple[str, ...]) -> None:
    for target in DIALECTS:
        if target is not client:
            assert translate({**BASE[client], **members}, client, target).dropped == names


SAMPLES: dict[str, dict[Dialect, Json]] = {
    "max_tokens": {
        R: {"max_output_tokens": 50},
        C: {"max_completion_tokens": 50},
        M: {"max_tokens": 50},
        G: {"generationConfig": {"maxOutputTokens": 50}},
    },
    "temperature": {
        R: {"temperature": 0.5},
        C: {"temperature": 0.5},
        M: {"temperature": 0.5},
        G: {"generationConfig": {"temperature": 0.5}},
    },
    "top_p": {R: {"top_p": 0.5}, C: {"top_p": 0.5}, M: {"top_p": 0.5}, G: {"generationConfig": {"topP": 0.5}}},
    "top_k": {M: {"top_k": 5}, G: {"generationConfig": {"topK": 5}}},
    "stop": {C: {"stop": "END"}, M: {"stop_sequences": ["END"]}, G: {"generationConfig": {"stopSequences": ["END"]}}},
    "parallel": {
        R: {"parallel_tool_calls": False},
        C: {"parallel_tool_calls": False},
        M: {"tool_choice": {"type": "auto", "disable_parallel_tool_use": True}},
    },
    "schema": {
        R: {"text": {"format": {"type": "json_schema", "name": "n", "schema": {"type": "object"}}}},
        C: {"response_format": {"type": "json_schema", "json_schema": {"schema": {"type": "object"}}}},
        M: {"output_config": {"format": {"type": "json_schema", "schema": {"type": "object"}}}},
        G: {"generationConfig": {"responseJsonSchema": {"type": "object"}}},
    },
    "effort": {
        R: {"reasoning": {"effort": "low"}},
        C: {"reasoning_effort": "low"},
        M: {"output_config": {"effort": "low"}},
        G: {"generationConfig": {"thinkingConfig": {"thinkingLevel": "LOW"}}},
    },
    "verbosity": {R: {"text": {"verbosity": "low"}}, C: {"verbosity": "low"}},
    "cache_key": {R: {"prompt_cache_key": "k"}, C: {"prompt_cache_key": "k"}},
    "user": {R: {"user": "u"}, C: {"safety_identifier": "u"}, M: {"metadata": {"user_id": "u"}}},
}


@pytest.mark.parametrize("row", FIELDS, ids=lambda row: row.name)
def test_the_table_of_fields_is_what_happens(row: Field) -> None:
    """Every row, every client that spells it, every target: carried as the target spells it, or dropped by name."""
    name, spelling, carried = row.name, row.spelling, row.carried
    tools = {
        R: [{"type": "function", "name": "f"}],
        C: [{"type": "function", "function": {"name": "f"}}],
        M: [{"name": "f", "input_schema": {"type": "object"}}],
        G: [],
    }
    assert set(SAMPLES[name]) == set(spelling)
    for client, members in SAMPLES[name].items():
        document = {**BASE[client], "tools": tools[client], **members}
        for target in DIALECTS:
            if target is client:
                continue
            dropped = translate(document, client, target).dropped
            assert dropped == (() if target in carried else (spelling[client],)), (client, target)
            if target in carried:
                assert _holds(ask(document, client, target), spelling[target]), (client, target)


def _holds(body: Json, path: str) -> bool:
    value: object = body
    for key in path.split("."):
        if not isinstance(value, dict) or key not in value:
            return False
        value = value[key]
    return True


def test_every_dialect_reads_and_writes() -> None:
    assert set(PARSERS) == set(RENDERERS) == set(HANDLED) == set(DIALECTS)


def test_the_same_dialect_changes_the_model_and_nothing_else() -> None:
    document = {"seed": 1, "model": "combo/x", "n": 3, **BASE[C]}
    assert ask(document, C, C) == {**document, "model": "beta"}
    assert list(ask(document, C, C)) == list(document)
    assert ask({**BASE[G], "model": "m"}, G, G) == {**BASE[G], "model": "m"}
    assert scrub(document, C, profile(C), "elsewhere") == {}


def test_native_tools_of_a_hop_do_not_leak_between_targets() -> None:
    """Each attempt is made from the client's own document: the order of the hops does not matter."""
    document = {**BASE[R], "tools": [{"type": "function", "name": "f", "parameters": {"type": "object"}}]}
    alone = ask(document, R, M)
    ask(document, R, G)
    ask(document, R, C)
    assert ask(document, R, M) == alone


@pytest.mark.parametrize("target", DIALECTS)
def test_documents_of_text_become_text(target: Dialect) -> None:
    source = {"type": "content", "content": [{"type": "text", "text": "Inner."}]}
    blocks = [
        {"type": "document", "source": {"type": "text", "data": "Plain."}},
        {"type": "document", "source": source},
        {"type": "search_result", "title": "T", "source": "s", "content": [{"type": "text", "text": "Found."}]},
        {"type": "tool_reference", "tool_name": "grep"},
    ]
    document = {"max_tokens": 1, "messages": [{"role": "user", "content": blocks}]}
    if target is not M:
        text = translate(document, M, target).body.decode()
        assert all(word in text for word in ("Plain.", "Inner.", "T (s)", "Found.", "[tool grep]"))


def snake(value: object) -> object:
    """A Gemini request in the other spelling of its fields; what is the client's own stays as it is."""
    if isinstance(value, list):
        return [snake(entry) for entry in value]
    if not isinstance(value, dict):
        return value
    own = {"args", "response", "parameters", "parametersJsonSchema", "responseSchema", "responseJsonSchema"}
    words = {key: "".join(f"_{c.lower()}" if c.isupper() else c for c in key) for key in value}
    return {words[key]: inner if key in own else snake(inner) for key, inner in value.items()}


@pytest.mark.parametrize("name", ["tools", "schema"])
@pytest.mark.parametrize("target", [R, C, M])
def test_gemini_fields_may_be_spelled_with_underscores(name: str, target: Dialect) -> None:
    document: Json = json.loads((CORPUS / "requests" / f"gemini.{name}.json").read_text())
    spelled = snake(document)
    assert isinstance(spelled, dict)
    assert "generation_config" in spelled
    one, two = translate(document, G, target), translate(spelled, G, target)
    assert (one.body, len(one.dropped)) == (two.body, len(two.dropped))


def test_the_other_spelling_of_a_signature_is_cleaned_too() -> None:
    part = {"text": "a", "thought_signature": "sig"}
    document = {"contents": [{"role": "model", "parts": [part]}]}
    assert scrub(document, G, profile(G)) == {}
    assert scrub(document, G, profile(G), "elsewhere")["contents"][0]["parts"] == [{"text": "a"}]
    sealed = opaque.to_gemini_slot(opaque.seal(Opaque(G, "mine"), "google/x"))
    known = {"contents": [{"role": "model", "parts": [{**part, "thought_signature": sealed}]}]}
    assert scrub(known, G, profile(G))["contents"][0]["parts"] == [{"text": "a", "thought_signature": "mine"}]
