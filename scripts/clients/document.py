"""Renews the made parts of docs/clients.md: the setups as they are run, and the tables of what was run.

A made part stands between `<!-- name -->` and `<!-- end -->`: `<!-- file NAME -->` a file of `setups/`,
`<!-- versions -->` the clients, `<!-- scenarios -->` the scenarios, `<!-- table CLIENT -->` its results.
"""

import json
import re
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path

from cells import DIALECTS, SCENARIOS, SETUPS, Cell, Setup, cells

DOCUMENT = Path(__file__).parents[2] / "docs" / "clients.md"
_SETUPS = Path(__file__).with_name("setups")
_PART = re.compile(r"<!-- (?P<kind>file|versions|scenarios|table) ?(?P<name>\S*) -->\n.*?<!-- end -->\n", re.DOTALL)
LETTERS = {dialect: dialect[0].upper() for dialect in DIALECTS}
"""Responses, Chat Completions, Messages, Gemini."""
FAILED = "!"
NOT_RUN = "·"
TITLES = {
    "codex": "Codex CLI",
    "claude": "Claude Code",
    "opencode": "opencode",
    "aider": "Aider",
    "openai-python": "OpenAI for Python",
    "anthropic-python": "Anthropic for Python",
    "google-python": "google-genai for Python",
    "litellm": "LiteLLM",
    "openai-node": "OpenAI for Node",
    "anthropic-node": "Anthropic for Node",
}


def recorded(file: Path) -> dict[str, str]:
    """The last result of each cell in a record: empty when it came out well."""
    rows = [json.loads(line) for line in file.read_text().splitlines()]
    return {row["cell"]: row["wrong"] for row in rows}


def renewed(text: str, results: Mapping[str, str], versions: Mapping[str, str]) -> str:
    """The document with its made parts made again."""
    today = datetime.now(UTC).date().isoformat()

    def part(found: re.Match[str]) -> str:
        kind, name = found["kind"], found["name"]
        made = {
            "file": lambda: shown_file(name),
            "versions": lambda: _versions(versions, today),
            "scenarios": _scenarios,
            "table": lambda: table(name, results),
        }[kind]()
        return f"<!-- {f'{kind} {name}'.strip()} -->\n{made}<!-- end -->\n"

    return _PART.sub(part, text)


def shown_file(name: str) -> str:
    """A setup as a block of code."""
    text = (_SETUPS / name).read_text()
    return f"```{name.rpartition('.')[2]}\n{text}```\n"


def _versions(versions: Mapping[str, str], today: str) -> str:
    rows = [f"| {TITLES[client]} | {versions.get(client, 'not installed')} |" for client in TITLES]
    return "\n".join([f"Run on {today}:", "", "| Client | Version |", "|---|---|", *rows, ""])


def _scenarios() -> str:
    rows = [f"| {scenario.name} | {scenario.title} |" for scenario in SCENARIOS]
    return "\n".join(["| Scenario | What happens |", "|---|---|", *rows, ""])


def table(client: str, results: Mapping[str, str]) -> str:
    """The results of a client, one row for each way to set it up, and what it does besides answering."""
    setups = [setup for setup in SETUPS if setup.client == client]
    columns = [scenario for scenario in SCENARIOS if any(scenario.name in setup.expected for setup in setups)]
    head = ["Entrance", "Set up as", *(scenario.name for scenario in columns)]
    rows = [_row(setup, [scenario.name for scenario in columns], results) for setup in setups]
    lines = ["| " + " | ".join(row) + " |" for row in (head, ["---"] * len(head), *rows)]
    return "\n".join([*lines, "", *_words(setups), ""])


def _row(setup: Setup, columns: list[str], results: Mapping[str, str]) -> list[str]:
    return [setup.entrance, setup.title, *(_letters(setup, name, results) for name in columns)]


def _letters(setup: Setup, scenario: str, results: Mapping[str, str]) -> str:
    mine = [cell for cell in cells() if cell.setup == setup and cell.scenario.name == scenario]
    return " ".join(_letter(cell, results) for cell in mine)


def _letter(cell: Cell, results: Mapping[str, str]) -> str:
    if cell.id not in results:
        return NOT_RUN
    letter = LETTERS[cell.dialect]
    return f"{letter}{FAILED}" if results[cell.id] else letter


def _words(setups: list[Setup]) -> list[str]:
    found: dict[str, list[str]] = {}
    for setup in setups:
        for name, expected in setup.expected.items():
            if expected.words != "answer" and expected.words not in found.setdefault(name, []):
                found[name].append(expected.words)
    return [f"- {name}: {'; or '.join(words)}" for name, words in found.items() if words]
