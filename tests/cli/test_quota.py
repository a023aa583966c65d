"""`ocx provider quota`: reports of the running proxy as lines for people."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from combos.cli import quota as module
from combos.cli.live import Live
from combos.cli.main import main

REPORTS = [
    {
        "provider": "alpha",
        "label": "A",
        "source": "s",
        "updatedAt": 1,
        "quota": {
            "fiveHourPercent": 12.4,
            "fiveHourResetAt": 1_790_856_000_000,
            "weeklyResetAt": 1_790_856_000_000,
            "customWindows": [{"label": "opus", "percent": 30}],
            "updatedAt": 1,
        },
        "routingQuota": {"state": "available"},
    },
    {
        "provider": "beta",
        "label": "B",
        "source": "s",
        "updatedAt": 1,
        "quota": {"creditsUsd": {"remaining": 4.5}, "updatedAt": 1},
        "routingQuota": {"state": "unknown"},
        "account": "work",
    },
]


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    paths: list[str] = []

    def call(self: Live, method: str, path: str, body: object = None, wait_s: float = 0) -> Any:
        paths.append(path)
        if path == "/api/providers":
            return [{"name": "alpha"}, {"name": "beta"}, {"name": "silent"}]
        return {"generatedAt": 1, "reports": REPORTS, "resting": [], "combos": []}

    monkeypatch.setattr(module, "open_live", lambda path, environ: Live("http://127.0.0.1:1", "t"))
    monkeypatch.setattr(Live, "call", call)
    return paths


def ocx(home: Path, *arguments: str) -> Result:
    return CliRunner().invoke(main, ["provider", "quota", *arguments], env={"COMBOS_HOME": str(home)})


def test_one_line_per_report(asked: list[str], tmp_path: Path) -> None:
    first, second = ocx(tmp_path).stdout.splitlines()
    assert re.fullmatch(
        r"alpha +available +5 h 12 % until \d{4}-\d\d-\d\d \d\d:\d\d, week unknown until [\d: -]+, opus 30 %", first
    )
    assert re.fullmatch(r"beta +work +unknown +\$4\.50 left", second)
    assert asked == ["/api/provider-quotas?"]


def test_one_provider_refreshed_and_as_json(asked: list[str], tmp_path: Path) -> None:
    body = json.loads(ocx(tmp_path, "beta", "--refresh", "--json").stdout)
    assert [report["provider"] for report in body["reports"]] == ["beta"]
    assert asked == ["/api/providers", "/api/provider-quotas?refresh=1"]
    assert "No vendor reports a quota." in ocx(tmp_path, "silent").stderr


def test_a_provider_that_is_not_there_is_no_provider_without_a_quota(asked: list[str], tmp_path: Path) -> None:
    for name, close in (("nobody", ""), ("alhpa", '; did you mean "alpha"?')):
        done = ocx(tmp_path, name, "--refresh", "--json")
        assert (done.exit_code, done.stdout) == (1, "")
        assert done.stderr == f"Error: unknown provider: {name}{close}\nTry: ocx provider list\n"
    assert asked == ["/api/providers", "/api/providers"]
