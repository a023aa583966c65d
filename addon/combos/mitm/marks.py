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


def metadata_of(record: TurnRecord) -> dict[str, object]:
    """What `~meta` searches and `-w` keeps: plain values, no credentials, no text of the conversation."""
    outcome, decision = record.outcome, record.decision
    return {
        "combo": record.combo,
        "requested_model": record.requested_model,
        "outcome": None if outcome is None else str(outcome),
        "reason": record.reason,
        "attempts": [_attempt(attempt) for attempt in record.attempts],
        "waits_ms": record.waits_ms[:],
        "decision": None if decision is None else asdict(decision),
    }


def _attempt(record: AttemptRecord) -> dict[str, object]:
    verdict, cooldown = record.verdict, record.cooldown
    return {
        "target": f"{record.provider}/{record.model}",
        "status": record.status,
        "result": record.result,
        "rule": None if verdict is None else verdict.rule,
        "cooldown_ms": None if cooldown is None else cooldown.ms,
        "cooldown_source": None if cooldown is None else cooldown.source,
        "dropped": [*record.dropped],
    }


def annotate(flow: HTTPFlow, record: TurnRecord) -> bool:
    """Write mark, comment and metadata; a mark or comment that a person set stays. Tells whether the view changed."""
    comment, mark = trail(record), mark_of(record)
    new = metadata_of(record)
    new["comment"], new["mark"] = comment, mark
    before: dict[str, object] | None = flow.metadata.get("combos")
    flow.metadata["combos"] = new if before is None else {**before, **new}
    changes_comment = flow.comment != comment and (not flow.comment or _was_ours(flow.comment, before, "comment"))
    changes_mark = flow.marked != mark and (not flow.marked or _was_ours(flow.marked, before, "mark"))
    if changes_comment:
        flow.comment = comment
    if changes_mark:
        flow.marked = mark
    return changes_comment or changes_mark


def _was_ours(text: str, before: dict[str, object] | None, name: str) -> bool:
    return before is not None and text == before.get(name)
