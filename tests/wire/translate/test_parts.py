"""Single parts on their way: files, refusals, system text, hosted-tool history, signatures, schemas."""

import json
from typing import Any

import pytest

from combos.core.facts import Dialect
from combos.wire.translate import (
    AnswerError,
    StreamTranslator,
    Unsupported,
    opaque,
    scrub,
    translate_response,
)
from combos.wire.translate.ir import Opaque, Tool
from combos.wire.translate.shape import dump, dump_str
from oracle_answers import digest_stream
from oracle_lint import lint_stream
from translations import DIALECTS, Json, ask, context, profile, stream, translate

R, C, M, G = DIALECTS
HI: Json = {"role": "user", "content": "Hi"}
PDF = "data:application/pdf;base64,JVBERi0="


def sse(*payloads: Json) -> bytes:
    return b"".join(b"data: " + json.dumps(payload).encode() + b"\n\n" for payload in payloads)


def user(*parts: Json) -> list[Json]:
    return [{"role": "user", "content": list(parts)}]


def test_files_between_the_openai_dialects_and_messages() -> None:
    part = {"type": "input_file", "filename": "a.pdf", "file_data": PDF}
    assert ask({"input": user(part)}, R, C)["messages"][0]["content"] == [
        {"type": "file", "file": {"filename": "a.pdf", "file_data": PDF}}
    ]
    block = ask({"messages": user({"type": "file", "file": {"filename": "a.pdf", "file_data": PDF}})}, C, M)
    source = {"type": "base64", "media_type": "application/pdf", "data": "JVBERi0="}
    assert block["messages"][0]["content"][0]["source"] == source
    assert block["messages"][0]["content"][0]["title"] == "a.pdf"


def test_files_by_address_go_where_they_are_fetched() -> None:
    url = "https://example.invalid/a.pdf"
    block = {"type": "document", "source": {"type": "url", "url": url}}
    document = {"max_tokens": 1, "messages": user(block)}
    assert ask(document, M, R)["input"][0]["content"][0] == {"type": "input_file", "file_url": url}
    part = {"type": "input_file", "file_url": url}
    assert ask({"input": user(part)}, R, M)["messages"][0]["content"][0]["source"] == {"type": "url", "url": url}
    for target in (C, G):
        with pytest.raises(Unsupported, match=r"messages\[0\].content\[0\]"):
            translate(document, M, target)


@pytest.mark.parametrize("url", ["data:image/png;base64", "data:image/png,plain", "blob:x", ""])
def test_odd_urls_are_refused(url: str) -> None:
    with pytest.raises(Unsupported, match=r"input\[0\].content\[0\]"):
        translate({"input": user({"type": "input_image", "image_url": url})}, R, M)


@pytest.mark.parametrize(
    ("client", "turn"),
    [
        (R, {"type": "message", "role": "assistant", "content": [{"type": "refusal", "refusal": "No."}]}),
        (C, {"role": "assistant", "content": None, "refusal": "No."}),
        (C, {"role": "assistant", "content": [{"type": "refusal", "refusal": "No."}]}),
    ],
)
def test_refusals_in_the_history(client: Dialect, turn: Json) -> None:
    document = {"input" if client is R else "messages": [HI, turn, HI]}
    assert ask(document, client, M)["messages"][1]["content"] == [{"type": "text", "text": "No."}]
    assert ask(document, client, G)["contents"][1]["parts"] == [{"text": "No."}]
    if client is R:
        assert ask(document, R, C)["messages"][1] == {"role": "assistant", "content": None, "refusal": "No."}
    else:
        assert ask(document, C, R)["input"][1]["content"] == [{"type": "refusal", "refusal": "No."}]


def test_search_history_of_messages_is_left_out_and_named() -> None:
    blocks = [
        {"type": "server_tool_use", "name": "web_search", "id": "s", "input": {}},
        {"type": "web_search_tool_result", "tool_use_id": "s", "content": []},
        {"type": "text", "text": "Found."},
    ]
    document = {"max_tokens": 1, "messages": [HI, {"role": "assistant", "content": blocks}, HI]}
    translated = translate(document, M, C)
    assert translated.dropped == ("messages.server_tool_use", "messages.web_search_tool_result")
    assert json.loads(translated.body)["messages"][1] == {"role": "assistant", "content": "Found."}


