"""A change is written whole or not at all, never over a broken file, and two writers lose nothing."""

import json
import os
import random
import signal
import stat
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from combos.admin import filelock
from combos.admin.combo_edits import ComboPut, put_combo
from combos.admin.live_config import Change, LiveConfig
from combos.admin.provider_edits import set_disabled_models
from combos.admin.refusal import Kind, RefusalError
from combos.admin.store import ConfigStore, Document, Edit, serialise
from combos.core.config_text import parse_config_text
from configs import TARGET, document, provider


@pytest.fixture
def path(tmp_path: Path) -> Path:
    found = tmp_path / "home" / "config.json"
    found.parent.mkdir()
    found.write_text(json.dumps(document(unknownKey={"kept": [1.5, None]})))
    return found


def hide(model: str) -> Any:
    def change(found: Document) -> Edit[None]:
        found["disabledModels"] = [*found.get("disabledModels", []), model]
        return Edit(found, None)

    return change


def test_an_edit_is_written_with_unknown_keys_and_order_kept(path: Path) -> None:
    store = ConfigStore(path)
    done = store.edit(lambda found: put_combo(found, ComboPut("second", {"targets": [TARGET]})))
    assert done.is_changed
    written = json.loads(path.read_text())
    assert list(written) == ["providers", "combos", "unknownKey"]
    assert written["unknownKey"] == {"kept": [1.5, None]}
    assert list(written["combos"]) == ["main", "second"]
    assert written["combos"]["main"] == document()["combos"]["main"], "combos that were not edited stay as written"
    assert path.read_bytes() == serialise(written)


def test_modes_backup_and_nothing_left_behind(path: Path) -> None:
    path.chmod(0o644)
    before = path.read_bytes()
    ConfigStore(path).edit(hide("x"))
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    backup = path.with_name("config.json.bak")
    assert backup.read_bytes() == before
    assert stat.S_IMODE(backup.stat().st_mode) == 0o600
    assert sorted(p.name for p in path.parent.iterdir()) == ["config.json", "config.json.bak", "config.lock"]


def test_a_first_file_makes_its_folder(tmp_path: Path) -> None:
    path = tmp_path / "new" / "config.json"
    ConfigStore(path).edit(lambda found: Edit({**found, "providers": {"a": provider()}}, None))
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    assert parse_config_text(path.read_bytes()).providers.keys() == {"a"}


def test_no_change_is_no_write(path: Path) -> None:
    before = path.stat()
    done = ConfigStore(path).edit(lambda found: Edit(found, "same"))
    assert (done.result, done.is_changed) == ("same", False)
    assert path.stat() == before
    assert not path.with_name("config.json.bak").exists()


def test_a_preview_writes_nothing(path: Path) -> None:
    before = path.read_bytes()
    done = ConfigStore(path).preview(hide("x"))
    assert done.is_changed
    assert done.config.disabled_models == ("x",)
    assert path.read_bytes() == before


@pytest.mark.parametrize("broken", ["{", '{"providers": 1}', '{"port": 99999}', "", "\xff"])
def test_a_broken_file_is_never_written_over(path: Path, broken: str) -> None:
    path.write_text(broken, encoding="latin-1")
    with pytest.raises(RefusalError) as caught:
        ConfigStore(path).edit(lambda found: Edit({}, None))
    assert (caught.value.kind, caught.value.code) == (Kind.CONFLICT, "config_invalid")
    assert caught.value.problems
    assert path.read_text(encoding="latin-1") == broken


def test_a_candidate_is_judged_whole(path: Path) -> None:
    before = path.read_bytes()
    with pytest.raises(RefusalError) as caught:
        ConfigStore(path).edit(lambda found: put_combo(found, ComboPut("x", {"targets": [TARGET, TARGET]})))
    assert [problem.path for problem in caught.value.problems] == ["combos.x.targets[1]"]
    assert path.read_bytes() == before


def test_what_could_not_be_loaded_again_is_not_written(path: Path) -> None:
    before = path.read_bytes()

    def grow(found: Document) -> Edit[None]:
        return Edit({**found, "x": "y" * 17_000_000}, None)

    with pytest.raises(RefusalError, match="larger than"):
        ConfigStore(path).edit(grow)
    assert path.read_bytes() == before


