"""Laws of requests: what is read agrees with a plain JSON reader, and what is changed is all that changes."""

import json
from contextlib import suppress
from typing import Any

import orjson
from hypothesis import assume, given
from hypothesis import strategies as st

from combos.core.errors import ProxyError
from combos.core.facts import Dialect
from combos.decision.envelopes import TAGS, clean
from combos.decision.transcript import items_of
from combos.wire.fields import Fields
from combos.wire.headers import HeaderError, pair, request_headers, response_headers
from combos.wire.json_text import loads
from combos.wire.model_header import with_requested_model
from combos.wire.readable import read_request, request_lines
from combos.wire.request import (
    bears_image,
    compaction_trigger,
    conversation,
    has_unreadable_task,
    lane,
    path_model,
    peek_model,
    request_facts,
    surface_of,
)
from combos.wire.splice import SpliceError, replace_members
from fuzzing import damaged, headers, json_texts, law

PATHS = (
    "/v1/responses", "/v1/responses/compact", "/v1/chat/completions", "/v1/messages?beta=true", "/v1/nothing",
    "/v1beta/models/combo/main:generateContent", "/v1beta/models/a%2Fb:streamGenerateContent?alt=sse",
    "/v1/messages/count_tokens",
)  # fmt: skip
paths = st.one_of(st.sampled_from(PATHS), st.text(max_size=30).map("/v1/models/{}:generateContent".format), st.text())
objects = json_texts.filter(lambda text: text.startswith("{"))
dialects = st.sampled_from(list(Dialect))


@law
@given(paths, st.one_of(st.binary(max_size=100), damaged(), damaged(objects)))
def test_a_request_is_read_or_refused(path: str, body: bytes) -> None:
    surface_of(path)
    path_model(path)
    try:
        facts = request_facts(path, body)
    except ProxyError as error:
        assert error.status == 400
        return
    bears_image(facts)
    has_unreadable_task(facts)
    compaction_trigger(facts)
    for item in items_of(facts):
        assert isinstance(item.text + item.output, str)
    facts.query.encode("ascii")
    if facts.dialect is not Dialect.GEMINI:
        assert peek_model(facts.body).model == facts.model


@law
@given(damaged(objects))
def test_a_glance_at_the_model_agrees_with_a_parse(body: bytes) -> None:
    try:
        document = loads(body)
    except orjson.JSONDecodeError:
        peek_model(body)
        return
    model = document.get("model") if isinstance(document, dict) else None
    assert peek_model(body).model == (model if isinstance(model, str) else None)


def plain(text: bytes) -> Any:
    """The document with numbers as their text and objects as pairs, so that nothing is lost in reading."""
    return json.loads(text, object_pairs_hook=tuple, parse_int=str, parse_float=str, parse_constant=str)


@law
@given(
    damaged(objects),
    st.dictionaries(
        st.sampled_from(["model", "stream", "usage", "new"]), st.none() | json_texts, min_size=1, max_size=3
    ),
)
def test_a_splice_changes_what_it_was_asked_to_and_nothing_else(body: bytes, changes: dict[str, str | None]) -> None:
    wanted: dict[Any, bytes | None] = {
        key: None if value is None else value.encode("utf-8", "surrogatepass") for key, value in changes.items()
    }
    try:
        assume(isinstance(loads(body), dict))
    except orjson.JSONDecodeError:
        with suppress(SpliceError):
            replace_members(body, wanted)
        return
    after = plain(replace_members(body, wanted))
    before = plain(body)
    assert [p for p in after if p[0] not in wanted] == [p for p in before if p[0] not in wanted]
    for key, value in wanted.items():
        held = [held for name, held in after if name == key]
        times = sum(1 for name, _ in before if name == key)
        assert held == ([] if value is None else [plain(value)] * max(1, times))


@law
@given(st.binary(max_size=120) | damaged(), st.text(max_size=20).filter(lambda t: t.isascii()))
def test_the_model_in_a_header_event_leaves_json_json(data: bytes, model: str) -> None:
    made = with_requested_model(data, model)
    try:
        json.loads(data)
    except ValueError:
        return
    json.loads(made)


@law
@given(headers, dialects, dialects, st.text(max_size=20), st.booleans())
def test_no_field_breaks_its_line(fields: Any, target: Dialect, client: Dialect, model: str, keep: bool) -> None:
    try:
        sent = request_headers(
            fields, dialect=target, client_dialect=client, model=model, configured={}, keep_credentials=keep
        )
        given_back = response_headers(fields, requested_model=model, keep_length=keep)
    except (HeaderError, UnicodeError):
        return
    for name, value in (*sent, *given_back):
        assert name
        assert not set(b"\r\n\0: ") & set(name)
        assert not set(b"\r\n\0") & set(value)
    assert not {b"connection", b"transfer-encoding", b"set-cookie"} & {name.lower() for name, _ in given_back}
    assert keep or b"authorization" not in {name.lower() for name, _ in sent}


@law
@given(st.text(max_size=30), st.text(max_size=30))
def test_a_field_is_sound_or_refused(name: str, value: str) -> None:
    try:
        raw_name, raw_value = pair(name, value)
    except (HeaderError, UnicodeError):
        return
    assert raw_name.isascii()
    assert not set(b"\r\n\0") & set(raw_name + raw_value)


@law
@given(headers, st.text(max_size=20))
def test_lanes_are_digests(fields: Any, value: str) -> None:
    raw = value.encode("utf-8", "replace")
    for named in (fields, ((b"thread-id", raw), (b"x-claude-code-session-id", raw))):
        for found in (lane(Fields(named)), conversation(Fields(named))):
            assert found is None or set(found) <= set("0123456789abcdef\0")


@law
@given(st.lists(st.one_of(st.text(max_size=8), st.sampled_from([f"<{t}>" for t in TAGS] + [f"</{t}>" for t in TAGS]))))
def test_envelopes_are_taken_out_once_for_all(parts: list[str]) -> None:
    visible = clean("".join(parts)).visible
    assert len(visible) <= sum(map(len, parts)) + len(parts)


@law
@given(damaged(objects), dialects)
def test_people_can_read_any_request(body: bytes, dialect: Dialect) -> None:
    try:
        made = "\n".join(request_lines(read_request(dialect, body)))
    except (ValueError, ProxyError):
        return
    made.encode()
