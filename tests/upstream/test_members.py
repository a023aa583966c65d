"""Members of pools as headers: keys, accounts, and what travels beside them."""

import json
from pathlib import Path
from typing import Any

import pytest

from combos.core.facts import Headers
from combos.core.ladder import CHATGPT_BASE_URL
from combos.core.pools import PoolKind
from combos.upstream.accounts import AccountFiles
from combos.upstream.credentials import auth_headers, usable
from combos.upstream.members import Member, members_of, with_beta
from exchanges import provider

POOL = [{"id": "a", "key": "key-a"}, {"id": "b", "key": "${KEY_B}"}, {"id": "c", "key": "${UNSET}"}]
ENVIRON = {"KEY_B": "key-b"}


def members(accounts: AccountFiles | None = None, **fields: Any) -> tuple[Member, ...]:
    row = provider("https://a.example/v1", **fields)
    return members_of(row, ENVIRON, None, accounts or AccountFiles())


def test_keys_in_list_order_without_those_that_are_missing() -> None:
    found = members(api_key_pool=POOL)
    assert [(one.name, one.headers) for one in found] == [
        ("a", ((b"Authorization", b"Bearer key-a"),)),
        ("b", ((b"Authorization", b"Bearer key-b"),)),
    ]
    assert len({one.login for one in found}) == 2


def test_a_written_key_belongs_to_the_pool_once() -> None:
    assert [one.name for one in members(api_key="own", api_key_pool=POOL)] == ["apiKey", "a", "b"]
    assert [one.name for one in members(api_key="key-b", api_key_pool=POOL)] == ["a", "b"]
    assert [one.name for one in members(api_key="${UNSET}", api_key_pool=POOL)] == ["a", "b"]


def test_a_provider_without_a_pool_has_no_members() -> None:
    assert members(api_key="own") == ()
    assert members(auth_mode="local", api_key_pool=POOL) == ()


def test_keys_travel_in_the_adapters_header() -> None:
    (member,) = members(adapter="anthropic", api_key_pool=POOL[:1])
    assert member.headers == ((b"x-api-key", b"key-a"),)


@pytest.fixture
def files(tmp_path: Path) -> list[dict[str, str]]:
    rows = []
    for name in ("one", "two"):
        path = tmp_path / f"{name}.json"
        path.write_text(json.dumps({"tokens": {"access_token": f"token-{name}", "account_id": f"acct-{name}"}}))
        rows.append({"id": name, "token_file": str(path)})
    return [*rows, {"id": "gone", "token_file": str(tmp_path / "gone.json")}]


def test_chatgpt_accounts_name_themselves(files: list[dict[str, str]]) -> None:
    row = provider(CHATGPT_BASE_URL, adapter="openai-responses", auth_mode="oauth", account_pool=files)
    found = members_of(row, {}, None, AccountFiles())
    assert [one.headers for one in found] == [
        ((b"Authorization", b"Bearer token-one"), (b"ChatGPT-Account-Id", b"acct-one")),
        ((b"Authorization", b"Bearer token-two"), (b"ChatGPT-Account-Id", b"acct-two")),
    ]
    assert "token-one" not in repr(found)


def test_other_accounts_send_their_token_alone(files: list[dict[str, str]]) -> None:
    (first, _) = members(auth_mode="oauth", account_pool=files)
    assert first.headers == ((b"Authorization", b"Bearer token-one"),)


def test_a_renewed_token_is_the_same_account(files: list[dict[str, str]]) -> None:
    (before, _) = members(auth_mode="oauth", account_pool=files)
    document = {"tokens": {"access_token": "renewed", "account_id": "acct-one"}}
    Path(files[0]["token_file"]).write_text(json.dumps(document))
    (after, _) = members(auth_mode="oauth", account_pool=files)
    assert before.headers != after.headers
    assert before.login == after.login


def test_a_pool_without_a_usable_account_has_no_credentials(files: list[dict[str, str]]) -> None:
    def row(rows: list[dict[str, str]]) -> Any:
        return provider("https://a.example/v1", auth_mode="oauth", account_pool=rows)

    accounts = AccountFiles()
    assert usable(row(files), {}, False, None, accounts) is None
    assert usable(row(files[2:]), {}, False, None, accounts) == "no_credentials"
    assert usable(row(files), {}, False) == "no_credentials"
    assert auth_headers(row(files), {}, None, None, accounts) == ((b"Authorization", b"Bearer token-one"),)
    assert auth_headers(row(files[2:]), {}, None, None, accounts) == ()


def test_a_pool_stands_in_for_a_written_key_that_is_missing() -> None:
    row = provider("https://a.example/v1", api_key="${UNSET}", api_key_pool=POOL)
    assert usable(row, ENVIRON, False) is None
    assert auth_headers(row, ENVIRON, None) == ((b"Authorization", b"Bearer key-a"),)


BETA = (b"anthropic-beta", b"oauth-2025-04-20")


@pytest.mark.parametrize(
    ("headers", "dressed"),
    [
        ((), (BETA,)),
        (((b"a", b"1"),), ((b"a", b"1"), BETA)),
        (((b"Anthropic-Beta", b"x,y"),), ((b"anthropic-beta", b"x,y,oauth-2025-04-20"),)),
        (((b"anthropic-beta", b"x, oauth-2025-04-20"),), ((b"anthropic-beta", b"x, oauth-2025-04-20"),)),
    ],
)
def test_a_claude_account_adds_its_beta_to_those_of_the_client(headers: Headers, dressed: Headers) -> None:
    assert with_beta(headers, PoolKind.ANTHROPIC) == dressed
    assert with_beta(headers, PoolKind.API_KEYS) == headers
