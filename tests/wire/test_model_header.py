"""The model header inside the events of a stream."""

import json

import pytest

from combos.wire.model_header import with_requested_model


@pytest.mark.parametrize("name", ["openai-model", "OpenAI-Model"])
@pytest.mark.parametrize("model", ["combo/main", 'a "quoted" \\ name', "\\1"])
def test_it_names_what_was_asked_for(name: str, model: str) -> None:
    event = {"type": "response.created", "headers": {"a": 1, name: 'gpt "x"'}, "response": {"model": "gpt"}}
    for text in (json.dumps(event), json.dumps(event, separators=(",", ":"))):
        got = json.loads(with_requested_model(text.encode(), model))
        assert got == {**event, "headers": {"a": 1, name: model}}


@pytest.mark.parametrize(
    "document",
    [
        {"delta": 'the header "openai-model": "gpt" is sent'},
        {"arguments": json.dumps({"openai-model": "gpt"})},
        {"headers": {"x-openai-model": "gpt", "openai-model": 5}},
        {"openai_model": "gpt"},
    ],
)
def test_all_else_stays(document: object) -> None:
    data = b"data: " + json.dumps(document).encode() + b"\n\n"
    assert with_requested_model(data, "combo/main") == data
