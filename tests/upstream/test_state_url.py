"""Where shared state is: what the option may say, and that no refusal repeats it."""

from pathlib import Path

import pytest

from combos.upstream.state_url import StateAddress, parse_state

ENVIRON = {"STATE_PASSWORD": "from-the-environment"}


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("", None),
        ("redis://host", StateAddress("host")),
        ("redis://host/", StateAddress("host")),
        ("redis://127.0.0.1:6380/3", StateAddress("127.0.0.1", 6380, db=3)),
        ("redis://[::1]:6380", StateAddress("::1", 6380)),
        ("redis://:hush@host", StateAddress("host", password="hush")),
        ("redis://me:h%40sh@host", StateAddress("host", username="me", password="h@sh")),
        ("redis://me:${STATE_PASSWORD}@host", StateAddress("host", username="me", password="from-the-environment")),
        ("redis://host/0?prefix=team-a", StateAddress("host", prefix="team-a")),
        ("rediss://host:6380", StateAddress("host", 6380, tls=True)),
        ("unix:///run/redis.sock", StateAddress(path="/run/redis.sock")),
        (
            "unix://:hush@/run/redis.sock?db=2&prefix=a",
            StateAddress(path="/run/redis.sock", db=2, password="hush", prefix="a"),
        ),
    ],
)
def test_addresses(text: str, address: StateAddress | None) -> None:
    assert parse_state(text, ENVIRON) == address


def test_a_file_of_certificates(tmp_path: Path) -> None:
    file = tmp_path / "ca.pem"
    file.write_text("")
    assert parse_state(f"rediss://host?ca={file}", {}) == StateAddress("host", tls=True, ca=str(file))
    with pytest.raises(ValueError, match="not there"):
        parse_state(f"rediss://host?ca={file}x", {})


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ("secret", "must begin with"),
        ("http://:secret@host", "must begin with"),
        ("redis://", "must name a host"),
        ("redis://:secret@", "must name a host"),
        ("redis://host:secret", "not an address"),
        ("redis://host:99999", "not an address"),
        ("redis://[secret", "not an address"),
        ("redis://secret@host", "without a password"),
        ("redis://:secret#more@host", "#"),
        ("redis://:secret\n@host", "blanks"),
        ("redis://host/secret", "by a number"),
        ("redis://host/-1", "by a number"),
        ("redis://host/99999999", "by a number"),
        ("redis://host?db=1", "no other parameters"),
        ("redis://host?password=secret", "no other parameters"),
        ("redis://host?prefix=a&prefix=b", "no other parameters"),
        ("redis://host?ca=/secret", "no other parameters"),
        ("redis://host?secret", "no other parameters"),
        ("redis://host?prefix=", "prefix"),
        ("redis://host?prefix={secret}", "prefix"),
        ("redis://:${MISSING}@host", "MISSING, which is not set"),
        ("unix://secret/run/redis.sock", "socket"),
        ("unix:secret", "socket"),
        ("unix:///", "socket"),
    ],
)
def test_refusals_name_the_rule_and_repeat_nothing(text: str, rule: str) -> None:
    with pytest.raises(ValueError, match=rule) as caught:
        parse_state(text, {})
    assert "secret" not in str(caught.value)
    assert caught.value.__cause__ is None


def test_the_password_shows_nowhere() -> None:
    address = parse_state("redis://me:hush@host:1/2", {})
    assert address is not None
    assert "hush" not in repr(address)
    assert (address.label, StateAddress("::1").label) == ("host:1", "[::1]:6379")
