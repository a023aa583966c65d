"""The judge of the runs of real clients finds each kind of fault: runs as they should be, and spoilt ones."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

CLIENTS = Path(__file__).parents[2] / "scripts" / "clients"

# In a process of its own: the scripts have modules of the same names as the tests.
PROGRAM = """
import json, sys
sys.path.insert(0, sys.argv[1])
from types import SimpleNamespace
import judge
from cells import cells
from checks import CheckError
from drive import Outcome
from upstream import Seen, Upstream

judge.TRIES = 1

def request(cell, run, letter, at):
    name = f"{cell.id}-{letter}"
    headers = {"x-api-key": f"{name}-key", **run.get("headers", {})}
    body = {"model": run.get("model", "m1"), "messages": [run.get("said", "TOOL_RAN_42")]}
    return Seen(name, "/v1/messages", run.get("wire", "messages"), headers, body, at * run.get("apart", 2.0))

def verdict(run):
    cell = next(one for one in cells() if one.id == run.get("cell", "claude-base-messages-hop"))
    expected = cell.expected
    seen = [request(cell, run, letter, at) for at, letter in enumerate(run.get("calls", expected.calls))]
    trail = " -> ".join(f"{one.name}/m1 200" for one in seen[: run.get("named", len(seen))])
    stage = SimpleNamespace(
        upstream=Upstream(seen=seen),
        log=[f"combos: {cell.id}: {trail}"],
        calls=lambda _: "".join(one.name[-1] for one in seen),
    )
    text, failed = ("FINAL-ANSWER-OK", "") if expected.answered else ("", "broken")
    try:
        judge.judge(stage, cell, Outcome(run.get("text", text), run.get("failed", failed), 1.0))
    except CheckError as wrong:
        return str(wrong)
    return ""

print(json.dumps([verdict(run) for run in json.load(sys.stdin)]))
"""

GOOD: list[dict[str, object]] = [
    {},
    {"cell": "anthropic-python-base-messages-late"},
    {"cell": "claude-base-messages-limit"},
    {"cell": "claude-base-messages-compact", "said": "SUMMARY-OF-THE-CONVERSATION"},
]
SPOILT: list[tuple[dict[str, object], str]] = [
    ({"calls": "bb"}, "expected 'abb'"),
    ({"calls": "abbb"}, "expected 'abb'"),
    ({"text": "PART"}, "no answer"),
    ({"failed": "exit status 1"}, "no answer"),
    ({"wire": "chat"}, "was asked in chat"),
    ({"model": "combo/main"}, "another model"),
    ({"headers": {"x-api-key": "my-own-key"}}, "got the key"),
    ({"headers": {"cookie": "my-own-key"}}, "was sent"),
    ({"headers": {"authorization": "Bearer my-login-key"}}, "was sent"),
    ({"headers": {"chatgpt-account-id": "x"}}, "was sent"),
    ({"said": "nothing"}, "the result of the tool did not come back"),
    ({"named": 2}, "the trail names"),
    ({"cell": "anthropic-python-base-messages-late", "text": "FINAL-ANSWER-OK"}, "no failure"),
    ({"cell": "anthropic-python-base-messages-late", "failed": ""}, "no failure"),
    ({"cell": "anthropic-python-base-messages-late", "failed": "RuntimeError: SILENT"}, "as if it were whole"),
    ({"cell": "claude-base-messages-limit", "apart": 0.5}, "asked again after 0.50 s"),
    ({"cell": "claude-base-messages-compact"}, "does not hold the summary"),
    ({"cell": "claude-base-messages-compact", "said": "SUMMARY-OF-THE-CONVERSATION TOOL_RAN_42"}, "is still sent"),
]


@pytest.fixture(scope="module")
def verdicts() -> list[str]:
    """What the judge says of each run."""
    runs = json.dumps([*GOOD, *(run for run, _ in SPOILT)])
    command = [sys.executable, "-c", PROGRAM, str(CLIENTS)]
    done = subprocess.run(command, input=runs, capture_output=True, text=True, check=True)
    return [str(each) for each in json.loads(done.stdout)]


@pytest.mark.parametrize("number", range(len(GOOD)), ids=[str(run) for run in GOOD])
def test_a_run_as_it_should_be(number: int, verdicts: list[str]) -> None:
    assert verdicts[number] == ""


@pytest.mark.parametrize("number", range(len(SPOILT)), ids=[str(run) for run, _ in SPOILT])
def test_each_fault_is_found(number: int, verdicts: list[str]) -> None:
    assert SPOILT[number][1] in verdicts[len(GOOD) + number]
