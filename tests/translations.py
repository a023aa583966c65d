"""Targets, contexts and corpus cases for the tests of translation."""

import json
from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

from combos.core.facts import Dialect
from combos.wire.translate import (
    Circumstances,
    Context,
    StreamTranslator,
    TargetProfile,
    TranslatedRequest,
    profile_for,
    translate_request,
)
from combos.wire.translate.ir import Tool
from combos.wire.translate.toolset import build_catalog

type Json = dict[str, Any]

R, C, M, G = Dialect.RESPONSES, Dialect.CHAT, Dialect.MESSAGES, Dialect.GEMINI
DIALECTS = (R, C, M, G)
PAIRS = [(client, target) for client in DIALECTS for target in DIALECTS if client is not target]
CORPUS = Path(__file__).parent / "data" / "corpus"
CASES: list[Json] = json.loads((CORPUS / "manifest.json").read_text())["cases"]
GIVEN = Circumstances("seed", 1773500000)

_TARGETS = {
    R: ("openai-responses", "openai/alpha"),
    C: ("openai-chat", "compat/beta"),
    M: ("anthropic", "anthropic/claude-opus-4-8"),
    G: ("google", "google/gemini-2.5-pro"),
}


def profile(target: Dialect, **flags: Any) -> TargetProfile:
    """A plain target of a dialect; sampling is on everywhere so that it can be compared."""
    adapter, key = _TARGETS[target]
    return profile_for(adapter, key, {"sampling": True, **flags})


def context(client: Dialect, target: Dialect, *tools: Tool, **changes: Any) -> Context:
    """A context as `translate_request` would make it."""
    known = profile(target)
    plain = Context(client, target, known.model, known.key, "seed", 1773500000, build_catalog(tools), True)
    return replace(plain, **changes)


def ask(document: Json, client: Dialect, target: Dialect, given: Circumstances = GIVEN, **flags: Any) -> Json:
    """The body a target gets."""
    body: Json = json.loads(translate(document, client, target, given, **flags).body)
    return body


def translate(
    document: Json, client: Dialect, target: Dialect, given: Circumstances = GIVEN, **flags: Any
) -> TranslatedRequest:
    return translate_request(document, client, target, profile(target, **flags), given)


def read(case: Json) -> bytes:
    return (CORPUS / case["file"]).read_bytes()


def corpus(kind: str) -> Iterator[tuple[Json, Dialect]]:
    """Every case of a kind with every other dialect."""
    for case in CASES:
        if case["kind"] == kind:
            yield from ((case, other) for other in DIALECTS if other.value != case["dialect"])


def label(value: object) -> str:
    return value["file"] if isinstance(value, dict) else str(value)


def stream(
    raw: bytes, client: Dialect, target: Dialect, known: Context | None = None, cuts: list[int] | None = None
) -> bytes:
    """A whole stream through the translator, cut at the given places, ended by EOF."""
    translator = StreamTranslator(client, target, known or context(client, target))
    edges = [0, *sorted(cuts or []), len(raw)]
    out = b"".join(translator.feed(raw[a:b]) for a, b in pairwise(edges))
    return out + translator.finish()
