"""The options: declared completely, parsed into settings, refused by name and rule."""

from typing import Any

import pytest
from mitmproxy.addonmanager import Loader
from mitmproxy.exceptions import OptionsError
from mitmproxy.test import taddons

from combos.mitm import options
from combos.mitm.options import OPTIONS, AttemptFlows, declare, parse, parse_listen


class Declaring:
    def load(self, loader: Loader) -> None:
        declare(loader)


@pytest.fixture
def context() -> Any:
    with taddons.context(Declaring(), loadcore=False) as made:
        yield made


def test_every_option_has_our_prefix_and_a_sentence_of_help(context: Any) -> None:
    assert len({row.name for row in OPTIONS}) == len(OPTIONS)
    for row in OPTIONS:
        assert row.name.startswith("combos_")
        assert row.help.endswith(".")
        assert row.help[0].isupper() or row.help.startswith("auto")
        assert getattr(context.options, row.name) == row.default


def test_defaults(context: Any) -> None:
    settings = parse(context.options)
    assert settings.attempt_flows is AttemptFlows.AUTO
    assert settings.admin_listen == ("127.0.0.1", 10_100)
    assert settings.body_limit == 65_536
    assert (settings.connect_timeout_ms, settings.head_timeout_ms, settings.idle_timeout_ms) == (
        10_000,
        200_000,
        300_000,
    )


@pytest.mark.parametrize("row", [row for row in OPTIONS if row.minimum is not None], ids=lambda row: row.name)
def test_a_number_below_its_minimum(row: Any, context: Any) -> None:
    context.options.update(**{row.name: row.minimum})
    parse(context.options)
    context.options.update(**{row.name: row.minimum - 1})
    with pytest.raises(OptionsError, match=f"{row.name} must be an integer of at least {row.minimum}, got"):
        parse(context.options)


def test_a_choice_that_does_not_exist(context: Any) -> None:
    context.options.update(combos_attempt_flows="some")
    with pytest.raises(OptionsError, match="combos_attempt_flows must be one of auto, all, none, got 'some'"):
        parse(context.options)


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("", None),
        ("127.0.0.1:10100", ("127.0.0.1", 10_100)),
        ("localhost:1", ("localhost", 1)),
        ("[::1]:65535", ("::1", 65_535)),
        ("127.9.9.9:80", ("127.9.9.9", 80)),
    ],
)
def test_listen_addresses(text: str, address: object) -> None:
    assert parse_listen(text) == address


@pytest.mark.parametrize(
    "text", ["10100", "127.0.0.1", "127.0.0.1:", "127.0.0.1:0", "127.0.0.1:65536", "127.0.0.1:x", ":1"]
)
def test_listen_addresses_that_are_none(text: str, context: Any) -> None:
    context.options.update(combos_admin_listen=text)
    with pytest.raises(OptionsError, match="combos_admin_listen must be"):
        parse(context.options)


@pytest.mark.parametrize(
    "text", ["0.0.0.0:10100", "192.168.1.2:80", "[::]:80", "example.com:80", "127.0.0.1.example.com:80"]
)
def test_the_management_listener_is_never_offered_to_the_network(text: str) -> None:
    with pytest.raises(ValueError, match="loopback"):
        parse_listen(text)


def test_further_addresses(context: Any) -> None:
    context.options.update(combos_served_at="127.0.0.1:8080, [::1]:8080,Models.example:443")
    assert parse(context.options).served_at == (("127.0.0.1", 8080), ("::1", 8080), ("models.example", 443))


@pytest.mark.parametrize("text", ["8080", ":8080", "host:", "host:0", "host:x", "host:65536", "a:1,b"])
def test_further_addresses_that_are_none(text: str, context: Any) -> None:
    context.options.update(combos_served_at=text)
    with pytest.raises(OptionsError, match="combos_served_at must be host:port"):
        parse(context.options)


def test_where_state_is_shared(context: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STATE_PASSWORD", "hush")
    context.options.update(combos_state="redis://:${STATE_PASSWORD}@127.0.0.1:6380/1")
    state = parse(context.options).state
    assert state is not None
    assert (state.port, state.db, state.password) == (6380, 1, "hush")
    assert "hush" not in repr(parse(context.options))


def test_a_bad_address_of_shared_state_is_refused_by_name_and_rule_and_not_repeated(context: Any) -> None:
    context.options.update(combos_state="redis://:very-secret@host/x")
    with pytest.raises(OptionsError, match="combos_state must name the database by a number") as caught:
        parse(context.options)
    assert "very-secret" not in str(caught.value)


def test_without_its_package_state_is_not_shared(context: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(options, "find_spec", lambda _: None)
    context.options.update(combos_state="redis://host")
    with pytest.raises(OptionsError, match=r"`pip install redis`.*`pipx inject mitmproxy-combos redis`"):
        parse(context.options)
