"""Requests: surfaces, models, images, compaction marks, lanes."""

import hashlib
import json
from collections.abc import Callable

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import combos.wire.request as requests_of_clients
from combos.core.errors import ProxyError
from combos.core.facts import Dialect, Surface
from combos.wire.fields import Fields
from combos.wire.request import (
    Peeked,
    RequestFacts,
    bears_image,
    compaction_trigger,
    conversation,
    has_unreadable_task,
    lane,
    path_model,
    peek_model,
    read_model,
    request_facts,
    surface_of,
)
from combos.wire.splice import sole_member

R, C, M, G = Dialect.RESPONSES, Dialect.CHAT, Dialect.MESSAGES, Dialect.GEMINI
PATHS = {R: "/v1/responses", C: "/v1/chat/completions", M: "/v1/messages"}


def facts(dialect: Dialect, path: str = "", **document: object) -> RequestFacts:
    return request_facts(path or PATHS[dialect], json.dumps({"model": "combo/main", **document}).encode())


@pytest.mark.parametrize(
    ("path", "surface"),
    [
        ("/v1/responses", (R, Surface.RESPONSES)),
        ("/responses", (R, Surface.RESPONSES)),
        ("/backend-api/codex/responses", (R, Surface.RESPONSES)),
        ("/v1/responses/", (R, Surface.RESPONSES)),
        ("/v1/responses?x=/models", (R, Surface.RESPONSES)),
        ("/v1/responses/compact", (R, Surface.COMPACT)),
        ("/openai/v1/chat/completions", (C, Surface.CHAT)),
        ("/v1/messages?beta=true", (M, Surface.MESSAGES)),
        ("/other/prefix/v1/messages", (M, Surface.MESSAGES)),
        ("/v1/messages/count_tokens", (M, Surface.COUNT_TOKENS)),
        ("/backend-api/codex/models?client_version=0.171.0", (R, Surface.MODELS)),
        ("/v1/responses/resp_1", None),
        ("/v1/myresponses", None),
        ("/v1/completions", None),
        ("/v1/xchat/completions", None),
        ("/compact", None),
        ("/v1/models/combo/main", None),
        ("/v1/messages/batches", None),
        ("/V1/RESPONSES", None),
        ("/", None),
        ("", None),
        ("/?q=/v1/responses", None),
    ],
)
def test_surfaces(path: str, surface: tuple[Dialect, Surface] | None) -> None:
    assert surface_of(path) == surface


def test_facts() -> None:
    body = b'{"model":"combo/main","stream":true,"n":12345678901234567890123}'
    found = request_facts("/v1/responses?a=1", body)
    assert (found.dialect, found.surface, found.path, found.query) == (R, Surface.RESPONSES, "/v1/responses", "a=1")
    assert (found.model, found.stream, found.body) == ("combo/main", True, body)
    assert found.document["model"] == "combo/main"


@pytest.mark.parametrize("stream", [False, None, "true", 1])
def test_only_true_is_a_stream(stream: object) -> None:
    assert not facts(R, stream=stream).stream


@pytest.mark.parametrize("path", ["/v1/responses/compact", "/v1/messages/count_tokens"])
def test_unary_surfaces_never_stream(path: str) -> None:
    assert not facts(R, path, stream=True).stream


@pytest.mark.parametrize(
    ("path", "body", "says"),
    [
        ("/v1/responses", b"", "not valid JSON"),
        ("/v1/responses", b"{", "not valid JSON"),
        ("/v1/responses", b"\x28\xb5\x2f\xfd", "not valid JSON"),
        ("/v1/responses", b"[" * 5000, "not valid JSON"),
        ("/v1/responses", b"[]", "not a JSON object"),
        ("/v1/responses", b"{}", "Missing required parameter: 'model'"),
        ("/v1/responses", b'{"model":null}', "Invalid type for 'model'"),
        ("/v1/responses", b'{"model":7}', "Invalid type for 'model'"),
        ("/v1/responses", b'{"model":""}', "Invalid type for 'model'"),
        ("/v1/other", b'{"model":"x"}', "path"),
    ],
)
def test_refusals(path: str, body: bytes, says: str) -> None:
    with pytest.raises(ProxyError) as caught:
        request_facts(path, body)
    assert (caught.value.status, caught.value.type) == (400, "invalid_request_error")
    assert says in caught.value.message


