"""Token files of other clients: known forms, expiry, renewal by their owner, and files that are none."""

import base64
import json
import os
from pathlib import Path
from typing import Any

import pytest

from combos.upstream.accounts import FILE_MAX, LOOK_S, Account, AccountFiles, Unusable, read_account

NOW_MS = 1_790_856_000_000


def token(**claims: Any) -> str:
    body = base64.urlsafe_b64encode(json.dumps(claims).encode()).rstrip(b"=").decode()
    return f"e30.{body}.sig"


@pytest.mark.parametrize(
    ("document", "account"),
    [
        (
            {"tokens": {"access_token": token(exp=1_790_860_000), "account_id": "acct", "refresh_token": "r"}},
            Account(token(exp=1_790_860_000), "acct", 1_790_860_000_000),
        ),
        ({"tokens": {"access_token": "opaque"}}, Account("opaque")),
        (
            {"claudeAiOauth": {"accessToken": "sk-ant-oat", "refreshToken": "r", "expiresAt": NOW_MS}},
            Account("sk-ant-oat", None, NOW_MS),
        ),
        ({"access_token": "t", "expires_at": 1_790_860_000, "account_id": "a"}, Account("t", "a", 1_790_860_000_000)),
        ({"access_token": "a.!!!.c"}, Account("a.!!!.c")),
        ({"access_token": token(exp="soon")}, Account(token(exp="soon"))),
    ],
)
def test_known_forms(document: Any, account: Account) -> None:
    assert read_account(document) == account


@pytest.mark.parametrize(
    "document",
    [
        [],
        {},
        {"tokens": {}},
        {"tokens": None, "OPENAI_API_KEY": "sk-x"},
        {"claudeAiOauth": {"accessToken": "two\nlines"}},
        {"access_token": "é"},
        {"access_token": " padded "},
        {"access_token": 5},
    ],
)
def test_other_documents_hold_no_account(document: Any) -> None:
    found = read_account(document)
    assert isinstance(found, Unusable)
    assert "token" in found.reason


@pytest.mark.parametrize("moment", [float("inf"), -float("inf"), float("nan"), 10**300, 1e300, 0, -1, True, "soon"])
def test_a_moment_that_is_no_date_states_no_expiry(moment: object) -> None:
    for document in (
        {"access_token": "canary", "expires_at": moment},
        {"claudeAiOauth": {"accessToken": "canary", "expiresAt": moment}},
        {"access_token": token(exp=moment)},
    ):
        found = read_account(document)
        assert isinstance(found, Account)
        assert found.expires_at is None


class Clock:
    def __init__(self) -> None:
        self.s = 0.0
        self.ms = NOW_MS

    def files(self) -> AccountFiles:
        return AccountFiles(lambda: self.s, lambda: self.ms)


@pytest.fixture
def clock() -> Clock:
    return Clock()


def write(path: Path, access_token: str, **fields: Any) -> None:
    path.write_text(json.dumps({"access_token": access_token, **fields}))


def test_a_renewed_file_is_seen_within_a_second_and_a_file_is_not_read_for_every_request(
    tmp_path: Path, clock: Clock
) -> None:
    path, files = tmp_path / "auth.json", clock.files()
    write(path, "one")
    assert files.read(str(path)) == Account("one")
    write(path, "second")
    assert files.read(str(path)) == Account("one")
    clock.s += LOOK_S
    assert files.read(str(path)) == Account("second")


def test_an_expired_token_is_unusable_until_its_client_renews_it(tmp_path: Path, clock: Clock) -> None:
    path, files = tmp_path / "auth.json", clock.files()
    write(path, "one", expires_at=NOW_MS + 60_000)
    assert files.read(str(path)) == Account("one", None, NOW_MS + 60_000)
    clock.ms += 30_000
    found = files.read(str(path))
    assert isinstance(found, Unusable)
    assert "expired" in found.reason
    write(path, "two", expires_at=NOW_MS + 6_000_000)
    clock.s += LOOK_S
    assert files.read(str(path)) == Account("two", None, NOW_MS + 6_000_000)


def test_files_that_are_none(tmp_path: Path, clock: Clock) -> None:
    (tmp_path / "broken").write_text("{")
    (tmp_path / "long").write_text(" " * (FILE_MAX + 1))
    (tmp_path / "deep").write_text("[" * 100_000)
    os.mkfifo(tmp_path / "pipe")
    for name, word in (
        ("broken", "JSON"), ("long", "no token file"), ("deep", "JSON"), ("pipe", "no token file"), (".", "no token"),
        ("absent", "No such file"),
    ):  # fmt: skip
        found = clock.files().read(str(tmp_path / name))
        assert isinstance(found, Unusable)
        assert word in found.reason, name


def test_a_home_folder_is_expanded(tmp_path: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    write(tmp_path / "auth.json", "one")
    assert clock.files().read("~/auth.json") == Account("one")


def test_why_an_account_is_not_used_is_said_once_until_it_changes(tmp_path: Path, clock: Clock) -> None:
    said: list[str] = []
    files = AccountFiles(lambda: clock.s, lambda: clock.ms, said.append)
    path = tmp_path / "auth.json"
    for _ in range(3):
        files.read(str(path))
        clock.s += LOOK_S
    assert len(said) == 1
    assert "No such file" in said[0]
    write(path, "secret-token", expires_at=NOW_MS + 60_000)
    files.read(str(path))
    assert len(said) == 1
    clock.ms += 60_000
    files.read(str(path))
    files.read(str(path))
    assert len(said) == 2
    assert "expired" in said[1]
    assert "secret-token" not in "".join(said)


def test_no_token_shows_itself() -> None:
    assert "secret" not in repr(Account("secret", "acct-secret"))
