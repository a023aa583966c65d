"""How a finished turn shows in mitmproxy's lists: mark, one-line comment, metadata. Decides nothing about the turn."""

from dataclasses import asdict

from mitmproxy.http import HTTPFlow

from combos.engine.record import AttemptRecord, Outcome, TurnRecord, trail

HOPPED = ":repeat:"
STOPPED = ":no_entry:"
UNAVAILABLE = ":snowflake:"
WAITED = ":hourglass:"
CUT = ":zap:"

_OUTCOME_MARKS = {
    Outcome.TERMINAL: STOPPED,
    Outcome.REFUSED: STOPPED,
    Outcome.EXHAUSTED: STOPPED,
    Outcome.UNAVAILABLE: UNAVAILABLE,
    Outcome.CUT: CUT,
}


def mark_of(record: TurnRecord) -> str:
    """The flow's mark, a name from mitmproxy's emoji table; empty for a first-target success."""
    if record.outcome in _OUTCOME_MARKS:
        return _OUTCOME_MARKS[record.outcome]
    if len(record.attempts) > 1:
        return HOPPED
    return WAITED if record.waits_ms else ""


def _attempt(record: AttemptRecord) -> dict[str, object]:
    return {
        "target": f"{record.provider}/{record.model}",
        "status": record.status,
        "result": record.result,
        "rule": record.verdict.rule if record.verdict else None,
        "cooldown_ms": record.cooldown.ms if record.cooldown else None,
        "cooldown_source": record.cooldown.source if record.cooldown else None,
        "dropped": list(record.dropped),
    }


def metadata_of(record: TurnRecord) -> dict[str, object]:
    """What `~meta` searches and `-w` keeps: plain values, no credentials, no text of the conversation."""
    return {
        "combo": record.combo,
        "requested_model": record.requested_model,
        "outcome": record.outcome.value if record.outcome else None,
        "reason": record.reason,
        "attempts": [_attempt(attempt) for attempt in record.attempts],
        "waits_ms": list(record.waits_ms),
        "decision": asdict(record.decision) if record.decision else None,
    }


def annotate(flow: HTTPFlow, record: TurnRecord) -> bool:
    """Write mark, comment and metadata; a mark or comment that a person set stays. Tells whether the view changed."""
    ours = flow.metadata.get("combos", {})
    new = {**ours, **metadata_of(record), "comment": trail(record), "mark": mark_of(record)}
    flow.metadata["combos"] = new
    before = (flow.comment, flow.marked)
    if flow.comment in ("", ours.get("comment")):
        flow.comment = new["comment"]
    if flow.marked in ("", ours.get("mark")):
        flow.marked = new["mark"]
    return before != (flow.comment, flow.marked)
