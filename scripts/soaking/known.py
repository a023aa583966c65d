"""The failures that the tests know by name, as answers of a provider."""

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

_FILE = Path(__file__).parents[2] / "tests" / "data" / "classification-cases.json"
_DIALECTS = {"openai-responses": "responses", "openai-chat": "chat", "anthropic": "messages"}
_CLOCKED = ("retry-after", "reset")


@dataclass(frozen=True)
class Case:
    """One failed answer. `verdicts` are those that are right; `rests`: its headers may cool the target for long."""

    id: str
    status: int
    headers: tuple[tuple[str, str], ...]
    body: bytes
    verdicts: tuple[str, ...]
    rests: bool


@dataclass
class Cases:
    """HTTP errors, which any provider may send, and failures within streams by dialect."""

    plain: list[Case] = field(default_factory=list)
    events: dict[str, list[Case]] = field(default_factory=dict)


def _case(entry: dict[str, Any], body: bytes) -> Case:
    expected = entry["expected"]
    also = expected.get("accept", {}).get("verdict", [])
    headers = entry["headers"] or {}
    fields = {name.lower(): value for name, value in headers.items()}
    fields.setdefault("content-type", "application/json")
    rests = any(mark in name for name in fields for mark in _CLOCKED)
    verdicts = tuple(dict.fromkeys((expected["verdict"], *also)))
    return Case(entry["id"], entry["status"], tuple(fields.items()), body, verdicts, rests)


def _load() -> Cases:
    cases = Cases()
    for entry in json.loads(_FILE.read_text()):
        if "run_turn" in entry or "pool" in entry or entry["status"] is None:
            continue
        if "sse" in entry and entry["status"] == 200:
            made = _case(entry, entry["sse"].encode())
            cases.events.setdefault(_DIALECTS[entry["dialect"]], []).append(made)
        elif entry["status"] >= 400 and "body" in entry:
            cases.plain.append(_case(entry, entry["body"].encode()))
    return cases


CASES = _load()
