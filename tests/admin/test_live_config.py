"""The configuration in force: read, validated as a whole, swapped at once, kept when the file is bad."""

import json
import os
from pathlib import Path

import pytest

from combos.admin.live_config import Change, LiveConfig
from combos.core.errors import ConfigError
from combos.core.registry import Registry
from configs import combo, document


@pytest.fixture
def live(tmp_path: Path) -> LiveConfig:
    path = tmp_path / "config.json"
    path.write_text(json.dumps(document()))
    made = LiveConfig(path)
    assert made.reload() is Change.LOADED
    return made


def write(live: LiveConfig, text: str) -> None:
    other = live.path.with_suffix(".new")
    other.write_text(text)
    other.replace(live.path)


TWO = json.dumps(document(combos={"one": combo(), "two": combo()}))
BAD = json.dumps(document(combos={"one": combo(), "two": combo(stickyLimit=0)}))


def test_before_anything_is_read_nothing_is_configured(tmp_path: Path) -> None:
    made = LiveConfig(tmp_path / "none.json")
    assert (dict(made.registry.combos), made.registry.generation, made.is_writable) == ({}, 0, True)
    assert made.reload() is Change.MISSING
    assert not made.has_moved()


def test_a_change_swaps_everything_and_counts(live: LiveConfig) -> None:
    before = live.registry
    assert not live.has_moved()
    write(live, TWO)
    assert live.has_moved()
    assert live.reload() is Change.LOADED
    assert set(live.registry.combos) == {"one", "two"}
    assert live.registry.generation == before.generation + 1
    assert set(before.combos) == {"main"}


def test_the_same_bytes_change_nothing(live: LiveConfig) -> None:
    before = live.registry
    write(live, live.path.read_text())
    os.utime(live.path, ns=(1, 1))
    assert live.has_moved()
    assert live.reload() is Change.UNCHANGED
    assert live.registry is before
    assert not live.has_moved()


def test_a_bad_file_keeps_everything_and_blocks_writes(live: LiveConfig) -> None:
    before = live.registry
    write(live, BAD)
    assert live.reload() is Change.INVALID
    assert live.registry is before
    assert not live.is_writable
    assert [problem.path for problem in live.problems] == ["combos.two.stickyLimit"]
    assert live.reload() is Change.UNCHANGED
    assert not live.is_writable
    write(live, TWO)
    assert live.reload() is Change.LOADED
    assert live.is_writable
    assert live.problems == ()


def test_the_old_file_put_back_mends_a_bad_one(live: LiveConfig) -> None:
    good = live.path.read_text()
    write(live, BAD)
    live.reload()
    write(live, good)
    assert live.reload() is Change.LOADED
    assert live.is_writable


@pytest.mark.parametrize("text", ["", "{", "[]", "null", "\x00", '{"combos": {}, "combos": {}}'])
def test_a_file_that_is_no_configuration(text: str, live: LiveConfig) -> None:
    before = live.registry
    write(live, text)
    assert live.reload() is Change.INVALID
    assert live.registry is before
    assert live.problems


def test_a_directory_in_its_place(live: LiveConfig) -> None:
    before = live.registry
    live.path.unlink()
    live.path.mkdir()
    assert live.reload() is Change.INVALID
    assert live.registry is before
    assert "cannot be read" in str(live.problems[0])


def test_a_pipe_in_its_place_keeps_nobody_waiting(live: LiveConfig) -> None:
    before = live.registry
    live.path.unlink()
    os.mkfifo(live.path)
    assert live.reload() is Change.INVALID
    assert live.registry is before
    assert "not a regular file" in str(live.problems[0])


def test_a_file_without_an_end_is_not_read_whole(live: LiveConfig) -> None:
    os.truncate(live.path, 2**40)
    assert live.reload() is Change.INVALID
    assert "larger than" in str(live.problems[0])


def test_a_link_that_leads_nowhere_is_not_a_missing_file(tmp_path: Path) -> None:
    """Somebody meant a file: without it, the demonstration is not what they want."""
    path = tmp_path / "config.json"
    path.symlink_to(tmp_path / "unmounted" / "config.json")
    live = LiveConfig(path)
    assert live.reload() is Change.INVALID
    assert "leads nowhere" in str(live.problems[0])
    assert not live.has_moved()
    (tmp_path / "unmounted").mkdir()
    (tmp_path / "unmounted" / "config.json").write_text("{}")
    assert live.has_moved()
    assert live.reload() is Change.LOADED


def test_a_missing_file_keeps_what_is_in_force(live: LiveConfig) -> None:
    before = live.registry
    live.path.unlink()
    assert live.has_moved()
    assert live.reload() is Change.MISSING
    assert live.registry is before
    assert not live.has_moved()
    assert live.is_gone
    assert "is gone" in str(live.problems[0])
    write(live, TWO)
    assert not live.is_gone
    assert live.reload() is Change.LOADED
    assert live.problems == ()


def test_a_bad_file_that_is_removed_is_bad_no_more(tmp_path: Path) -> None:
    made = LiveConfig(tmp_path / "config.json")
    made.path.write_text(BAD)
    assert made.reload() is Change.INVALID
    made.path.unlink()
    assert made.reload() is Change.MISSING
    assert (made.problems, made.is_gone) == ((), False)
    made.adopt(json.loads(TWO))
    assert not made.is_gone


def test_listeners_are_told_of_every_swap_and_of_nothing_else(live: LiveConfig) -> None:
    told: list[Registry] = []
    live.subscribe(told.append)
    live.reload()
    write(live, BAD)
    live.reload()
    assert told == []
    write(live, TWO)
    live.reload()
    live.adopt(document())
    assert [registry.generation for registry in told] == [2, 3]
    assert told[-1] is live.registry


def test_adopting_a_bad_document_changes_nothing(live: LiveConfig) -> None:
    before = live.registry
    with pytest.raises(ConfigError):
        live.adopt(document(combos={"one": combo(stickyLimit=0)}))
    assert live.registry is before
