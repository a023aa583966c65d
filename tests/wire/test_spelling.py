"""Gemini's two spellings: the settings that targets change are found whichever one a client uses."""

import json
from typing import Any

import pytest

from combos.wire.request import request_facts
from combos.wire.spelling import camel, with_usual_config

PATH = "/v1beta/models/combo/main:generateContent"


def test_members_get_the_usual_spelling_and_what_they_hold_stays() -> None:
    assert camel({"inline_data": {"mime_type": "a"}, "text": "b_c"}) == {
        "inlineData": {"mime_type": "a"},
        "text": "b_c",
    }
    assert camel({"a_b": 1, "aB": 2}) == {"aB": 2}
    assert camel({"aB": 1}) == {"aB": 1}
    assert camel([1]) == camel(None) == {}


@pytest.mark.parametrize(
    ("written", "config"),
    [
        ('"generation_config":{"max_output_tokens":5}', {"maxOutputTokens": 5}),
        ('"generationConfig":{"top_p":0.5}', {"topP": 0.5}),
        (
            '"generation_config":{"thinking_config":{"thinking_level":"LOW"}}',
            {"thinkingConfig": {"thinkingLevel": "LOW"}},
        ),
        (
            '"generationConfig":{"thinkingConfig":{"thinking_level":"LOW"}}',
            {"thinkingConfig": {"thinkingLevel": "LOW"}},
        ),
    ],
)
def test_settings_of_a_request_are_found(written: str, config: dict[str, Any]) -> None:
    body = b'{"contents" : [ {"parts":[{"inline_data":1.0}]} ], %s, "z_z":1}' % written.encode()
    facts = request_facts(PATH, body)
    assert facts.document["generationConfig"] == config
    assert "generation_config" not in facts.document
    assert json.loads(facts.body) == facts.document
    assert facts.body.startswith(b'{"contents" : [ {"parts":[{"inline_data":1.0}]} ]'), "all else stays as written"
    assert facts.document["z_z"] == 1


@pytest.mark.parametrize(
    "body",
    [
        b'{"contents":[]}',
        b'{"generationConfig":{}}',
        b'{"generationConfig": {"topP": 0.50, "thinkingConfig": {"thinkingLevel": "LOW"}}}',
        b'{"generationConfig":7}',
        b'{"generation_config":7}',
    ],
)
def test_the_usual_spelling_keeps_its_bytes(body: bytes) -> None:
    assert with_usual_config(body, json.loads(body)) is body
