"""Keys as written and what they resolve to."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import SecretStr

from combos.core.secrets import (
    MissingSecret,
    Secret,
    is_reference,
    pool_secrets,
    provider_secret,
    resolve_secret,
    secret_fault,
    variable_of,
)
from configs import config, with_provider

ENVIRON = {"NAME": "value", "EMPTY": "", "ALPHA_API_KEY": "derived"}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (None, MissingSecret("")),
        ("", MissingSecret("")),
        ("literal", Secret("literal")),
        ("mid$NAME", Secret("mid$NAME")),
        ("${NAME}", Secret("value", "NAME")),
        ("$NAME", Secret("value", "NAME")),
        ("${UNSET}", MissingSecret("UNSET")),
        ("$UNSET", MissingSecret("UNSET")),
        ("${EMPTY}", MissingSecret("EMPTY")),
        ("${NAME", MissingSecret("")),
        ("keychain:alpha", MissingSecret("keychain:alpha")),
        ("keychain:alpha/p1", MissingSecret("keychain:alpha/p1")),
    ],
)
def test_resolve(text: str | None, expected: Secret | MissingSecret) -> None:
    assert resolve_secret(text, ENVIRON) == expected


def test_resolve_takes_the_models_type() -> None:
    assert resolve_secret(SecretStr("${NAME}"), ENVIRON) == Secret("value", "NAME")


def test_keychain_is_asked_by_account() -> None:
    accounts = {"alpha/p1": "from keychain"}
    assert resolve_secret("keychain:alpha/p1", {}, accounts.get) == Secret("from keychain", "keychain:alpha/p1")
    assert resolve_secret("keychain:alpha", {}, accounts.get) == MissingSecret("keychain:alpha")


@pytest.mark.parametrize(
    ("text", "variable"),
    [("$A", "A"), ("${A_1}", "A_1"), ("$1A", None), ("${}", None), ("$", None), ("${A}b", None), ("a${A}", None)],
)
def test_variable_of(text: str, variable: str | None) -> None:
    assert variable_of(text) == variable
    assert is_reference(text) is (variable is not None)


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("sk-abc", None),
        ("$NAME", None),
        ("${NAME}", None),
        ("keychain:alpha", None),
        ("$", "reference"),
        ("$-x", "reference"),
        ("${NAME", "reference"),
        ("${NAME}-suffix", "reference"),
        ("${NAME:-default}", "reference"),
        ("keychain:", "keychain"),
        ("keychain:a/b/c", "keychain"),
        (" key", "blanks"),
        ("key ", "blanks"),
    ],
)
def test_secret_fault(text: str, word: str | None) -> None:
    fault = secret_fault(text)
    assert (fault is None) if word is None else (fault is not None and word in fault)


@given(st.text(min_size=1).filter(str.isalnum))
def test_a_fault_does_not_repeat_the_key(text: str) -> None:
    marked = f"$-{text}{text}9zq9"
    assert marked not in (secret_fault(marked) or "")


def test_derived_variable_stands_in_for_a_missing_key() -> None:
    keyless = config().providers["alpha"]
    assert provider_secret("alpha", keyless, ENVIRON) == Secret("derived", "ALPHA_API_KEY")
    assert provider_secret("beta", keyless, ENVIRON) == MissingSecret("BETA_API_KEY")


def test_a_written_key_is_never_replaced_by_the_derived_variable() -> None:
    row = config(with_provider(apiKey="${UNSET}")).providers["alpha"]
    assert provider_secret("alpha", row, ENVIRON) == MissingSecret("UNSET")


def test_pool() -> None:
    pool = [{"id": "a", "key": "$NAME"}, {"id": "b", "key": "literal"}, {"id": "c", "key": "$UNSET"}]
    row = config(with_provider(apiKeyPool=pool)).providers["alpha"]
    assert pool_secrets(row, ENVIRON) == (
        ("a", Secret("value", "NAME")),
        ("b", Secret("literal")),
        ("c", MissingSecret("UNSET")),
    )


def test_repr_hides_the_key() -> None:
    secret = Secret("sk-very-secret")
    assert "sk-very-secret" not in repr(secret)
    assert secret.reveal() == "sk-very-secret"