def test_redacted_thinking_survives_a_responses_client() -> None:
    raw = sse(
        {"type": "message_start", "message": {}},
        {"type": "content_block_start", "index": 0, "content_block": {"type": "redacted_thinking", "data": "RED"}},
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": {"stop_reason": "end_turn"}},
    )
    (sealed,) = digest_stream("responses", stream(raw, R, M))["opaque"]
    items = [HI, {"type": "reasoning", "summary": [], "encrypted_content": sealed}, HI]
    assert ask({"input": items}, R, M)["messages"][1]["content"] == [{"type": "redacted_thinking", "data": "RED"}]
    own = {
        "role": "assistant",
        "content": [{"type": "redacted_thinking", "data": "RED"}, {"type": "text", "text": "a"}],
    }
    assert b"RED" not in translate({"max_tokens": 1, "messages": [HI, own, HI]}, M, R).body


def gemini(*parts: Json, **members: Any) -> Json:
    return {"candidates": [{"content": {"parts": list(parts)}, **members}]}


@pytest.mark.parametrize(
    "parts",
    [
        [{"text": "Hm.", "thought": True, "thoughtSignature": "sig"}, {"text": "a"}],
        [{"text": "a", "thoughtSignature": "sig"}],
        [{"text": "a"}, {"functionCall": {"id": "x", "name": "f", "args": {}}, "thoughtSignature": "sig"}],
    ],
)
@pytest.mark.parametrize("client", [R, M])
def test_gemini_signatures_return_to_the_part_they_sat_on(client: Dialect, parts: list[Json]) -> None:
    body = json.dumps(gemini(*parts, finishReason="STOP")).encode()
    answer = json.loads(translate_response(body, client, G, context(client, G)))
    if client is R:
        document: Json = {"input": [HI, *answer["output"], HI]}
    else:
        document = {"max_tokens": 1, "messages": [HI, {"role": "assistant", "content": answer["content"]}, HI]}
    assert ask(document, client, G)["contents"][1]["parts"] == parts


def test_a_signature_of_a_thought_without_text_is_kept() -> None:
    raw = sse(
        gemini({"text": "", "thought": True, "thoughtSignature": "s"}), gemini({"text": "a"}, finishReason="STOP")
    )
    got = digest_stream("responses", stream(raw, R, G))
    assert (len(got["opaque"]), got["text"]) == (1, "a")


def test_a_gemini_error_object_in_a_stream() -> None:
    raw = sse(gemini({"text": "a"}), {"error": {"code": 503, "status": "UNAVAILABLE", "message": "Later."}})
    assert digest_stream("messages", stream(raw + raw, M, G))["error"] == "overloaded_error"


@pytest.mark.parametrize("kind", ["json_object", "json_schema"])
def test_structured_output_everywhere(kind: str) -> None:
    form = {"type": kind, "name": "n", "description": "d", "schema": {"type": "object", "$schema": "x"}}
    document = {"input": [HI], "text": {"format": form}}
    chat = ask(document, R, C)["response_format"]
    config = ask(document, R, G)["generationConfig"]
    assert chat["type"] == kind
    assert config["responseMimeType"] == "application/json"
    assert ("responseJsonSchema" in config) is (kind == "json_schema")
    if kind == "json_schema":
        assert chat["json_schema"]["description"] == "d"
        assert config["responseJsonSchema"] == {"type": "object"}
        back = ask({"messages": [HI], "response_format": chat}, C, R)["text"]["format"]
        assert (back["name"], back["description"]) == ("n", "d")


def test_gemini_settings_of_a_client() -> None:
    base = {"contents": [{"role": "user", "parts": [{"text": "Hi"}]}]}
    schema = {"type": "OBJECT", "properties": {"a": {"type": "STRING", "enum": ["X", "STRING"]}}}
    asked = {**base, "generationConfig": {"responseSchema": schema}}
    found = ask(asked, G, M)["output_config"]["format"]["schema"]
    assert found == {"type": "object", "properties": {"a": {"type": "string", "enum": ["X", "STRING"]}}}
    plain = {**base, "generationConfig": {"responseMimeType": "application/json"}}
    assert ask(plain, G, R)["text"]["format"] == {"type": "json_object"}
    calling = {"functionCallingConfig": {"mode": "ANY", "allowedFunctionNames": ["f"]}}
    tools = [{"functionDeclarations": [{"name": "f"}, {"name": "g"}]}]
    assert ask({**base, "tools": tools, "toolConfig": calling}, G, M)["tool_choice"] == {"type": "tool", "name": "f"}


