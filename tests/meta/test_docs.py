"""What a user can set, meet or run is documented: the documents name every rule, option, command and opt-in field."""

import inspect
import re
from pathlib import Path

import pytest

from combos.core.config_combo import Strategy
from combos.core.eligibility import Reason
from combos.decision.gates import Gate
from combos.engine.record import Outcome
from combos.mitm import labels, marks
from combos.mitm.commands import Commands
from combos.mitm.options import OPTIONS
from manual.markup import DOCUMENTS, blocks, commands

ROOT = Path(__file__).parents[2]
DOCS = "\n".join(path.read_text() for path in (ROOT / "docs").glob("*.md"))
README = (ROOT / "README.md").read_text()
OPT_INS = ("firstOutputTimeoutMs", "hedgeAfterMs", "affinity", "contextOverflow")


@pytest.mark.parametrize("reason", list(Reason))
def test_every_reason_is_documented(reason: Reason) -> None:
    assert f"`{reason.value}`" in DOCS


@pytest.mark.parametrize("strategy", list(Strategy))
def test_every_strategy_is_documented(strategy: Strategy) -> None:
    assert f"`{strategy.value}`" in DOCS


@pytest.mark.parametrize("field", OPT_INS)
def test_every_opt_in_is_documented(field: str) -> None:
    assert f"`{field}" in DOCS


@pytest.mark.parametrize("option", [option.name for option in OPTIONS])
def test_every_option_is_documented(option: str) -> None:
    assert f"`{option}`" in DOCS


def command_names() -> list[str]:
    members = (getattr(Commands, name) for name in dir(Commands))
    return sorted(member.command_name for member in members if hasattr(member, "command_name"))


def test_there_are_commands() -> None:
    assert len(command_names()) == 6


@pytest.mark.parametrize("command", command_names())
def test_every_command_is_documented(command: str) -> None:
    assert f"`{command}" in DOCS
    assert f"`{command}" in README


def test_the_readme_begins_with_what_it_is_and_is_not_and_the_two_commands() -> None:
    before = README[: README.index("```console")]
    assert "is a mitmproxy addon" in before
    assert "is **not**" in before
    typed = [command.line for block in blocks("console") if block.page == "README.md" for command in commands(block)]
    assert typed[:2] == ["./scripts/run", "./scripts/test"]


def test_the_readme_is_one_page() -> None:
    assert len(README.splitlines()) <= 150


@pytest.mark.parametrize("page", DOCUMENTS)
def test_a_page_begins_with_its_name_and_what_it_answers(page: str) -> None:
    name, blank, first, *_ = DOCUMENTS[page].splitlines()
    assert name.startswith("# ")
    assert blank == ""
    assert first[:1].isalpha() or first.startswith("`"), "a sentence, not a list or a heading"


@pytest.mark.parametrize("outcome", list(Outcome))
def test_every_outcome_is_explained(outcome: Outcome) -> None:
    assert f"`{outcome.value}`" in DOCUMENTS["docs/troubleshooting.md"]


@pytest.mark.parametrize("gate", list(Gate))
def test_every_end_of_a_decision_is_explained(gate: Gate) -> None:
    assert f"`{gate.value}`" in DOCUMENTS["docs/decisions.md"]


@pytest.mark.parametrize("mark", sorted(set(re.findall(r'":\w+:"', inspect.getsource(marks)))))
def test_every_mark_is_explained(mark: str) -> None:
    assert f"| `{mark[1:-1]}` |" in DOCUMENTS["docs/mitmproxy.md"]


@pytest.mark.parametrize("header", sorted(set(re.findall(r'b?"(x-combos-[\w-]+)"', inspect.getsource(labels)))))
def test_every_header_of_ours_is_explained(header: str) -> None:
    assert f"`{header}`" in DOCUMENTS["docs/usage.md"]
