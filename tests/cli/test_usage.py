"""`ocx usage` over a ledger: what it adds up and what it calls unknown."""

import json
import re
import time
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from combos.admin.ledger_file import open_for_writing
from combos.admin.usage_record import usage_document
from combos.cli.main import main
from records import append, attempt, decision, registry, turn

PRICES = registry()


def ocx(home: Path, *arguments: str) -> Result:
    return CliRunner().invoke(main, list(arguments), env={"COMBOS_HOME": str(home), "COMBOS_CONFIG": None})


@pytest.fixture
def home(tmp_path: Path) -> Path:
    now_ms = time.time_ns() // 1_000_000
    rows = [turn(), turn(attempt(usage=None), combo=None), turn(attempt(), decision=decision())]
    connection = open_for_writing(tmp_path / "usage.sqlite")
    append(connection, [usage_document(record, PRICES, now_ms) for record in rows])
    connection.close()
    return tmp_path


def lines(done: Result) -> list[list[str]]:
    assert done.exit_code == 0, done.output
    return [re.split(r"\s{2,}", line.strip()) for line in done.stdout.splitlines()]


def test_per_combo_and_per_model(home: Path) -> None:
    done = ocx(home, "usage", "--range", "all")
    assert lines(done) == [
        ["main", "2", "2", "1", "50", "14", "$0.0003"],
        ["direct", "1", "1", "0", "unknown", "unknown", "unknown"],
        ["all", "3", "3", "1", "50", "14", "$0.0003"],
        [""],
        ["alpha/m1", "3", "2", "1", "25", "7", "$0.0001"],
        ["beta/m2", "1", "1", "0", "25", "7", "$0.0002"],
    ]
    assert "2 of 4 attempts reported no usage: their tokens are unknown, not zero." in done.stderr
    assert "2 of 4 attempts have no known price: the cost is that of the others." in done.stderr


def test_filters_and_json(home: Path) -> None:
    body = json.loads(ocx(home, "usage", "--provider", "beta", "--json").stdout)
    assert (body["summary"]["requests"], body["summary"]["served"]) == (None, 1)
    assert lines(ocx(home, "usage", "--provider", "beta"))[0] == [
        "main", "unknown", "unknown", "unknown", "25", "7", "$0.0002",
    ]  # fmt: skip


def test_decisions(home: Path) -> None:
    done = ocx(home, "usage", "--jev", "--combo", "main")
    assert lines(done) == [
        ["1 decisions, 1 applied, 0 failed open, 200.0 ms on average"],
        ["apply: 1"],
        ["alpha/m1", "1", "high × 1", "1", "25", "7"],
    ]
    assert json.loads(ocx(home, "usage", "--jev", "--json").stdout)["summary"]["decisions"] == 1


def test_a_file_that_is_no_ledger(home: Path) -> None:
    (home / "usage.sqlite").write_bytes(b"no database at all" * 100)
    done = ocx(home, "usage")
    assert done.exit_code == 1
    assert "cannot be read" in done.stderr