def test_a_named_tool_of_a_messages_client() -> None:
    tools = [{"name": "f", "input_schema": {"type": "object"}}]
    document = {"max_tokens": 1, "messages": [HI], "tools": tools, "tool_choice": {"type": "tool", "name": "f"}}
    assert ask(document, M, R)["tool_choice"] == {"type": "function", "name": "f"}


def test_images_in_gemini_results() -> None:
    inline = {"inlineData": {"mimeType": "image/png", "data": "AA=="}}
    answer = {"name": "f", "response": {"error": "bad"}, "parts": [inline]}
    contents = [
        {"role": "user", "parts": [{"text": "Hi"}]},
        {"role": "model", "parts": [{"functionCall": {"name": "f"}}]},
        {"role": "user", "parts": [{"functionResponse": answer}]},
    ]
    (result,) = ask({"contents": contents}, G, M)["messages"][2]["content"]
    assert result["is_error"] is True
    assert [part["type"] for part in result["content"]] == ["text", "image"]


def test_images_in_an_assistant_turn_are_refused() -> None:
    inline = {"inlineData": {"mimeType": "image/png", "data": "AA=="}}
    with pytest.raises(Unsupported, match="assistant turn"):
        translate({"contents": [{"role": "model", "parts": [inline]}]}, G, R)


def test_results_in_an_assistant_turn_become_text() -> None:
    blocks = [{"type": "tool_result", "tool_use_id": "a", "content": "ok"}]
    document = {"max_tokens": 1, "messages": [HI, {"role": "assistant", "content": blocks}, HI]}
    assert "ok" in ask(document, M, C)["messages"][1]["content"]


def test_text_custom_formats_stay_as_they_are() -> None:
    tool = {"type": "custom", "custom": {"name": "p", "format": {"type": "text"}}}
    assert ask({"messages": [HI], "tools": [tool]}, C, R)["tools"][0]["format"] == {"type": "text"}
    flat = {"type": "custom", "name": "p", "format": {"type": "text"}}
    sent = ask({"input": [HI], "tools": [flat]}, R, C, custom_tools=True)
    assert sent["tools"][0]["custom"]["format"] == {"type": "text"}


def test_namespaces_do_not_nest() -> None:
    tool: Json = {"type": "function", "name": "f"}
    for _ in range(300):
        tool = {"type": "namespace", "name": "n", "tools": [tool]}
    with pytest.raises(Unsupported, match="namespace"):
        translate({"input": [HI], "tools": [tool]}, R, M)


def test_deep_documents_are_refused() -> None:
    block: Json = {"type": "text", "text": "a"}
    for _ in range(12):
        block = {"type": "document", "source": {"type": "content", "content": [block]}}
    with pytest.raises(Unsupported, match="nested"):
        translate({"max_tokens": 1, "messages": user(block)}, M, R)


def test_what_orjson_refuses_is_still_written() -> None:
    nested: Any = 1
    for _ in range(900):
        nested = [nested]
    assert dump(nested) == b"[" * 900 + b"1" + b"]" * 900
    assert json.loads(dump_str({"a": "\ud800"})) == {"a": "\ud800"}


@pytest.mark.parametrize("body", [b"7", b'"x"', b"null", b"[]"])
def test_answers_that_are_no_objects(body: bytes) -> None:
    with pytest.raises(AnswerError):
        translate_response(body, R, M, context(R, M))


def test_an_error_within_a_choice() -> None:
    raw = sse({"choices": [{"delta": {"content": "a"}}]}, {"choices": [{"error": {"message": "x", "code": 429}}, {}]})
    assert digest_stream("responses", stream(raw, R, C))["error"] == "rate_limit_exceeded"


def test_a_responses_stream_that_leaves_items_open_and_repeats_itself() -> None:
    item = {"type": "function_call", "id": "f", "call_id": "c", "name": "f", "arguments": ""}
    added = {"type": "response.output_item.added", "output_index": 0, "item": item}
    stray = {"type": "response.function_call_arguments.delta", "output_index": 9, "delta": "{"}
    delta = {"type": "response.function_call_arguments.delta", "output_index": 0, "delta": "{}"}
    text = {"type": "response.output_text.delta", "output_index": 1, "item_id": "m", "delta": ""}
    late = {"type": "response.reasoning_text.delta", "output_index": 0, "delta": "no"}
    final = {"type": "response.completed", "response": {"id": "r", "usage": {"input_tokens": 2.0}}}
    got = digest_stream("messages", stream(sse(added, added, stray, delta, text, late, final, delta), M, R))
    assert (got["calls"], got["reasoning"], got["usage"]["input_total"]) == ([["c", "f", "{}"]], "", 2)


