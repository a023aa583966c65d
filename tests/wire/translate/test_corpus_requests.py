"""Every request of the corpus towards every other dialect: the digest holds but for what the rules change."""

import json
from typing import Any

import pytest

from combos.core.facts import Dialect
from combos.wire.translate import Unsupported
from oracle_requests import digest_request
from translations import CASES, DIALECTS, Json, corpus, label, profile, read, translate

R, C, M, G = DIALECTS
REFUSED = [(case, other) for case, other in corpus("request") if "expect" in case]
# A web address cannot be sent inline, and this API fetches nothing.
UNFETCHED = ("requests/messages.document.json", G)
CARRIED = [(case, o) for case, o in corpus("request") if "expect" not in case and (case["file"], o) != UNFETCHED]
GEMINI_BUDGETS = {"low": "budget:2048", "high": "budget:16384", "xhigh": "budget:24576", "budget:2048": "budget:2048"}


def digest(case: Json, target: Dialect) -> Json:
    body = translate(json.loads(read(case)), Dialect(case["dialect"]), target).body
    return digest_request(target.value, json.loads(body))


@pytest.mark.parametrize(("case", "target"), REFUSED, ids=label)
def test_what_no_other_provider_can_honour_is_refused(case: Json, target: Dialect) -> None:
    with pytest.raises(Unsupported) as caught:
        digest(case, target)
    refusal = case["expect"]["refuse"]
    assert (caught.value.feature, caught.value.status, caught.value.code) == (
        refusal["param"],
        refusal["status"],
        "unsupported_by_target",
    )


def test_media_by_address_is_refused_where_nothing_is_fetched() -> None:
    case = next(case for case in CASES if case["file"] == UNFETCHED[0])
    with pytest.raises(Unsupported, match=r"messages\[0\].content\[1\]"):
        digest(case, G)


def _call(turn: list[Any], client: Dialect, target: Dialect) -> list[Any]:
    role, kind, call_id, name, said = turn
    namespace, _, bare = name.rpartition(".")
    name = bare if namespace in ("", "functions") else f"{namespace}__{bare}"
    if said.startswith("raw:") and not (client is C and target is R):
        said = json.dumps({"input": said[4:]}, ensure_ascii=False)
    return [role, kind, call_id, name, said]


def _turns(turns: list[list[Any]], client: Dialect, target: Dialect) -> list[list[Any]]:
    """The turns as the target should hear them: no reasoning, errors in words, images where they have a place."""
    errors = {turn[2] for turn in turns if turn[1] == "is_error"}
    said: list[list[Any]] = []
    images: list[list[Any]] = []
    last = None
    for turn in turns:
        if turn[1] == "result":
            last = turn[2]
            text = f"[tool error] {turn[3]}" if last in errors and target is not M else turn[3]
            said.append(["tool", "result", last, text])
        elif turn[:2] == ["tool", "image"] and target in (C, G):
            images += [["user", "text", f"[attachments of tool result {last}]"], ["user", "image", turn[2]]]
        elif turn[1] == "call":
            said.append(_call(turn, client, target))
        elif turn[1] == "file" and target is G:
            said.append([turn[0], "image", turn[2]])
        elif turn[1] not in ("reasoning", "opaque") and not (turn[1] == "is_error" and target is not M):
            said.append(turn)
    return said + images


def _tools(tools: list[list[Any]], client: Dialect, target: Dialect) -> list[list[Any]]:
    said = []
    for name, kind, schema in tools:
        namespace, _, bare = name.rpartition(".")
        name = bare if namespace in ("", "functions") else f"{namespace}__{bare}"
        if kind == "custom" and not (client is C and target is R):
            kind = "function"
            properties = {"input": {"type": "string"}}
            full = {"type": "object", "properties": properties, "required": ["input"], "additionalProperties": False}
            schema = json.dumps(full, sort_keys=True)
        if kind != "builtin":
            said.append([name, kind, _schema(schema, target)])
    return said


def _schema(text: str | None, target: Dialect) -> str | None:
    if text is None:
        return None
    schema = json.loads(text)
    if target is G:
        schema.pop("$schema", None)
    return json.dumps({"type": "object", "properties": {}, **schema}, sort_keys=True)


