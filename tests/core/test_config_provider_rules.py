"""Rules over more than one provider field: accepted and refused, with path and reason."""

from typing import Any

import pytest

from configs import combo, document, problems, provider, with_provider


@pytest.mark.parametrize(
    ("name", "word"),
    [
        ("alpha", None),
        ("a.b-c_d", None),
        ("a" * 64, None),
        ("a" * 65, "1 to 64"),
        ("a-", "end with"),
        ("a b", "1 to 64"),
        ("", "1 to 64"),
        ("a/b", "1 to 64"),
        ("policy", "reserved"),
        ("__proto__", "reserved"),
        ("constructor", "reserved"),
        ("prototype", "reserved"),
    ],
)
def test_names(name: str, word: str | None) -> None:
    found = problems({"providers": {name: provider()}})
    assert (found == {}) if word is None else word in next(iter(found.values()))


def test_combo_is_a_provider_name_only_without_combos() -> None:
    row = {"combo": provider()}
    assert problems({"providers": row}) == {}
    taken = {"providers.combo": "name is taken by the combo namespace while combos are configured"}
    assert problems({"providers": row, "combos": {"main": combo()}}) == taken


@pytest.mark.parametrize(
    ("fields", "key", "word"),
    [
        ({"baseUrl": "http://127.0.0.1/v1"}, "baseUrl", "allowPrivateNetwork"),
        ({"baseUrl": "http://169.254.169.254/", "allowPrivateNetwork": True}, "baseUrl", "never allowed"),
        ({"baseUrl": "https://user:pw@x.example"}, "baseUrl", "user name"),
        ({"proxy": "socks5://x.example:1"}, "proxy", "http://host:port"),
        ({"headers": {"a b": "x"}}, 'headers["a b"]', "not a header name"),
        ({"headers": {"": "x"}}, 'headers[""]', "not a header name"),
        ({"headers": {"Host": "x"}}, "headers.Host", "transport"),
        ({"headers": {"Content-Length": "1"}}, "headers.Content-Length", "transport"),
        ({"headers": {"X-A": "a\r\nb"}}, "headers.X-A", "line breaks"),
        ({"headers": {"X-A": "€"}}, "headers.X-A", "Latin-1"),
        ({"headers": {"X-A": " a"}}, "headers.X-A", "blanks"),
        ({"headers": {"X-A": "a" * 8193}}, "headers.X-A", "8192"),
        ({"headers": {"X-A": "1", "x-a": "2"}}, "headers.x-a", "twice"),
        ({"apiKey": "$"}, "apiKey", "reference"),
        ({"apiKey": "${A}${B}"}, "apiKey", "reference"),
        ({"apiKeyPool": [{"id": "a", "key": "$!"}]}, "apiKeyPool[0].key", "reference"),
        ({"apiKeyPool": [{"id": "a", "key": "k"}, {"id": "a", "key": "l"}]}, "apiKeyPool[1].id", "unique"),
        ({"authMode": "forward"}, "authMode", "openai-responses"),
        ({"authMode": "forward", "adapter": "anthropic"}, "authMode", "openai-responses"),
        ({"authMode": "forward", "adapter": "azure-openai"}, "authMode", "openai-responses"),
        ({"apiKeyTransport": "bearer"}, "apiKeyTransport", "anthropic"),
        ({"apiKeyTransport": "bearer", "adapter": "anthropic", "authMode": "oauth"}, "apiKeyTransport", "anthropic"),
        ({"alias": "a/b"}, "alias", "1 to 64"),
        ({"alias": "-a"}, "alias", "1 to 64"),
        ({"alias": "Combo"}, "alias", "combo namespace"),
        ({"modelAliases": {"m": "combo/x"}}, "modelAliases.m", "combo namespace"),
    ],
)
def test_refused(fields: dict[str, Any], key: str, word: str) -> None:
    found = problems(with_provider(**fields))
    assert list(found) == [f"providers.alpha.{key}"]
    assert word in next(iter(found.values()))


@pytest.mark.parametrize(
    "header",
    [
        "authorization",
        "Cookie",
        "set-cookie",
        "Proxy-Authorization",
        "X-API-Key",
        "x-goog-api-key",
        "x-amz-security-token",
    ],
)
def test_credential_headers_are_refused(header: str) -> None:
    found = problems(with_provider(headers={header: "x"}))
    assert found == {f"providers.alpha.headers.{header}": "carries a credential: use apiKey"}


@pytest.mark.parametrize(("count", "valid"), [(64, True), (65, False)])
def test_header_count(count: int, valid: bool) -> None:
    assert (problems(with_provider(headers={f"X-{n}": "v" for n in range(count)})) == {}) is valid


@pytest.mark.parametrize(
    "fields",
    [
        {"baseUrl": "http://127.0.0.1:11434/v1", "allowPrivateNetwork": True},
        {"headers": {"X-A": "a" * 8192, "X-B": "caf\xe9\tx", "X-C": ""}},
        {"adapter": "anthropic", "apiKeyTransport": "bearer"},
        {"apiKey": "sk$embedded"},
        {"alias": "Al.pha_1-"},
    ],
)
def test_accepted(fields: dict[str, Any]) -> None:
    assert problems(with_provider(**fields)) == {}


@pytest.mark.parametrize(
    ("url", "private", "valid"),
    [
        ("https://api.typesafe.ai/v1/systemone", False, True),
        ("https://any.example/elsewhere", False, True),
        ("http://api.typesafe.ai/v1/systemone", True, False),
        ("http://127.0.0.1:11434/v1/systemone", True, True),
        ("http://127.0.0.1:11434/v1/systemone", False, False),
    ],
)
def test_decision_services_use_https(url: str, private: bool, valid: bool) -> None:
    row = provider(adapter="jev-decision", baseUrl=url, allowPrivateNetwork=private)
    found = problems({"providers": {"row": row}})
    assert list(found) == ([] if valid else ["providers.row.baseUrl"])


def test_admission_keys_follow_the_reference_grammar() -> None:
    found = problems(document(apiKeys=["${OK}", "$", {"key": "$?"}, {"key": "fine", "id": "x", "name": ""}]))
    assert list(found) == ["apiKeys[1]", "apiKeys[2]"]


@pytest.mark.parametrize(
    ("fields", "key", "word"),
    [
        ({"authMode": "oauth", "accountPool": [{"id": "a", "tokenFile": "~/.codex/auth.json"}]}, None, ""),
        (
            {"authMode": "oauth", "accountPool": [{"id": "a", "tokenFile": "/t/a"}, {"id": "b", "tokenFile": "/t/b"}]},
            None,
            "",
        ),
        ({"accountPool": [{"id": "a", "tokenFile": "/t/a"}]}, "accountPool", "oauth"),
        (
            {"authMode": "oauth", "accountPool": [{"id": "a", "tokenFile": "a"}]},
            "accountPool[0].tokenFile",
            "whole path",
        ),
        (
            {"authMode": "oauth", "accountPool": [{"id": "a", "tokenFile": "/t/a"}] * 2},
            "accountPool[1].id",
            "unique",
        ),
        (
            {"authMode": "oauth", "accountPool": [{"id": str(n), "tokenFile": "/t"} for n in range(65)]},
            "accountPool",
            "at most 64",
        ),
        ({"authMode": "oauth", "accountPool": [{"id": "a"}]}, "accountPool[0].tokenFile", "required"),
    ],
)
def test_account_pools(fields: dict[str, Any], key: str | None, word: str) -> None:
    found = problems(with_provider(**fields))
    assert (found == {}) if key is None else word in found[f"providers.alpha.{key}"]
