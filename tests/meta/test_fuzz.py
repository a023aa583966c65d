"""The longer checks are sound scripts that write no index and no address."""

import os
import subprocess
from pathlib import Path

import pytest

FUZZ = Path(__file__).parents[2] / "scripts" / "fuzz"


@pytest.mark.parametrize("script", sorted(path.name for path in FUZZ.iterdir() if path.suffix != ".lock"))
def test_scripts_are_executable_and_sound(script: str) -> None:
    assert os.access(FUZZ / script, os.X_OK)
    subprocess.run(["bash", "-n", FUZZ / script], check=True)


def test_their_packages_are_pinned_with_hashes() -> None:
    lock = (FUZZ / "requirements.lock").read_text()
    assert "schemathesis==" in lock
    assert "--hash=sha256:" in lock
    assert "://" not in lock
