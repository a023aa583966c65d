"""Every field of a provider: default, accepted values at the bounds, refused values, hidden secrets."""

from typing import Any

import pytest

from combos.core.config_provider import Adapter, AuthMode, HttpVersion, KeyTransport
from configs import config, document, problems, provider, with_provider


def made(**fields: Any) -> Any:
    return config(with_provider(**fields)).providers["alpha"]


@pytest.mark.parametrize(
    ("attribute", "default"),
    [
        ("auth_mode", AuthMode.KEY),
        ("api_key", None),
        ("api_key_pool", ()),
        ("api_key_pool_strategy", None),
        ("api_key_transport", KeyTransport.X_API_KEY),
        ("headers", {}),
        ("disabled", False),
        ("allow_private_network", False),
        ("connect_timeout_ms", 10_000),
        ("head_timeout_ms", 200_000),
        ("idle_timeout_ms", 300_000),
        ("live_models", True),
        ("models", ()),
        ("upstream_http_version", HttpVersion.AUTO),
        ("reasoning_efforts", None),
        ("proxy", None),
    ],
)
def test_defaults(attribute: str, default: object) -> None:
    assert getattr(made(), attribute) == default


@pytest.mark.parametrize("word", [member.value for member in Adapter])
def test_adapters(word: str) -> None:
    assert config({"providers": {"alpha": provider(adapter=word)}}).providers["alpha"].adapter.value == word


@pytest.mark.parametrize(
    ("key", "written", "stored"),
    [
        ("adapter", "azure", Adapter.AZURE_OPENAI),
        ("upstreamHttpVersion", "h1", HttpVersion.HTTP1),
        ("upstreamHttpVersion", "h2", HttpVersion.HTTP2),
        ("upstreamHttpVersion", "http2", HttpVersion.HTTP2),
    ],
)
def test_synonyms(key: str, written: str, stored: object) -> None:
    row = made(**{key: written})
    assert stored in (row.adapter, row.upstream_http_version)


GOOD: list[dict[str, Any]] = [
    {"authMode": "oauth"},
    {"authMode": "local"},
    {"authMode": "forward", "adapter": "openai-responses"},
    {"apiKey": "${NAME}"},
    {"apiKey": "x" * 8192},
    {"apiKeyPool": [{"id": "a", "key": "k"}, {"id": "b", "key": "$K", "label": "", "addedAt": 1}]},
    {"apiKeyPool": [{"id": "a", "key": "k", "addedAt": "2026-01-01"}]},
    {"apiKeyPoolStrategy": "round-robin"},
    {"apiKeyPoolStrategy": "fill-first"},
    {"apiKeyPoolStrategy": "quota"},
    {"apiKeyPoolStrategy": None},
    {"headers": {"X-Title": "Combos", "HTTP-Referer": "https://example.org"}},
    {"models": ["a", "b"], "defaultModel": "a", "liveModels": False, "selectedModels": [], "retainModels": ["z"]},
    {"disabled": True},
    {"allowPrivateNetwork": True},
    {"connectTimeoutMs": 1, "headTimeoutMs": 3_600_000, "idleTimeoutMs": 1},
    {"proxy": "http://user:pw@proxy.example:3128", "noProxy": "localhost"},
    {"noProxy": ["localhost", ".internal"]},
    {"requestPacing": {}},
    {"requestPacing": {"enabled": True, "requestsPerMinute": 60, "models": {"m": {"minIntervalMs": 0}}}},
    {"contextWindow": 1, "defaultMaxOutputTokens": 100_000_000},
    {"modelContextWindows": {"gpt-5.5": 272_000}, "modelMaxInputTokens": {"m": 1}, "modelMaxOutputTokens": {"m": 1}},
    {"modelInputModalities": {"m": ["text", "image", "audio", "video", "file"]}, "noVisionModels": ["n"]},
    {"reasoningEfforts": [], "modelReasoningEfforts": {"m": ["none", "enabled"]}, "noReasoningModels": ["m"]},
    {"modelDefaultReasoningEfforts": {"m": "low"}, "pinnedReasoningEffort": "high"},
    {"reasoningEffortMap": {"max": "xhigh"}, "modelReasoningEffortMap": {"m": {"low": "__omit__"}}},
    {"alias": "al", "modelAliases": {"m": "short"}, "modelDisplayNames": {"m": "Label"}},
    {"modelCosts": {"m": {"input": 0, "output": 1.5, "cacheRead": 0.1, "cacheWrite": 1_000_000}}},
    {"modelAdapters": {"m": "openai-responses"}},
    {"unknownField": {"anything": [1, None]}},
]


