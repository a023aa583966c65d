"""Where the configuration file lies."""

from pathlib import Path

import pytest

from combos.admin.paths import NoHomeError, config_path

HOME = {"COMBOS_HOME": "/state"}
NAMED = {"COMBOS_CONFIG": "/named.json", **HOME}


@pytest.mark.parametrize(
    ("option", "environ", "path", "origin", "chosen"),
    [
        ("/option.json", NAMED, "/option.json", "combos_config", True),
        ("", NAMED, "/named.json", "COMBOS_CONFIG", True),
        (None, NAMED, "/named.json", "COMBOS_CONFIG", True),
        (None, HOME, "/state/config.json", "COMBOS_HOME", False),
        (None, {"COMBOS_CONFIG": "", **HOME}, "/state/config.json", "COMBOS_HOME", False),
    ],
)
def test_precedence(option: str | None, environ: dict[str, str], path: str, origin: str, chosen: bool) -> None:
    found = config_path(option, environ)
    assert (found.path, found.origin, found.chosen) == (Path(path), origin, chosen)


def test_nobody_named_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/users/somebody")
    found = config_path(None, {})
    assert (found.path, found.origin, found.chosen) == (Path("/users/somebody/.combos/config.json"), "default", False)


def test_the_home_directory_may_be_a_tilde(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/users/somebody")
    for found in (
        config_path("~/c.json", {}),
        config_path(None, {"COMBOS_CONFIG": "~/c.json"}),
        config_path(None, {"COMBOS_HOME": "~"}),
    ):
        assert found.path.parent == Path("/users/somebody")


def test_the_name_of_no_account_is_taken_as_it_is() -> None:
    for named in (
        config_path("~nobody-at-all/c.json", {}),
        config_path(None, {"COMBOS_CONFIG": "~nobody-at-all/c.json"}),
    ):
        assert named.path == Path("~nobody-at-all/c.json")
    assert config_path(None, {"COMBOS_HOME": "~nobody-at-all"}).path == Path("~nobody-at-all/config.json")


def test_without_a_home_directory_somebody_has_to_name_a_file(monkeypatch: pytest.MonkeyPatch) -> None:
    def nobody(_user: int) -> None:
        raise KeyError

    monkeypatch.delenv("HOME")
    monkeypatch.setattr("pwd.getpwuid", nobody)
    with pytest.raises(NoHomeError, match="set HOME or COMBOS_HOME"):
        config_path(None, {})
    assert config_path(None, {"COMBOS_HOME": "/state"}).path == Path("/state/config.json")
