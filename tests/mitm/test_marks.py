"""How a finished turn shows on its flow."""

import json

import pytest
from mitmproxy.test import tflow
from mitmproxy.utils.emoji import emoji

from combos.core.facts import Cooldown, Scope, Verdict
from combos.engine.record import AttemptRecord, DecisionRecord, Outcome, TurnRecord
from combos.mitm.marks import annotate, mark_of, metadata_of


def record(outcome: Outcome | None, attempts: int = 1, waits: tuple[int, ...] = ()) -> TurnRecord:
    made = TurnRecord("combo/main", "main", 1_000, outcome=outcome, status=200, ended_ms=1_800, waits_ms=list(waits))
    for number in range(attempts):
        made.attempts.append(AttemptRecord(number, "alpha", f"m{number}", 1_000, status=200))
    return made


@pytest.mark.parametrize(
    ("made", "mark"),
    [
        (record(Outcome.SUCCESS), ""),
        (record(Outcome.SUCCESS, 2), ":repeat:"),
        (record(Outcome.SUCCESS, 1, (5,)), ":hourglass:"),
        (record(Outcome.SUCCESS, 2, (5,)), ":repeat:"),
        (record(Outcome.TERMINAL), ":no_entry:"),
        (record(Outcome.EXHAUSTED, 2), ":no_entry:"),
        (record(Outcome.REFUSED, 0), ":no_entry:"),
        (record(Outcome.UNAVAILABLE, 0), ":snowflake:"),
        (record(Outcome.CUT), ":zap:"),
        (record(Outcome.CANCELLED), ""),
    ],
)
def test_marks(made: TurnRecord, mark: str) -> None:
    assert mark_of(made) == mark
    assert not mark or mark in emoji


def test_metadata_is_plain_and_complete() -> None:
    made = record(Outcome.SUCCESS, 2)
    made.attempts[0].verdict = Verdict("overload", hop=True, scope=Scope.TARGET)
    made.attempts[0].cooldown = Cooldown(60_000, "default")
    made.attempts[1].dropped = ("seed",)
    found = metadata_of(made)
    assert json.loads(json.dumps(found)) == found
    assert found["combo"] == "main"
    assert found["outcome"] == "success"
    first, second = found["attempts"]  # type: ignore[misc]
    assert (first["target"], first["rule"], first["cooldown_ms"], first["cooldown_source"]) == (
        "alpha/m0",
        "overload",
        60_000,
        "default",
    )
    assert (second["rule"], second["cooldown_ms"]) == (None, None)
    assert (first["dropped"], second["dropped"]) == ([], ["seed"])


def test_metadata_of_a_decision() -> None:
    made = record(Outcome.SUCCESS, 1)
    assert metadata_of(made)["decision"] is None
    made.decision = DecisionRecord("model", "timeout", "alpha", "m", None, 4_000)
    shown = metadata_of(made)["decision"]
    assert isinstance(shown, dict)
    assert (shown["backend"], shown["gate"], shown["latency_ms"], shown["effort"]) == ("model", "timeout", 4_000, None)


def test_annotating_twice_tells_whether_something_changed() -> None:
    flow = tflow.tflow()
    made = record(Outcome.SUCCESS, 2)
    assert annotate(flow, made)
    assert flow.comment == "main: alpha/m0 200 → alpha/m1 200 (1 hop, 0.8 s)"
    assert flow.marked == ":repeat:"
    assert not annotate(flow, made)
    made.ended_ms = 2_000
    assert annotate(flow, made)
    assert flow.comment.endswith("1.0 s)")


def test_what_a_person_wrote_stays() -> None:
    flow = tflow.tflow()
    flow.comment, flow.marked = "look at this", ":red_circle:"
    assert not annotate(flow, record(Outcome.SUCCESS, 2))
    assert (flow.comment, flow.marked) == ("look at this", ":red_circle:")
    assert flow.metadata["combos"]["mark"] == ":repeat:"
    flow = tflow.tflow()
    made = record(None)
    annotate(flow, made)
    flow.comment = "typed meanwhile"
    made.outcome = Outcome.CUT
    annotate(flow, made)
    assert (flow.comment, flow.marked) == ("typed meanwhile", ":zap:")