def test_repeated_starts_are_read_once() -> None:
    start = {"type": "message_start", "message": {"usage": {"input_tokens": True}}}
    block = {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": "a"}}
    end = {"type": "message_delta", "delta": {"stop_reason": "end_turn"}}
    out = stream(sse(start, start, block, block, end), C, M)
    assert (digest_stream("chat", out)["text"], out.count(b'"role"')) == ("a", 1)


def test_calls_and_thoughts_of_a_user_are_no_calls_and_thoughts() -> None:
    block = {"type": "tool_use", "id": "a", "name": "f", "input": {}}
    document = {"max_tokens": 1, "messages": [{"role": "user", "content": [block]}]}
    assert ask(document, M, G)["contents"] == []
    assert ask(document, M, C)["messages"] == []


def test_a_whole_gemini_list_is_its_first_element() -> None:
    body = json.dumps([gemini({"text": "a"})]).encode()
    assert json.loads(translate_response(body, C, G, context(C, G)))["choices"][0]["message"]["content"] == "a"


def test_a_namespace_of_a_model_is_part_of_the_name_elsewhere() -> None:
    item = {"type": "function_call", "id": "f", "call_id": "c", "namespace": "ns", "name": "f", "arguments": "{}"}
    body = json.dumps({"status": "completed", "output": [item]}).encode()
    for known in (context(C, R), context(C, R, Tool("ns__f"))):
        message = json.loads(translate_response(body, C, R, known))["choices"][0]["message"]
        assert message["tool_calls"][0]["function"]["name"] == "ns__f"


def test_too_much_held_text_ends_the_stream() -> None:
    translator = StreamTranslator(R, C, context(R, C, Tool("p", freeform=True)))
    first = {"index": 0, "id": "x", "function": {"name": "p", "arguments": ""}}
    translator.feed(sse({"choices": [{"delta": {"tool_calls": [first]}}]}))
    more = sse({"choices": [{"delta": {"tool_calls": [{"index": 0, "function": {"arguments": "a" * (6 << 20)}}]}}]})
    out = b"".join(translator.feed(more) for _ in range(7))
    assert digest_stream("responses", b"event: response.created\n" + out)["error"] == "server_error"
    assert translator.ended


def test_slots_that_only_look_sealed() -> None:
    fake = opaque.to_gemini_slot("cmb1.")[:-2] + "!!"
    assert opaque.from_gemini_slot(fake) == fake
    assert opaque.from_gemini_slot(7) == 7
    lonely = {"messages": [{"role": "assistant", "content": [{"type": "thinking", "signature": "cmb1.x"}]}]}
    changes = scrub({**lonely, "thinking": {"type": "enabled"}}, M, profile(M))
    assert changes == {"messages": []}
    assert opaque.fits(Opaque(M, "x"), M, "anthropic/x") is False, "native state of an unknown maker"


@pytest.mark.parametrize("client", [R, M, G])
def test_a_call_that_names_no_tool_leaves_a_conversation_that_vendors_accept(client: Dialect) -> None:
    call = {"index": 0, "id": "call_1", "function": {"arguments": "{}"}}
    made = sse({"choices": [{"delta": {"tool_calls": [call]}}]}, {"choices": [{"finish_reason": "tool_calls"}]})
    assert b"unnamed_tool" in stream(made, client, C)
    assert lint_stream(client.value, stream(made, client, C)) == []


@pytest.mark.parametrize("odd", [None, 7, "text", [], [None], {}, {"type": 5, "id": 1}, {"type": ["message"]}])
def test_items_that_are_none_beside_foreign_state_are_left_alone(odd: Any) -> None:
    sealed = {"type": "reasoning", "encrypted_content": "gAAAA", "summary": []}
    changes = scrub({"input": [sealed, odd, "x"]}, R, profile(R), "elsewhere")
    assert changes["input"] == [odd, "x"]
    block = {"type": "thinking", "thinking": "x", "signature": "y"}
    turns = [{"role": "assistant", "content": [block, odd]}, odd]
    scrub({"messages": turns}, M, profile(M), "elsewhere")
    parts = [{"text": "x", "thoughtSignature": "y"}, odd]
    scrub({"contents": [{"role": "model", "parts": parts}, odd]}, G, profile(G), "elsewhere")
