"""Everything that is installed is pinned with hashes, and the audit never takes silence for an answer."""

import importlib.util
import json
import os
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
LOCKS = sorted(
    path for path in (*ROOT.glob("*.lock"), *ROOT.glob("scripts/*/*.lock"), *ROOT.glob("tests/*/*.lock"))
)  # fmt: skip
# npm's own form, without hashes: clients of others that only `scripts/clients` runs; they never meet a real credential.
CLIENTS = frozenset({"npm.lock"})


def rows(text: str) -> list[str]:
    """The requirements of a lock, each with its hashes on one line."""
    return [line for line in text.replace("\\\n", " ").splitlines() if line.strip() and not line.startswith("#")]


@pytest.mark.parametrize(
    "path", [path for path in LOCKS if path.name not in CLIENTS], ids=lambda path: str(path.parent.name)
)
def test_every_row_has_a_version_and_a_hash(path: Path) -> None:
    found = rows(path.read_text())
    assert found
    for row in found:
        assert re.match(r"[A-Za-z0-9._-]+(\[[a-z0-9,-]+\])?==[^\s;]+", row), row
        assert re.search(r"--hash=sha256:[0-9a-f]{64}\b", row), row
        assert "://" not in row


def installs() -> list[tuple[Path, str]]:
    scripts = [path for path in ROOT.glob("scripts/**/*") if path.is_file() and os.access(path, os.X_OK)]
    return [
        (path, line)
        for path in scripts
        for line in path.read_text().replace("\\\n", " ").splitlines()
        if "pip install" in line and "--no-index" not in line and not line.lstrip().startswith(("#", "echo"))
    ]


def test_every_installation_asks_for_hashes() -> None:
    assert installs()
    assert [line for _, line in installs() if "--require-hashes" not in line] == []


def report() -> Any:
    spec = importlib.util.spec_from_file_location("audit_report", ROOT / "scripts" / "audit" / "report.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


WEAK = {"name": "a", "version": "1", "vulns": [{"id": "CVE-1", "fix_versions": ["2"]}]}
SOUND = {"name": "b", "version": "1", "vulns": []}
UNASKED = {"name": "c", "skip_reason": "not found"}


@pytest.mark.parametrize(
    ("known", "code", "said"),
    [
        ([SOUND], 0, "1 packages looked up"),
        ([SOUND, WEAK], 1, "CVE-1, mended in 2"),
        ([SOUND, UNASKED], 3, "not known there: c"),
        ([UNASKED], 3, "NOT AUDITED"),
        ([], 3, "NOT AUDITED"),
        (None, 3, "NOT AUDITED"),
    ],
)
def test_what_the_audit_says(known: Any, code: int, said: str, tmp_path: Path, capsys: Any) -> None:
    tool = tmp_path / "pip-audit"
    (tmp_path / "said").write_text("no network" if known is None else json.dumps({"dependencies": known}))
    tool.write_text(f"#!/bin/sh\ncat {tmp_path}/said\n")
    tool.chmod(0o755)
    assert report().main([str(tool), "some.lock"]) == code
    printed = capsys.readouterr().out
    assert said in printed
    assert "mitmproxy" in printed, "the licences follow"


def test_the_script_is_sound() -> None:
    script = ROOT / "scripts" / "audit" / "run"
    assert os.access(script, os.X_OK)
    subprocess.run(["bash", "-n", script], check=True)