@pytest.mark.parametrize(("case", "target"), CARRIED, ids=label)
def test_turns(case: Json, target: Dialect) -> None:
    client, want, got = Dialect(case["dialect"]), case["digest"], digest(case, target)
    turns = [turn for turn in got["turns"] if not str(turn[-1]).startswith("<system>")]
    assert turns == _turns(want["turns"], client, target)


@pytest.mark.parametrize(("case", "target"), CARRIED, ids=label)
def test_system_text_keeps_its_words(case: Json, target: Dialect) -> None:
    got = digest(case, target)
    wrapped = [turn[-1] for turn in got["turns"] if str(turn[-1]).startswith("<system>")]
    said = [*got["system"], *(text.removeprefix("<system>\n").removesuffix("\n</system>") for text in wrapped)]
    want = [text for text in case["digest"]["system"] if not text.startswith("x-anthropic-billing-header:")]
    assert said == want


@pytest.mark.parametrize(("case", "target"), CARRIED, ids=label)
def test_tools_and_choice(case: Json, target: Dialect) -> None:
    client, want, got = Dialect(case["dialect"]), case["digest"], digest(case, target)
    assert got["tools"] == _tools(want["tools"], client, target)
    named = str(want["tool_choice"]).startswith("fn:")
    assert got["tool_choice"] == ("required" if named and target is G else want["tool_choice"])


@pytest.mark.parametrize(("case", "target"), CARRIED, ids=label)
def test_settings(case: Json, target: Dialect) -> None:
    want, got = case["digest"], digest(case, target)
    thinks = target is M and want["effort"] is not None
    for name in ("schema", "temperature", "top_p"):
        assert got[name] == (None if thinks and name != "schema" else want[name]), name
    assert got["max_tokens"] == (want["max_tokens"] or (_default(want) if target is M else None))
    stops = [text for text in want["stop"] if text.strip() or target is not M]
    assert got["stop"] == ([] if target is R else stops)
    parallel = False if want["parallel"] is False and target is not G else None
    assert got["parallel"] in (parallel, True if want["parallel"] and target in (R, C) else parallel)
    assert got["stream"] == (want["stream"] and target is not G)


def _default(want: Json) -> int:
    return {"low": 12288, "high": 24576}.get(want["effort"], 8192)


@pytest.mark.parametrize(("case", "target"), CARRIED, ids=label)
def test_effort(case: Json, target: Dialect) -> None:
    effort = case["digest"]["effort"]
    want = GEMINI_BUDGETS.get(effort) if target is G else {"budget:2048": "low"}.get(effort, effort)
    assert digest(case, target)["effort"] == want


@pytest.mark.parametrize(("case", "target"), CARRIED, ids=label)
def test_the_target_is_named_and_rendering_is_deterministic(case: Json, target: Dialect) -> None:
    document, client = json.loads(read(case)), Dialect(case["dialect"])
    one, two = translate(document, client, target), translate(document, client, target)
    assert one.body == two.body
    assert json.loads(one.body).get("model") == (None if target is G else profile(target).model)
    assert json.loads(read(case)) == document, "the client's document is left as it was"


DROPPED = {
    ("requests/chat.toolchoice.json", R): ("logit_bias", "metadata", "presence_penalty", "seed", "stop"),
    ("requests/chat.toolchoice.json", M): ("logit_bias", "metadata", "presence_penalty", "seed", "stop"),
    ("requests/messages.toolchoice.json", R): ("stop_sequences", "top_k"),
    ("requests/messages.toolchoice.json", C): ("top_k",),
    ("requests/messages.toolchoice.json", G): ("tool_choice.disable_parallel_tool_use",),
    ("requests/responses.tools.json", C): (),
    ("requests/responses.tools.json", M): ("prompt_cache_key", "text.verbosity"),
    ("requests/responses.codex.json", M): ("client_metadata", "prompt_cache_key", "text.verbosity", "tools.web_search"),
    ("requests/messages.claude-code.json", R): ("context_management", "tools.web_search_20250305"),
}


@pytest.mark.parametrize(("file", "target"), DROPPED, ids=label)
def test_dropped_fields_are_named_once_in_the_clients_words(file: str, target: Dialect) -> None:
    case = next(case for case in CASES if case["file"] == file)
    translated = translate(json.loads(read(case)), Dialect(case["dialect"]), target)
    assert translated.dropped == DROPPED[file, target]
