"""docs/clients.md shows what the checks with real clients define and run: setups, versions, results."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "clients.md"
SETUPS = ROOT / "scripts" / "clients" / "setups"


def check(page: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, ROOT / "scripts" / "clients" / "matrix.py", "--check-docs", page]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_the_page_is_what_the_scripts_define() -> None:
    done = check(PAGE)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


ROW = "| base URL | API key, own provider | R C M G |"


@pytest.mark.parametrize(
    ("old", "new", "fault"),
    [
        (ROW, ROW.replace("R C M G", "R C! M G"), "codex-own-chat-tool failed"),
        (ROW, ROW.replace("R C M G", ""), "codex-own-responses-tool is not shown"),
        (ROW, ROW.replace("own provider", "old provider"), "codex-own-responses-tool is not shown"),
        ("| Codex CLI | 0.", "| Codex CLI | 1.", "not as the scripts make it"),
        ('env_key = "OPENAI_API_KEY"', 'env_key = "KEY"', "not as the scripts make it"),
        ("<!-- file codex-own.toml -->", "", "setups/codex-own.toml is not shown"),
        ("- late: asks again", "- late: waits", "not as the scripts make it"),
    ],
)
def test_a_page_that_says_something_else_is_found_out(old: str, new: str, fault: str, tmp_path: Path) -> None:
    text = PAGE.read_text()
    assert old in text
    page = tmp_path / "page.md"
    page.write_text(text.replace(old, new, 1))
    done = check(page)
    assert done.returncode == 1
    assert fault in done.stdout


@pytest.mark.parametrize("path", sorted(SETUPS.iterdir()), ids=lambda path: path.name)
def test_setups_hold_the_address_that_is_replaced_and_no_key(path: Path) -> None:
    text = path.read_text()
    assert "127.0.0.1:8080" in text or "combo/main" in text or "my-own-key" in text
    assert all(word in ("my-own-key", "OPENAI_API_KEY") for word in keys(text))


def keys(text: str) -> list[str]:
    """What stands where a key does."""
    lines = [line for line in text.splitlines() if "KEY" in line.upper() or "TOKEN" in line]
    return [line.replace('"', " ").replace("=", " ").rstrip(" },").split()[-1] for line in lines]
