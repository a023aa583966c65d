"""Credential headers: the right key in the right header for the right provider, and reasons when there is none."""

import sys
import types

import pytest

from combos.core.facts import Headers
from combos.upstream.credentials import (
    KEYCHAIN_SERVICE,
    SystemKeychain,
    auth_headers,
    has_caller_credentials,
    usable,
)
from exchanges import provider

URL = "https://vendor.example/v1"
CALLER: Headers = (
    (b"Authorization", b"Bearer caller"),
    (b"ChatGPT-Account-Id", b"acct"),
    (b"X-Api-Key", b"caller-key"),
    (b"Cookie", b"session=1"),
    (b"Proxy-Authorization", b"Basic cHJveHk="),
    (b"User-Agent", b"codex"),
)


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"adapter": "openai-responses"}, (b"Authorization", b"Bearer k")),
        ({"adapter": "openai-chat"}, (b"Authorization", b"Bearer k")),
        ({"adapter": "jev-decision"}, (b"Authorization", b"Bearer k")),
        ({"adapter": "ollama-native"}, (b"Authorization", b"Bearer k")),
        ({"adapter": "anthropic"}, (b"x-api-key", b"k")),
        ({"adapter": "anthropic", "apiKeyTransport": "bearer"}, (b"Authorization", b"Bearer k")),
        ({"adapter": "anthropic", "authMode": "oauth"}, (b"Authorization", b"Bearer k")),
        ({"adapter": "google"}, (b"x-goog-api-key", b"k")),
        ({"adapter": "azure-openai"}, (b"api-key", b"k")),
    ],
)
def test_the_header_of_each_adapter(fields: dict[str, str], expected: tuple[bytes, bytes]) -> None:
    row = provider(URL, apiKey="k", **fields)
    assert auth_headers(row, {}, CALLER) == (expected,), "the caller's own credentials never mix in"
    assert usable(row, {}, forwardable=False) is None


@pytest.mark.parametrize(
    ("key", "environ", "sent"),
    [
        ("literal", {}, b"literal"),
        ("${NAME}", {"NAME": "from-env"}, b"from-env"),
        ("$NAME", {"NAME": "from-env"}, b"from-env"),
        ("${NAME}", {}, None),
        ("${NAME}", {"NAME": "", "MY_ROW_API_KEY": "derived"}, None),
        (None, {"MY_ROW_API_KEY": "derived"}, b"derived"),
        (None, {}, None),
        ("keychain:my-row", {"MY_ROW_API_KEY": "derived"}, None),
    ],
)
def test_where_keys_come_from(key: str | None, environ: dict[str, str], sent: bytes | None) -> None:
    row = provider(URL, name="my-row", apiKey=key)
    expected = () if sent is None else ((b"Authorization", b"Bearer " + sent),)
    assert auth_headers(row, environ, None) == expected
    assert usable(row, environ, forwardable=True) == ("no_credentials" if sent is None else None)


def test_the_first_usable_key_of_a_pool() -> None:
    pool = [{"id": "a", "key": "${UNSET}"}, {"id": "b", "key": "second"}, {"id": "c", "key": "third"}]
    row = provider(URL, name="my-row", apiKeyPool=pool)
    assert auth_headers(row, {}, None) == ((b"Authorization", b"Bearer second"),)
    row = provider(URL, name="my-row", apiKeyPool=pool, apiKey="own")
    assert auth_headers(row, {}, None) == ((b"Authorization", b"Bearer own"),)
    row = provider(URL, name="my-row", apiKeyPool=pool[:1])
    assert auth_headers(row, {"MY_ROW_API_KEY": "derived"}, None) == ((b"Authorization", b"Bearer derived"),)


def test_forwarding_takes_what_identifies_the_caller_and_nothing_else() -> None:
    row = provider(URL, adapter="openai-responses", authMode="forward", apiKey="unused")
    assert auth_headers(row, {}, CALLER) == CALLER[:4]
    assert auth_headers(row, {}, None) == ()
    assert usable(row, {}, forwardable=True) is None
    assert usable(row, {}, forwardable=False) == "no_credentials"


def test_local_providers_get_nothing() -> None:
    row = provider(URL, authMode="local", apiKey="unused")
    assert auth_headers(row, {"ACME_API_KEY": "x"}, CALLER) == ()
    assert usable(row, {}, forwardable=False) is None


def test_whether_there_is_something_to_forward() -> None:
    assert has_caller_credentials(CALLER)
    assert not has_caller_credentials(CALLER[4:])


def fake_keyring(monkeypatch: pytest.MonkeyPatch, entries: dict[str, str]) -> list[str]:
    """A keyring package with these entries; `broken` fails. Returns the names it is asked for."""
    asked: list[str] = []

    def get_password(service: str, name: str) -> str | None:
        assert service == KEYCHAIN_SERVICE
        asked.append(name)
        if name == "broken":
            raise RuntimeError("a text with a secret")
        return entries.get(name)

    module = types.ModuleType("keyring")
    module.get_password = get_password  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "keyring", module)
    return asked


async def test_keychain_entries_are_read_ahead(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = fake_keyring(monkeypatch, {"my-row": "from-keychain", "my-row/b": "pooled"})
    warnings: list[str] = []
    keychain = SystemKeychain(warnings.append)
    row = provider(URL, name="my-row", apiKey="keychain:my-row")
    assert auth_headers(row, {}, None, keychain) == ()
    await keychain.load(["my-row", "my-row/b", "broken", "absent", "my-row"])
    assert sorted(asked) == ["absent", "broken", "my-row", "my-row/b"]
    assert auth_headers(row, {}, None, keychain) == ((b"Authorization", b"Bearer from-keychain"),)
    assert usable(row, {}, False, keychain) is None
    pooled = provider(URL, name="my-row", apiKeyPool=[{"id": "b", "key": "keychain:my-row/b"}])
    assert auth_headers(pooled, {}, None, keychain) == ((b"Authorization", b"Bearer pooled"),)
    assert warnings == [
        "keychain:absent cannot be read: there is no such entry",
        "keychain:broken cannot be read: the keychain failed with RuntimeError",
    ]
    await keychain.load(["absent"])
    assert len(warnings) == 2, "warned about once"
    assert auth_headers(row, {}, None, keychain) == ()


async def test_without_the_package_there_is_no_credential(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "keyring", None)
    warnings: list[str] = []
    keychain = SystemKeychain(warnings.append)
    await keychain.load(["my-row"])
    assert usable(provider(URL, name="my-row", apiKey="keychain:my-row"), {}, False, keychain) == "no_credentials"
    assert warnings == ["keychain:my-row cannot be read: the package keyring is not installed"]