@pytest.mark.parametrize(
    ("body", "model"),
    [
        (b'{"model":"a"}', "a"),
        (b'{"model":"a\\u002fb\\n"}', "a/b\n"),
        (b'{"x":[{"model":"in"}],"model":"a"}', "a"),
        (b'{"x":{"model":"in"}}', None),
        (b'{"model":"a","model":"b"}', "b"),
        (b'{"mo\\u0064el":"a"}', "a"),
        (b'{"x":"\\"model\\":","y":["model"]}', None),
        (b'{"model":{"a":1}}', None),
        (b'{"model":null}', None),
        (b'[{"model":"a"}]', None),
        (b'"model"', None),
        (b"", None),
        (b"not json", None),
        (b'{"model":', None),
        (b'{"model":x}', None),
    ],
)
def test_peek(body: bytes, model: str | None) -> None:
    assert peek_model(body).model == model


DOCUMENTS = st.recursive(
    st.none() | st.integers(0, 9) | st.sampled_from(["model", "a{", 'b"model":', "\\", "}]", "\u00e9"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["model", "x", '"model"', "models"]), inner, max_size=3)
    ),
    max_leaves=12,
)


@given(st.dictionaries(st.sampled_from(["model", "a", "b"]), DOCUMENTS, max_size=3), st.booleans())
@settings(max_examples=200)
def test_peek_agrees_with_a_parser(document: dict[str, object], ascii_only: bool) -> None:
    body = json.dumps(document, ensure_ascii=ascii_only).encode()
    model = orjson.loads(body).get("model")
    peeked = peek_model(body)
    assert peeked.model == (model if isinstance(model, str) else None)
    if peeked.at is not None:
        assert orjson.loads(body[slice(*peeked.at)]) == model


@given(
    st.dictionaries(st.sampled_from(["model", "stream", "a"]), DOCUMENTS, max_size=3), st.booleans(), st.integers(0, 3)
)
@settings(max_examples=200)
def test_a_body_that_was_read_is_not_read_anew(document: dict[str, object], ascii_only: bool, cut: int) -> None:
    body = json.dumps({**document, "model": document.get("model", "m")}, ensure_ascii=ascii_only).encode()
    body = body[: len(body) - cut]
    read = read_model(body)
    if cut == 0:
        assert (read.model, read.at) == (peek_model(body).model, peek_model(body).at)
        assert read.document == orjson.loads(body)
    for peeked in (read, peek_model(body)):
        assert told("/v1/responses?a=1", body, peeked) == told("/v1/responses?a=1", body, Peeked(None, peeked.at))


@pytest.mark.parametrize("body", [b'{"model":"m"}', b'{"model":"m","x":"\\u00e9"}', b'{"a":1}', b"[]", b"{"])
@pytest.mark.parametrize("look", [peek_model, read_model])
def test_a_body_is_searched_once(body: bytes, look: Callable[[bytes], Peeked], monkeypatch: pytest.MonkeyPatch) -> None:
    searched: list[bytes] = []

    def counted(body: bytes, key: str) -> tuple[int, int] | None:
        searched.append(body)
        return sole_member(body, key)

    monkeypatch.setattr(requests_of_clients, "sole_member", counted)
    look(body)
    assert searched == [body]


def told(path: str, body: bytes, peeked: Peeked) -> RequestFacts | str:
    try:
        return request_facts(path, body, peeked)
    except ProxyError as error:
        return error.message


IMAGE = {"type": "input_image", "image_url": "data:,"}
BLOCK = {"type": "image", "source": {"type": "base64", "data": ""}}


