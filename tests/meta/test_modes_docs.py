"""docs/modes.md: every test it names exists, and every mode and tool of mitmproxy has a row."""

import re
from pathlib import Path

import pytest
from mitmproxy.proxy.mode_specs import ProxyMode

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "docs" / "modes.md").read_text()
NAMED = sorted(set(re.findall(r"`(test_\w+)`", TEXT)))
# Modes that serve no HTTP, or that mitmproxy does not offer on the command line.
NOT_HTTP = {"dns", "tun", "osproxy"}


def test_tests_are_named() -> None:
    assert len(NAMED) > 25


@pytest.mark.parametrize("name", NAMED)
def test_every_test_that_is_named_exists(name: str) -> None:
    assert any(f"def {name}(" in path.read_text() for path in (ROOT / "tests").rglob("test_*.py"))


def modes() -> list[str]:
    found = ProxyMode._ProxyMode__types  # type: ignore[attr-defined]
    return sorted(set(found) - NOT_HTTP)


@pytest.mark.parametrize("mode", modes())
def test_every_mode_has_a_row(mode: str) -> None:
    assert re.search(rf"^\| `{mode}[:`]", TEXT, re.MULTILINE)


def test_every_row_of_an_option_or_addon_names_a_test() -> None:
    rows = [line for line in TEXT.partition("## Options")[2].splitlines() if line.startswith("| ")]
    bare = [row for row in rows if "`test_" not in row and not row.startswith(("| Option", "| An addon that"))]
    assert bare == []