@pytest.mark.parametrize("fields", GOOD)
def test_accepted(fields: dict[str, Any]) -> None:
    assert problems(with_provider(**fields)) == {}


BAD: list[tuple[dict[str, Any], str]] = [
    ({"adapter": "nope"}, "adapter"),
    ({"adapter": None}, "adapter"),
    ({"baseUrl": 1}, "baseUrl"),
    ({"baseUrl": "https://x.example/" + "a" * 2048}, "baseUrl"),
    ({"authMode": "none"}, "authMode"),
    ({"authMode": None}, "authMode"),
    ({"apiKey": ""}, "apiKey"),
    ({"apiKey": 5}, "apiKey"),
    ({"apiKey": "a\nb"}, "apiKey"),
    ({"apiKey": "x" * 8193}, "apiKey"),
    ({"apiKeyPool": {"id": "a"}}, "apiKeyPool"),
    ({"apiKeyPool": [{"id": "a"}]}, "apiKeyPool[0].key"),
    ({"apiKeyPool": ["k"]}, "apiKeyPool[0]"),
    ({"apiKeyPool": [{"id": "a", "key": "k", "addedAt": -1}]}, "apiKeyPool[0].addedAt"),
    ({"apiKeyPoolStrategy": "random"}, "apiKeyPoolStrategy"),
    ({"apiKeyTransport": "header", "adapter": "anthropic"}, "apiKeyTransport"),
    ({"headers": []}, "headers"),
    ({"headers": {"X-A": 1}}, "headers.X-A"),
    ({"models": "m"}, "models"),
    ({"models": [""]}, "models[0]"),
    ({"models": [1]}, "models[0]"),
    ({"defaultModel": ""}, "defaultModel"),
    ({"liveModels": "yes"}, "liveModels"),
    ({"disabled": 0}, "disabled"),
    ({"allowPrivateNetwork": "true"}, "allowPrivateNetwork"),
    ({"connectTimeoutMs": 0}, "connectTimeoutMs"),
    ({"headTimeoutMs": 3_600_001}, "headTimeoutMs"),
    ({"idleTimeoutMs": 1.5}, "idleTimeoutMs"),
    ({"proxy": 1}, "proxy"),
    ({"noProxy": [1]}, "noProxy"),
    ({"noProxy": {}}, "noProxy"),
    ({"requestPacing": {"requestsPerMinute": 0}}, "requestPacing.requestsPerMinute"),
    ({"requestPacing": {"models": {"m": 1}}}, "requestPacing.models.m"),
    ({"contextWindow": 0}, "contextWindow"),
    ({"modelContextWindows": {"gpt-5.5": 0}}, 'modelContextWindows["gpt-5.5"]'),
    ({"modelInputModalities": {"m": ["smell"]}}, "modelInputModalities.m[0]"),
    ({"reasoningEfforts": "low"}, "reasoningEfforts"),
    ({"modelReasoningEfforts": {"m": None}}, "modelReasoningEfforts.m"),
    ({"modelAliases": {"m": ""}}, "modelAliases.m"),
    ({"modelAliases": {"": "x"}}, 'modelAliases[""]'),
    ({"modelCosts": {"m": {"input": -1}}}, "modelCosts.m.input"),
    ({"modelCosts": {"m": {"input": "1"}}}, "modelCosts.m.input"),
    ({"modelCosts": {"m": {"input": True}}}, "modelCosts.m.input"),
    ({"modelAdapters": {"m": "nope"}}, "modelAdapters.m"),
]


@pytest.mark.parametrize(("fields", "path"), BAD)
def test_refused(fields: dict[str, Any], path: str) -> None:
    separator = "" if path.startswith("[") else "."
    assert list(problems(with_provider(**fields))) == [f"providers.alpha{separator}{path}"]


@pytest.mark.parametrize("missing", ["adapter", "baseUrl"])
def test_required(missing: str) -> None:
    row = {key: value for key, value in provider().items() if key != missing}
    assert problems(document(providers={"alpha": row})) == {f"providers.alpha.{missing}": "is required"}


@pytest.mark.parametrize("value", [None, [], "x", 1])
def test_a_provider_is_an_object(value: object) -> None:
    assert list(problems(document(providers={"alpha": value}))) == ["providers.alpha"]


def test_repr_hides_secrets() -> None:
    row = made(
        apiKey="sk-1zq",
        apiKeyPool=[{"id": "a", "key": "sk-2zq"}],
        headers={"X-Token": "sk-3zq"},
        proxy="http://u:sk-4zq@proxy.example",
        apiKye="sk-5zq",
    )
    shown = f"{row!r} {row} {row.api_key}"
    assert "zq" not in shown
    assert row.api_key.get_secret_value() == "sk-1zq"