@pytest.mark.parametrize(
    ("dialect", "document", "bears"),
    [
        (R, {"input": [{"type": "message", "role": "user", "content": [IMAGE]}]}, True),
        (R, {"input": [{"type": "function_call_output", "output": [IMAGE]}, {"content": "later"}]}, True),
        (R, {"input": [{"content": [{"output": [[{"content": [IMAGE]}]]}]}]}, True),
        (R, {"input": [IMAGE]}, True),
        (R, {"input": "input_image"}, False),
        (R, {"input": {"content": [IMAGE]}}, False),
        (R, {"input": [{"content": [{"type": "input_file", "file_data": "png"}]}]}, False),
        (R, {"input": [{"arguments": [IMAGE]}], "tools": [{"parameters": IMAGE}], "metadata": IMAGE}, False),
        (C, {"messages": [{"role": "tool", "content": [{"type": "image_url", "image_url": "x"}]}]}, True),
        (C, {"messages": [{"content": [{"type": "image", "data": "x"}]}]}, True),
        (C, {"messages": [{"content": [{"type": "image", "source": {"type": "url"}}]}]}, True),
        (C, {"messages": [{"content": [{"type": "image"}]}, {"content": "image_url"}]}, False),
        (C, {"messages": [{"content": [{"type": "text", "text": "x"}]}], "tools": [{"type": "image_url"}]}, False),
        (M, {"messages": [{"content": [BLOCK]}]}, True),
        (M, {"messages": [{"content": [{"type": "tool_result", "content": [BLOCK]}]}]}, True),
        (M, {"messages": [{"content": "image"}], "tools": [BLOCK]}, False),
        (M, {"messages": [{"content": [{"type": "tool_use", "input": BLOCK}]}]}, False),
        (M, {"messages": 7}, False),
    ],
)
def test_images(dialect: Dialect, document: dict[str, object], bears: bool) -> None:
    assert bears_image(facts(dialect, **document)) is bears


@pytest.mark.parametrize(
    ("found", "marked"),
    [
        (facts(R, input=[{"type": "message"}, {"type": "compaction_trigger"}]), True),
        (facts(R, input=[{"type": "compaction_trigger"}, {"type": "message"}]), True),
        (facts(R, "/v1/responses/compact", input="x"), True),
        (facts(R, input=[{"type": "message", "content": [{"type": "compaction_trigger"}]}]), False),
        (facts(R, input="compaction_trigger"), False),
        (facts(R, input=[7, None, []]), False),
        (facts(M, input=[{"type": "compaction_trigger"}]), False),
    ],
)
def test_compaction(found: RequestFacts, marked: bool) -> None:
    assert compaction_trigger(found) is marked


def test_only_responses_can_carry_a_sealed_task() -> None:
    task = {"type": "agent_message", "author": "/root", "recipient": "/root/a", "content": []}
    assert not has_unreadable_task(facts(M, input=[task]))
    assert not has_unreadable_task(facts(R, input=[task]))


def digest(value: str) -> str:
    return hashlib.sha256(value.encode()).hexdigest()[:32]


def fields(headers: dict[str, str]) -> Fields:
    return Fields(tuple((name.encode(), value.encode()) for name, value in headers.items()))


@pytest.mark.parametrize(
    ("headers", "expected"),
    [
        ({}, None),
        ({"thread-id": "t"}, digest("t")),
        ({"Thread-Id": " t "}, digest("t")),
        ({"thread-id": "t", "session-id": "s"}, digest("t")),
        ({"session-id": "s"}, digest("s")),
        ({"session_id": "u", "session-id": "s"}, digest("u")),
        ({"session_id": " ", "session-id": "s"}, digest("s")),
        ({"x-codex-parent-thread-id": "p"}, digest("p")),
        ({"x-codex-parent-thread-id": "p", "thread-id": "t"}, digest("p") + "\0" + digest("t")),
        ({"thread-id": "t" * 4096}, digest("t" * 4096)),
        ({"thread-id": "t" * 4097}, None),
        ({"thread-id": "a\x01b"}, None),
        ({"thread-id": "a\x7fb", "session-id": "s"}, digest("s")),
        ({"x-client-request-id": "x", "x-session-id": "y", "conversation_id": "z"}, None),
    ],
)
def test_lanes(headers: dict[str, str], expected: str | None) -> None:
    assert lane(fields(headers)) == expected


# -- Gemini


@pytest.mark.parametrize(
    ("path", "model"),
    [
        ("/v1beta/models/gemini-3-pro:generateContent", "gemini-3-pro"),
        ("/v1/models/combo/main:generateContent", "combo/main"),
        ("/v1/models/combo%2Fmain:streamGenerateContent?alt=sse", "combo/main"),
        ("/x/publishers/google/models/a:b:generateContent/", "a:b"),
        ("/v1/models/combo/main", None),
        ("/v1/models/combo/main:countTokens", None),
        ("/v1/models/:generateContent", None),
        ("/v1/responses?x=/models/a:generateContent", None),
    ],
)
def test_gemini_paths(path: str, model: str | None) -> None:
    assert path_model(path) == model
    assert (surface_of(path) == (G, Surface.GENERATE)) is (model is not None)


