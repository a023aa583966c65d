"""The longer checks are sound scripts that write no index and no address."""

import os
import subprocess
from pathlib import Path

import pytest

FUZZ = Path(__file__).parents[2] / "scripts" / "fuzz"


@pytest.mark.parametrize("script", sorted(path.name for path in FUZZ.iterdir() if not path.suffix))
def test_scripts_are_executable_and_sound(script: str) -> None:
    assert os.access(FUZZ / script, os.X_OK)
    subprocess.run(["bash", "-n", FUZZ / script], check=True)


@pytest.mark.parametrize(("name", "tool"), [("requirements.lock", "schemathesis"), ("atheris.lock", "atheris")])
def test_their_packages_are_pinned_with_hashes(name: str, tool: str) -> None:
    lock = (FUZZ / name).read_text()
    assert f"{tool}==" in lock
    assert "--hash=sha256:" in lock
    assert "://" not in lock


LAWS = Path(__file__).parents[1] / "fuzz"


@pytest.mark.parametrize("path", sorted(LAWS.glob("test_*.py")), ids=lambda path: path.stem)
def test_every_law_is_bounded_and_can_be_given_to_the_fuzzer(path: Path) -> None:
    text = path.read_text()
    assert text.count("\ndef test_") == text.count("\n@law\n@given(")
