"""Renews the made parts of docs/clients.md: the setups as they are run, and the tables of what was run.

A made part stands between `<!-- name -->` and `<!-- end -->`: `<!-- file NAME -->` a file of `setups/`,
`<!-- versions -->` the clients, `<!-- scenarios -->` the scenarios, `<!-- table CLIENT -->` its results.
"""

import json
import re
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path

from cells import DIALECTS, PACKAGES, SCENARIOS, SETUPS, Cell, Setup, cells

ROOT = Path(__file__).parents[2]
DOCUMENT = ROOT / "docs" / "clients.md"
_SETUPS = Path(__file__).with_name("setups")
_PART = re.compile(r"<!-- (?P<kind>file|versions|scenarios|table) ?(?P<name>\S*) -->\n.*?<!-- end -->\n", re.DOTALL)
LETTERS = {dialect: dialect[0].upper() for dialect in DIALECTS}
"""Responses, Chat Completions, Messages, Gemini."""
FAILED = "!"
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


def renewed(text: str, results: Mapping[str, str], versions: Mapping[str, str], day: str = "") -> str:
    """The document with its made parts made again; `day`: when the cells were run, by default today."""
    today = day or datetime.now(UTC).date().isoformat()

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
    return " ".join(filter(None, (_letter(cell, results) for cell in mine)))


def _letter(cell: Cell, results: Mapping[str, str]) -> str:
    if cell.id not in results:
        return ""
    letter = LETTERS[cell.dialect]
    return f"{letter}{FAILED}" if results[cell.id] else letter


def _words(setups: list[Setup]) -> list[str]:
    found: dict[str, list[str]] = {}
    for setup in setups:
        for name, expected in setup.expected.items():
            if expected.words != "answer" and expected.words not in found.setdefault(name, []):
                found[name].append(expected.words)
    return [f"- {name}: {'; or '.join(words)}" for name, words in found.items() if words]


# -- what is wrong with the document


def faults(text: str) -> list[str]:
    """What a document says that the scripts do not, or does not say."""
    results = _shown_results(text)
    day = re.search(r"^Run on (\d{4}-\d\d-\d\d):$", text, re.MULTILINE)
    same = renewed(text, results, pinned(), day[1] if day else "") == text
    return [
        *([] if same else ["a made part is not as the scripts make it: matrix --write-docs"]),
        *(f"{cell.id} is not shown" for cell in cells() if cell.in_ci and cell.id not in results),
        *(f"{name} failed" for name, wrong in results.items() if wrong),
        *(f"setups/{path.name} is not shown" for path in sorted(_SETUPS.iterdir()) if _mark(path.name) not in text),
        *(f"setups/{name} does not exist" for setup in SETUPS for name in setup.files if not (_SETUPS / name).exists()),
    ]


def _mark(name: str) -> str:
    return f"<!-- file {name} -->"


def _shown_results(text: str) -> dict[str, str]:
    """The results as the tables show them; a row or column that the scripts do not know is left out."""
    found: dict[str, str] = {}
    for part in _PART.finditer(text):
        if part["kind"] == "table":
            rows = [line.strip("| ").split(" | ") for line in part[0].splitlines() if line.startswith("|")]
            for row in rows[2:]:
                found |= _shown_row(part["name"], rows[0], row)
    return found


def _shown_row(client: str, head: list[str], row: list[str]) -> dict[str, str]:
    by_column = dict(zip(head, row, strict=False))
    setups = [one for one in SETUPS if (one.client, one.entrance, one.title) == (client, row[0], row[1])]
    return {
        cell.id: shown.partition(LETTERS[cell.dialect])[2]
        for cell in cells()
        for shown in by_column.get(cell.scenario.name, "").split()
        if cell.setup in setups and shown[0] == LETTERS[cell.dialect]
    }


def pinned() -> dict[str, str]:
    """The versions that are installed for the checks, by client."""
    return {client: _pin(lock, package) for client, (lock, package) in PACKAGES.items()}


def _pin(lock: str, package: str) -> str:
    folder = ROOT if lock == "requirements.lock" else Path(__file__).parent
    found = re.search(rf"^{re.escape(package)}(?:==|@)([\w.]+)", (folder / lock).read_text(), re.MULTILINE)
    return found[1] if found else ""
