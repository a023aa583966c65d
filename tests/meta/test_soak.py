"""A small soak with a fixed seed, so that the script stays in order; what it shows at length is for people to read."""

import os
import subprocess
import sys
from pathlib import Path

SCRIPTS = Path(__file__).parents[2] / "scripts"
SOAK = SCRIPTS / "soaking" / "soak.py"


def soak(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, SOAK, *arguments], capture_output=True, text=True, check=False)


def test_nothing_is_wrong_with_a_few_hundred_requests() -> None:
    # Long limits and nobody who falls silent: a busy machine is no provider that fails.
    done = soak("--requests", "300", "--seed", "5", "--concurrency", "20", "--patience", "60", "--brisk")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "300 requests" in done.stdout
    assert "nothing wrong" in done.stdout
    for row in ("answers", "clients", "sockets", "flows", "memory"):
        assert row in done.stdout


def test_one_request_can_be_sent_again() -> None:
    done = soak("--seed", "5", "--only", "17", "--patience", "60")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "seed 5: 1 requests" in done.stdout


def test_the_script_is_executable() -> None:
    assert os.access(SCRIPTS / "soak", os.X_OK)
    subprocess.run(["bash", "-n", SCRIPTS / "soak"], check=True)