@pytest.mark.parametrize(
    ("path", "stream"),
    [
        ("/v1/models/m:generateContent", False),
        ("/v1/models/m:generateContent?alt=sse", False),
        ("/v1/models/m:streamGenerateContent?key=k&alt=sse", True),
    ],
)
def test_a_gemini_request_streams_by_its_path(path: str, stream: bool) -> None:
    read = request_facts(path, b'{"contents":[],"stream":true,"model":"other"}')
    assert (read.model, read.stream, read.dialect, read.surface) == ("m", stream, G, Surface.GENERATE)


def test_a_gemini_stream_as_one_array_is_refused() -> None:
    with pytest.raises(ProxyError, match="alt=sse"):
        request_facts("/v1/models/m:streamGenerateContent", b"{}")


@pytest.mark.parametrize(
    ("part", "expected"),
    [
        ({"inlineData": {"mimeType": "image/png", "data": "x"}}, True),
        ({"inline_data": {"mime_type": "image/png", "data": "x"}}, True),
        ({"fileData": {"mimeType": "image/jpeg", "fileUri": "x"}}, True),
        ({"inlineData": {"mimeType": "application/pdf", "data": "x"}}, False),
        ({"text": "image/png"}, False),
        ({"inlineData": None}, False),
    ],
)
def test_images_of_gemini(part: dict[str, object], expected: bool) -> None:
    body = json.dumps({"contents": [{"role": "user", "parts": [part]}]}).encode()
    assert bears_image(request_facts("/v1/models/m:generateContent", body)) is expected


@pytest.mark.parametrize(
    ("headers", "expected"),
    [
        ({}, None),
        ({"x-claude-code-session-id": "s"}, digest("s")),
        ({"x-claude-code-session-id": "s", "x-claude-code-agent-id": "a"}, digest("s") + "\0" + digest("a")),
        ({"x-claude-code-agent-id": "a"}, None),
    ],
)
def test_conversations_of_claude_code(headers: dict[str, str], expected: str | None) -> None:
    assert conversation(fields(headers)) == expected


@pytest.mark.parametrize(
    ("query", "sent"),
    [
        ("beta=true&x=%0d%0a", "beta=true&x=%0d%0a"),
        ("a=[1]&b={}", "a=[1]&b={}"),
        ("a=\udcff", "a=%FF"),
        ("a=é", "a=%C3%A9"),
        ("a=b c", "a=b%20c"),
        ("a=\x01\r\n", "a=%01%0D%0A"),
        ("a=#b", "a=%23b"),
    ],
)
def test_a_query_can_stand_in_a_request_line(query: str, sent: str) -> None:
    assert facts(C, f"/v1/chat/completions?{query}").query == sent


@given(st.text(st.characters(min_codepoint=0x21, max_codepoint=0x7E, exclude_characters="#")))
def test_a_query_of_printed_ascii_is_kept(query: str) -> None:
    assert facts(C, f"/v1/chat/completions?{query}").query == query


@pytest.mark.parametrize(
    ("query", "kept"),
    [
        ("beta=true", "beta=true"),
        ("key=CANARY", ""),
        ("beta=true&key=CANARY&x=1", "beta=true&x=1"),
        ("api-version=2025-01-01&API-KEY=CANARY", "api-version=2025-01-01"),
        ("%6Bey=CANARY&a=%26key%3D1", "a=%26key%3D1"),
        ("a=1;access_token=CANARY", ""),
        ("x=1&token=CANARY&sig=CANARY&subscription-key=CANARY", "x=1"),
        ("monkey=1&keys=2", "monkey=1&keys=2"),
    ],
)
def test_a_callers_credential_in_the_query_goes_nowhere(query: str, kept: str) -> None:
    facts = request_facts(f"/v1/responses?{query}", b'{"model": "combo/main"}')
    assert facts.query == kept


def test_no_path_or_query_is_remembered() -> None:
    secret = "made-up-secret"
    for path in PATHS.values():
        surface_of(f"/{secret}{path}?key={secret}")
    for value in vars(requests_of_clients).values():
        assert not hasattr(value, "cache_info"), value
        assert secret not in repr(value)
