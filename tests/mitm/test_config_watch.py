"""Edits of the configuration file are noticed and reported."""

import json
import logging
from pathlib import Path

import pytest

from combos.admin.live_config import Change, LiveConfig
from combos.mitm.config_watch import ConfigWatch
from configs import combo, document


@pytest.fixture
def path(tmp_path: Path) -> Path:
    made = tmp_path / "config.json"
    made.write_text(json.dumps(document()))
    return made


def write(path: Path, text: str) -> None:
    other = path.with_suffix(".new")
    other.write_text(text)
    other.replace(path)


def test_it_reloads_what_has_moved_and_nothing_else(path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    config = LiveConfig(path)
    assert config.reload() is Change.LOADED
    watch = ConfigWatch(config)
    watch.look()
    assert caplog.messages == []
    write(path, json.dumps(document(combos={"one": combo(), "two": combo()})))
    watch.look()
    assert caplog.messages == [f"combos: {path} loaded, 2 combos in force"]
    assert set(config.registry.combos) == {"one", "two"}
    watch.look()
    assert len(caplog.messages) == 1


def test_a_bad_edit_is_a_warning_with_every_problem(path: Path, caplog: pytest.LogCaptureFixture) -> None:
    config = LiveConfig(path)
    config.reload()
    before = config.registry
    write(path, json.dumps(document(combos={"main": combo(stickyLimit=0, cooldownMs=-1)})))
    ConfigWatch(config).look()
    (message,) = [record for record in caplog.records if record.levelno == logging.WARNING]
    text = message.getMessage()
    assert "the last good configuration stays in force" in text
    assert "combos.main.stickyLimit" in text
    assert "combos.main.cooldownMs" in text
    assert config.registry is before
    ConfigWatch(config).look()
    assert len([record for record in caplog.records if record.levelno == logging.WARNING]) == 1


def test_a_file_that_goes_and_comes(path: Path, caplog: pytest.LogCaptureFixture) -> None:
    config = LiveConfig(path)
    config.reload()
    before, watch = config.registry, ConfigWatch(config)
    path.unlink()
    watch.look()
    watch.look()
    gone = [message for message in caplog.messages if "is gone" in message]
    assert len(gone) == 1
    assert config.registry is before
    path.write_text(json.dumps(document()))
    watch.look()
    assert config.registry is not before


def test_the_contract_is_a_second() -> None:
    assert ConfigWatch.INTERVAL_S < 1


def test_one_combo_is_not_several(path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    ConfigWatch(LiveConfig(path)).reload()
    assert caplog.messages[0] == f"combos: {path} loaded, 1 combo in force"
