"""Whether a cell came out as it has to: what the user saw, what each target was sent, the trail in the proxy's log."""

import re
import time
from collections import Counter

from answers import OK, SUMMARY, TOOL_RESULT
from cells import Cell
from checks import Stage, expect
from drive import LOGIN_KEY, OWN_KEY, Outcome
from world import ACCOUNT

from upstream import Seen

_SECRETS = (OWN_KEY, LOGIN_KEY, ACCOUNT, "eyJhbGciOiAibm9uZSI", "chatgpt-account-id")
TRIES = 200
"""How often the log is looked at for a line that may still come, 50 ms apart."""
_KEYS = {"messages": "x-api-key", "gemini": "x-goog-api-key"}


def judge(stage: Stage, cell: Cell, outcome: Outcome) -> None:
    """Raises `CheckError` with what is wrong."""
    calls = stage.calls(cell.id)
    seen = f"the targets were asked {calls!r}; the user saw {outcome.text[-200:]!r} {outcome.failed[-400:]!r}"
    expect(calls == cell.expected.calls, f"expected {cell.expected.calls!r}: {seen}")
    if cell.expected.answered:
        expect(not outcome.failed and OK in outcome.text, f"no answer: {seen}")
    else:
        expect(outcome.failed and OK not in outcome.text, f"no failure: {seen}")
    expect("SILENT" not in outcome.failed, f"a broken stream ended as if it were whole: {seen}")
    requests = _requests(stage, cell)
    for request in requests:
        _sent_well(cell, request)
    if "tool" in cell.scripts[-1] and cell.scenario.name != "compact":
        expect(TOOL_RESULT in requests[-1].text, "the result of the tool did not come back")
    if cell.scenario.name == "compact":
        expect(SUMMARY in requests[-1].text, "what follows does not hold the summary")
        expect(TOOL_RESULT not in requests[-1].text, "what was summed up is still sent")
    if cell.scenario.name == "limit" and len(calls) > 1:
        waited = requests[-1].at - requests[0].at
        expect(waited >= 1, f"asked again after {waited:.2f} s")
    _trail(stage, cell)


def _requests(stage: Stage, cell: Cell) -> list[Seen]:
    return stage.upstream.all_of(*(f"{cell.id}-{letter}" for letter in "ab"))


def _sent_well(cell: Cell, request: Seen) -> None:
    """In the target's dialect, for its model, with its provider's key, and with none of the caller's credentials."""
    expect(request.wire == cell.dialect, f"a {cell.dialect} target was asked in {request.wire}")
    model = request.path if cell.dialect == "gemini" else f"/models/{request.body['model']}:"
    expect("/models/m1:" in model, f"another model was asked for: {model}")
    header = _KEYS.get(cell.dialect, "authorization")
    key = request.headers.get(header, "").removeprefix("Bearer ")
    expect(key == f"{request.name}-key", f"the target got the key {key!r} in {header}")
    leaked = [secret for secret in _SECRETS if secret in request.text]
    expect(not leaked, f"the target was sent {leaked}")


def _trail(stage: Stage, cell: Cell) -> None:
    """The log names each target as often as it was asked. Its last line may come after the client's end."""
    asked = Counter(request.name for request in _requests(stage, cell))
    named: Counter[str] = Counter()
    for _ in range(TRIES):
        lines = [line for line in list(stage.log) if f"combos: {cell.id}: " in line]
        named = Counter(re.findall(rf"({re.escape(cell.id)}-[ab])/m1 ", "\n".join(lines)))
        if named == asked:
            return
        time.sleep(0.05)
    expect(False, f"the trail names {dict(named)}, asked were {dict(asked)}")
