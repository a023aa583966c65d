"""`scripts/setup` chooses a Python that really runs and is new enough, and says what to do when there is none."""

import os
import shutil
import stat
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
TOOLS = ("bash", "cat", "chmod", "cksum", "dirname", "env", "find", "rm", "sort", "mkdir", "pwd")


def make_executable(path: Path, text: str) -> Path:
    path.write_text(text)
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return path


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A copy of what the script reads, with a PATH that holds no Python."""
    root = tmp_path / "checkout"
    (root / "scripts").mkdir(parents=True)
    (root / "addon" / "combos").mkdir(parents=True)
    for name in ("requirements.lock", "pyproject.toml", "scripts/setup", "addon/combos/__init__.py"):
        shutil.copy(ROOT / name, root / name)
    (tmp_path / "bin").mkdir()
    for tool in TOOLS:
        found = shutil.which(tool)
        assert found
        (tmp_path / "bin" / tool).symlink_to(found)
    return root


def run_setup(checkout: Path, **environ: str) -> subprocess.CompletedProcess[str]:
    settings = {"PATH": str(checkout.parent / "bin"), "HOME": str(checkout.parent), **environ}
    return subprocess.run([checkout / "scripts" / "setup"], env=settings, capture_output=True, text=True, check=False)


# Stands for an interpreter: answers the version question, and "installs" by noting what it was asked for.
FAKE = """#!/bin/bash
case "$*" in
  *version_info*) exit {old} ;;
  *venv*) mkdir -p .venv/bin; cat "$0" > .venv/bin/python; chmod +x .venv/bin/python; echo "{name}" > used ;;
  *) echo "$*" >> calls ;;
esac
"""


def fake(path: Path, name: str, *, old: bool = False) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    make_executable(path, FAKE.format(old=int(old), name=name))


def test_without_a_new_python_the_message_says_what_was_tried(checkout: Path) -> None:
    done = run_setup(checkout)
    assert done.returncode == 1
    assert "needs Python 3.12 or newer" in done.stderr
    assert "COMBOS_PYTHON=" in done.stderr


def test_an_old_default_python_is_passed_over_for_one_under_pyenv(checkout: Path) -> None:
    fake(checkout.parent / "bin" / "python3", "default", old=True)
    fake(checkout.parent / ".pyenv" / "versions" / "3.11.7" / "bin" / "python", "3.11.7", old=True)
    fake(checkout.parent / ".pyenv" / "versions" / "3.12.1" / "bin" / "python", "3.12.1")
    fake(checkout.parent / ".pyenv" / "versions" / "3.13.0" / "bin" / "python", "3.13.0")
    assert run_setup(checkout).returncode == 0
    assert (checkout / "used").read_text() == "3.13.0\n"


def test_a_shim_that_does_not_run_is_passed_over(checkout: Path) -> None:
    make_executable(checkout.parent / "bin" / "python3.14", "#!/bin/bash\necho 'pyenv: not found' >&2\nexit 127\n")
    fake(checkout.parent / "bin" / "python3.12", "3.12")
    assert run_setup(checkout).returncode == 0
    assert (checkout / "used").read_text() == "3.12\n"


def test_a_chosen_python_comes_first(checkout: Path) -> None:
    fake(checkout.parent / "bin" / "python3.13", "3.13")
    fake(checkout.parent / "mine" / "python", "mine")
    assert run_setup(checkout, COMBOS_PYTHON=str(checkout.parent / "mine" / "python")).returncode == 0
    assert (checkout / "used").read_text() == "mine\n"


def test_the_second_run_does_nothing(checkout: Path) -> None:
    fake(checkout.parent / "bin" / "python3.13", "3.13")
    assert run_setup(checkout).returncode == 0
    calls = (checkout / "calls").read_text()
    assert "--require-hashes" in calls
    second = run_setup(checkout)
    assert (second.returncode, second.stderr) == (0, "")
    assert (checkout / "calls").read_text() == calls


def test_another_lock_installs_again(checkout: Path) -> None:
    fake(checkout.parent / "bin" / "python3.13", "3.13")
    assert run_setup(checkout).returncode == 0
    before = (checkout / "calls").read_text()
    with (checkout / "requirements.lock").open("a") as lock:
        lock.write("# changed\n")
    assert run_setup(checkout).returncode == 0
    assert len((checkout / "calls").read_text()) > len(before)


@pytest.mark.parametrize("script", ["setup", "run", "test", "check", "lock", "package", "versions", "docs"])
def test_scripts_are_executable_and_sound(script: str) -> None:
    path = ROOT / "scripts" / script
    assert os.access(path, os.X_OK)
    subprocess.run(["bash", "-n", path], check=True)


def test_ci_runs_the_test_command() -> None:
    assert "./scripts/test" in (ROOT / ".ci" / "run").read_text()
    assert "./scripts/package" in (ROOT / ".ci" / "run").read_text()
    assert os.access(ROOT / ".ci" / "run", os.X_OK)


def test_this_environment_is_the_one_that_setup_made_or_a_like_one() -> None:
    assert sys.version_info >= (3, 12)
