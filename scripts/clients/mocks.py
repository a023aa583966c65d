"""Runs the tests that need mock providers of others, one line each as for the real clients."""

import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
TESTS = ROOT / "tests" / "e2e" / "test_mocks.py"


class Lines:
    """A pytest plugin: one line for each test."""

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        name = report.nodeid.rpartition("::")[2].removeprefix("test_").replace("_", " ")
        if report.skipped:
            why = report.longrepr[2] if isinstance(report.longrepr, tuple) else ""
            print(f"skipped mocks: {name}: {why}", flush=True)
        elif report.failed:
            print(f"FAILED  mocks: {name}: {report.longreprtext.splitlines()[-1]}", flush=True)
            print(report.longreprtext, file=sys.stderr, flush=True)
        elif report.when == "call":
            print(f"ok      mocks: {name}", flush=True)


if __name__ == "__main__":
    options = ["-o", "addopts=--import-mode=importlib", "-p", "no:terminal", "-p", "no:xdist"]
    sys.exit(pytest.main([str(TESTS), *options], plugins=[Lines()]))