def test_problems_of_what_was_saved_come_first(path: Path) -> None:
    ConfigStore(path).edit(lambda found: put_combo(found, ComboPut("zeta", {"targets": [TARGET], "alias": "z"})))
    taken = ComboPut("main", {"targets": [TARGET], "alias": "z", "stickyLimit": 0})
    with pytest.raises(RefusalError) as caught:
        ConfigStore(path).edit(lambda found: put_combo(found, taken))
    assert caught.value.problems[0].path.startswith("combos.main.")


def test_only_the_saved_combo_has_to_be_usable(path: Path) -> None:
    made = document(providers={"alpha": provider(disabled=True), "beta": provider()})
    path.write_text(json.dumps(made))
    good = {"targets": [{"provider": "beta", "model": "m"}]}
    ConfigStore(path).edit(lambda found: put_combo(found, ComboPut("x", good)))
    with pytest.raises(RefusalError, match="must hold a target whose provider is enabled"):
        ConfigStore(path).edit(lambda found: put_combo(found, ComboPut("y", {"targets": [TARGET]})))


def test_a_symbolic_link_keeps_pointing(path: Path, tmp_path: Path) -> None:
    link = tmp_path / "link.json"
    link.symlink_to(path)
    ConfigStore(link).edit(hide("x"))
    assert link.is_symlink()
    assert json.loads(path.read_text())["disabledModels"] == ["x"]


def test_a_dangling_link_is_refused(tmp_path: Path) -> None:
    link = tmp_path / "config.json"
    link.symlink_to(tmp_path / "nowhere.json")
    with pytest.raises(RefusalError, match="leads nowhere"):
        ConfigStore(link).edit(hide("x"))
    assert not (tmp_path / "nowhere.json").exists()


def test_a_folder_that_cannot_be_written(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    before = path.read_bytes()
    monkeypatch.setattr("combos.admin.atomic.os.fsync", full)
    with pytest.raises(RefusalError, match="No space left on device") as caught:
        ConfigStore(path).edit(hide("x"))
    assert caught.value.kind is Kind.UNAVAILABLE
    assert path.read_bytes() == before
    assert not list(path.parent.glob(".*.tmp"))


def test_the_owner_stays_when_somebody_else_writes(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    given: list[tuple[str, int, int]] = []
    monkeypatch.setattr("combos.admin.atomic.os.geteuid", lambda: path.stat().st_uid + 1)
    monkeypatch.setattr(
        "combos.admin.atomic.os.chown", lambda file, user, group: given.append((file.name, user, group))
    )
    ConfigStore(path).edit(hide("x"))
    ((name, user, group),) = given
    assert name.startswith(".config.json.")
    assert (user, group) == (path.stat().st_uid, path.stat().st_gid)


def test_without_hard_links_the_backup_is_a_copy(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def no_links(*_: object) -> None:
        raise PermissionError(1, "Operation not permitted")

    before = path.read_bytes()
    monkeypatch.setattr("combos.admin.atomic.os.link", no_links)
    ConfigStore(path).edit(hide("x"))
    assert path.with_name("config.json.bak").read_bytes() == before


def test_a_backup_that_is_the_file_itself_leaves_nothing_behind(path: Path) -> None:
    os.link(path, path.with_name("config.json.bak"))
    before = path.read_bytes()
    ConfigStore(path).edit(hide("x"))
    assert path.with_name("config.json.bak").read_bytes() == before
    assert not list(path.parent.glob("*.tmp"))
    assert not list(path.parent.glob(".*.tmp"))


def test_a_held_lock_is_waited_for_and_then_given_up(path: Path) -> None:
    def edit() -> None:
        ConfigStore(path).edit(hide("late"))

    with filelock.locked(path.parent):
        waiting = threading.Thread(target=edit)
        waiting.start()
        time.sleep(0.05)
        assert "late" not in path.read_text()
    waiting.join()
    assert "late" in path.read_text()
    with filelock.locked(path.parent), pytest.raises(filelock.LockError), filelock.locked(path.parent, 0.03):
        pass


@pytest.mark.parametrize("make", [lambda lock: lock.symlink_to("elsewhere"), Path.mkdir])
def test_a_lock_that_cannot_be_opened_is_not_a_fault_of_the_configuration(
    path: Path, make: Callable[[Path], None]
) -> None:
    make(path.with_name("config.lock"))
    before = path.read_bytes()
    with pytest.raises(RefusalError, match=r"the lock beside it, config\.lock, cannot be opened") as caught:
        ConfigStore(path).edit(hide("x"))
    assert caught.value.kind is Kind.UNAVAILABLE
    assert path.read_bytes() == before
    assert not path.with_name("elsewhere").exists()


def test_a_lock_is_free_once_its_holder_was_killed(path: Path) -> None:
    """What is left of it is a file, and a file is no lock."""
    held = "import sys; from combos.admin.filelock import locked; from pathlib import Path\n"
    held += "with locked(Path(sys.argv[1])): print('held', flush=True); sys.stdin.read()"
    process = subprocess.Popen(
        [sys.executable, "-c", held, str(path.parent)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2] / "addon")},
    )
    assert process.stdout is not None
    assert process.stdout.readline() == b"held\n"
    with pytest.raises(filelock.LockError), filelock.locked(path.parent, 0.01):
        pass
    process.kill()
    process.communicate()
    assert ConfigStore(path).edit(hide("x")).is_changed


@pytest.mark.parametrize("make", [os.mkfifo, Path.mkdir])
def test_what_is_no_file_is_neither_read_nor_written_over(tmp_path: Path, make: Callable[[Path], None]) -> None:
    path = tmp_path / "config.json"
    make(path)
    for attempt in (lambda: ConfigStore(path).read(), lambda: ConfigStore(path).edit(hide("x"))):
        with pytest.raises(RefusalError, match=r"config\.json cannot be read: it is not a regular file"):
            attempt()
    assert not path.is_file()


def test_a_file_without_an_end_is_not_read_whole(path: Path) -> None:
    os.truncate(path, 2**40)
    with pytest.raises(RefusalError, match="larger than"):
        ConfigStore(path).read()


def test_a_change_in_place_of_models_round_trips(path: Path) -> None:
    store = ConfigStore(path)
    assert store.edit(lambda found: set_disabled_models(found, ["a", "b", "a"])).result == ["a", "b"]
    assert store.edit(lambda found: set_disabled_models(found, [])).result == []
    assert "disabledModels" not in store.read()


WRITER = """
import sys
from pathlib import Path
from combos.admin.store import ConfigStore, Edit
store, name, count = ConfigStore(Path(sys.argv[1])), sys.argv[2], int(sys.argv[3])
def change(found):
    counters = found.setdefault("counters", {})
    counters[name] = counters.get(name, 0) + 1
    found["disabledModels"] = [f"{name}-{counters[name]}"] * 50
    return Edit(found, None)
print("ready", flush=True)
for _ in range(count):
    store.edit(change)
"""


def writer(path: Path, name: str, count: int) -> "subprocess.Popen[bytes]":
    environ = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2] / "addon")}
    command = [sys.executable, "-c", WRITER, str(path), name, str(count)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, env=environ)
    assert process.stdout is not None
    assert process.stdout.readline() == b"ready\n"
    return process


