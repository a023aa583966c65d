"""The checks with real clients are set up, or say why they are not."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
CLIENTS = ROOT / "scripts" / "clients"
TOOLS = ("bash", "cat", "cksum", "cp", "dirname", "env", "find", "grep", "mkdir", "mktemp", "rm", "sort", "tee")
STUB = "#!/bin/bash\n"


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A copy of the scripts, with stubs for what they start, and a PATH without npm."""
    root = tmp_path / "checkout"
    shutil.copytree(CLIENTS, root / "scripts" / "clients")
    executable(root / "scripts" / "setup", STUB)
    (tmp_path / "bin").mkdir()
    for tool in TOOLS:
        found = shutil.which(tool)
        assert found
        (tmp_path / "bin" / tool).symlink_to(found)
    return root


def executable(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(0o755)


def run(checkout: Path, name: str = "run") -> subprocess.CompletedProcess[str]:
    environ = {"PATH": str(checkout.parent / "bin"), "HOME": str(checkout.parent)}
    script = checkout / "scripts" / "clients" / name
    return subprocess.run([script], env=environ, capture_output=True, text=True, check=False)


def installed(checkout: Path) -> None:
    """npm and Python that do nothing but note what they were asked for."""
    executable(checkout.parent / "bin" / "npm", f'{STUB}echo "$*" >> "$HOME/npm-calls"\n')
    python = f'{STUB}case "$1" in *codex.py) echo "ok      codex: a"; echo "ok      codex: b";; '
    python += '*mocks.py) echo "ok      mocks: d";; *matrix.py) echo "skipped matrix: aider: why";; '
    python += '-m) echo "$*" >> "$HOME/pip-calls";; *) echo "FAILED  claude: c: why"; exit 1;; esac\n'
    executable(checkout / ".venv" / "bin" / "python", python)
    older = f'{STUB}case "$*" in *version_info*) ;; *"-m venv"*) mkdir -p "$4/bin"; cp "$0" "$4/bin/python";; '
    executable(checkout.parent / "bin" / "python3.12", older + '*) echo "$*" >> "$HOME/aider-calls";; esac\n')


def test_a_setup_that_fails_is_no_reason_to_skip(checkout: Path) -> None:
    executable(checkout / "scripts" / "setup", f"{STUB}exit 1\n")
    assert run(checkout).returncode == 1


def test_without_npm_and_an_older_python_it_says_so_and_goes_on(checkout: Path) -> None:
    installed(checkout)
    for tool in ("npm", "python3.12"):
        (checkout.parent / "bin" / tool).unlink()
    python = f'{STUB}echo "ok      any: d"\n'
    executable(checkout / ".venv" / "bin" / "python", python)
    done = run(checkout)
    assert done.returncode == 0
    for said in ("npm is not on PATH", "@openai/codex", "Aider and LiteLLM cannot be installed", "aimock cannot be"):
        assert said in done.stderr


def test_an_install_that_fails_is_named_and_tried_again(checkout: Path) -> None:
    installed(checkout)
    executable(checkout.parent / "bin" / "npm", f"{STUB}exit 1\n")
    for _ in range(2):
        done = run(checkout, "install")
        assert done.returncode == 3
        assert "npm could not install @openai/codex@" in done.stderr


def test_versions_are_pinned_and_installed_once(checkout: Path) -> None:
    installed(checkout)
    for _ in range(2):
        assert run(checkout, "install").returncode == 0
    (call,) = (checkout.parent / "npm-calls").read_text().splitlines()
    assert "--prefix .venv/clients" in call
    assert call.endswith(" ".join((CLIENTS / "npm.lock").read_text().split()))
    (call,) = (checkout.parent / "aider-calls").read_text().splitlines()
    assert call.endswith("--no-deps --require-hashes -r scripts/clients/aider.lock")


def test_locks_hold_exact_versions_and_no_addresses() -> None:
    for line in (CLIENTS / "npm.lock").read_text().splitlines():
        package, separator, version = line.rpartition("@")
        assert separator
        assert package.strip("@")
        assert version[0].isdigit()
        assert "://" not in line


def test_checks_are_counted_and_a_failed_one_fails_the_run(checkout: Path) -> None:
    installed(checkout)
    done = run(checkout)
    assert done.returncode == 1
    assert done.stdout.splitlines() == [
        "ok      codex: a",
        "ok      codex: b",
        "FAILED  claude: c: why",
        "skipped matrix: aider: why",
        "ok      mocks: d",
        "1 of the checks could not be made; the lines that begin with skipped tell why",
        "3 passed, 1 failed",
    ]


def test_mock_providers_are_pinned_and_installed_once(checkout: Path) -> None:
    installed(checkout)
    for _ in range(2):
        assert run(checkout, "mocks").returncode == 0
    (call,) = (checkout.parent / "npm-calls").read_text().splitlines()
    assert call.endswith("@copilotkit/aimock@1.43.0")
    (call,) = (checkout.parent / "pip-calls").read_text().splitlines()
    assert "--require-hashes --target .venv/mocks/llmock -r scripts/clients/mocks.lock" in call
    assert "llmock==0.2.2" in (CLIENTS / "mocks.lock").read_text()
    assert "://" not in (CLIENTS / "mocks.lock").read_text(), "no index address"


def test_continuous_integration_runs_them_after_the_tests() -> None:
    lines = (ROOT / ".ci" / "run").read_text().splitlines()
    assert any(line.startswith("./scripts/test") for line in lines)
    assert lines[-1] == "exec ./scripts/clients/run"
    assert all(
        os.access(path, os.X_OK)
        for path in (ROOT / ".ci" / "run", *(CLIENTS / name for name in ("run", "install", "matrix", "mocks")))
    )
