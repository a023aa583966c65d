"""Rules of the top level."""

from typing import Any

import pytest

from configs import document, problems, provider


@pytest.mark.parametrize(
    ("fields", "path", "word"),
    [
        ({"defaultProvider": "alpha"}, None, ""),
        ({"defaultProvider": None}, None, ""),
        ({"defaultProvider": "alpah"}, "defaultProvider", 'did you mean "alpha"?'),
        ({"defaultProvider": "nowhere"}, "defaultProvider", "not a configured provider"),
        ({"codexAccountNamespaces": {"work": "@main", "home": "acct_1"}}, None, ""),
        ({"codexAccountNamespaces": {"Alpha": "@main"}}, "codexAccountNamespaces.Alpha", "provider"),
        ({"codexAccountNamespaces": {"Combo": "@main"}}, "codexAccountNamespaces.Combo", "reserved"),
        ({"codexAccountNamespaces": {"OPENAI": "@main"}}, "codexAccountNamespaces.OPENAI", "reserved"),
        ({"codexAccountNamespaces": {"policy": "@main"}}, "codexAccountNamespaces.policy", "reserved"),
        ({"codexAccountNamespaces": {"a/b": "@main"}}, 'codexAccountNamespaces["a/b"]', "1 to 64"),
        ({"codexAccountNamespaces": {"work": ""}}, "codexAccountNamespaces.work", "1 to 8192"),
        ({"corsAllowOrigins": ["https://x.example", "http://localhost:5173", "http://[::1]:80"]}, None, ""),
        ({"corsAllowOrigins": ["*"]}, "corsAllowOrigins[0]", "origin"),
        ({"corsAllowOrigins": ["https://x.example/"]}, "corsAllowOrigins[0]", "origin"),
        ({"corsAllowOrigins": ["https://u@x.example"]}, "corsAllowOrigins[0]", "origin"),
        ({"corsAllowOrigins": ["https://x.example:"]}, "corsAllowOrigins[0]", "origin"),
        ({"corsAllowOrigins": ["https://x.example:0"]}, "corsAllowOrigins[0]", "origin"),
        ({"corsAllowOrigins": ["https://x.example:99999"]}, "corsAllowOrigins[0]", "origin"),
        ({"corsAllowOrigins": ["https://"]}, "corsAllowOrigins[0]", "origin"),
        ({"corsAllowOrigins": ["null"]}, "corsAllowOrigins[0]", "origin"),
        ({"selectorExemptHosts": ["openrouter.ai", "LOCALHOST", "10.0.0.1", "::1", "a"]}, None, ""),
        ({"selectorExemptHosts": ["https://openrouter.ai"]}, "selectorExemptHosts[0]", "host"),
        ({"selectorExemptHosts": ["openrouter.ai:443"]}, "selectorExemptHosts[0]", "host"),
        ({"selectorExemptHosts": ["openrouter.ai/api"]}, "selectorExemptHosts[0]", "host"),
        ({"selectorExemptHosts": ["a", "*.openrouter.ai"]}, "selectorExemptHosts[1]", "host"),
        ({"selectorExemptHosts": [""]}, "selectorExemptHosts[0]", "1 to"),
        ({"selectorExemptHosts": "openrouter.ai"}, "selectorExemptHosts", "array"),
        ({"port": 0}, None, ""),
        ({"port": 65535}, None, ""),
        ({"port": 65536}, "port", "65535"),
        ({"port": "1"}, "port", "65535"),
        ({"hostname": ""}, "hostname", "1 to"),
        ({"disabledModels": ["combo/main", "alpha/m1"]}, None, ""),
        ({"disabledModels": [1]}, "disabledModels[0]", "string"),
        ({"disabledModels": {}}, "disabledModels", "array"),
        ({"blockedModelRedirects": {"a": "b"}}, None, ""),
        ({"blockedModelRedirects": {"a": 1}}, "blockedModelRedirects.a", "string"),
        ({"fastRows": "no"}, "fastRows", "true or false"),
        ({"cursorEffortRows": True}, None, ""),
        ({"usageLedgerMaxBytes": 0}, "usageLedgerMaxBytes", "from 1"),
        ({"maxInboundBodyBytes": 1}, None, ""),
        ({"$schema": "./combos.schema.json"}, None, ""),
        ({"$schema": 1}, "$schema", "string"),
        ({"providers": None}, "providers", "object"),
        ({"combos": []}, "combos", "object"),
        ({"apiKeys": {}}, "apiKeys", "array"),
        ({"apiKeys": [""]}, "apiKeys[0].key", "1 to"),
    ],
)
def test_top_level(fields: dict[str, Any], path: str | None, word: str) -> None:
    found = problems(document(**fields))
    assert list(found) == ([] if path is None else [path])
    assert word in "".join(found.values())


def test_the_default_provider_answers_model_requests() -> None:
    row = provider(adapter="jev-decision", baseUrl="https://x.example/systemone")
    found = problems({"providers": {"row": row}, "defaultProvider": "row"})
    assert found == {"defaultProvider": "is a decision service and answers no model request"}