def test_a_killed_writer_leaves_a_valid_file(path: Path) -> None:
    draw = random.Random(5)
    seen = 0
    for _ in range(6):
        process = writer(path, "killed", 1_000_000)
        time.sleep(draw.uniform(0.01, 0.12))
        process.send_signal(signal.SIGKILL)
        process.wait()
        assert process.stdout is not None
        process.stdout.close()
        parse_config_text(path.read_bytes())
        count = json.loads(path.read_text()).get("counters", {}).get("killed", 0)
        assert count >= seen
        seen = count
    assert seen > 0
    ConfigStore(path).edit(hide("after"))
    assert not list(path.parent.glob(".config.json.*")), "the next writer tidies up"


def test_two_writers_and_a_reader_lose_nothing(path: Path) -> None:
    # The interleavings of a longer run: COMBOS_STORE_WRITES=5000.
    count = int(os.environ.get("COMBOS_STORE_WRITES", "300"))
    processes = [writer(path, name, count) for name in ("one", "two")]
    live, changes = LiveConfig(path), set()
    own = 0
    store = ConfigStore(path)

    def bump(found: Document) -> Edit[None]:
        found["mine"] = found.get("mine", 0) + 1
        return Edit(found, None)

    while any(process.poll() is None for process in processes):
        changes.add(live.reload())
        store.edit(bump)
        own += 1
    for process in processes:
        assert process.stdout is not None
        process.stdout.close()
        assert process.returncode == 0
    found = json.loads(path.read_text())
    assert found["counters"] == {"one": count, "two": count}
    assert found["mine"] == own
    assert changes <= {Change.LOADED, Change.UNCHANGED}
    assert Change.LOADED in changes
