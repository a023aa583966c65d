import pytest

from combos.engine.record import AttemptRecord, DecisionRecord, Outcome, TurnRecord, trail


def attempt(provider: str, status: int | None, result: str = "") -> AttemptRecord:
    return AttemptRecord(0, provider, "m", 0, status=status, result=result)


@pytest.mark.parametrize(
    ("record", "line"),
    [
        (
            TurnRecord(
                "combo/main",
                "main",
                0,
                Outcome.SUCCESS,
                200,
                800,
                attempts=[attempt("alpha", 429), attempt("beta", 200)],
            ),
            "main: alpha/m 429 → beta/m 200 (1 hop, 0.8 s)",
        ),
        (
            TurnRecord("combo/main", "main", 0, Outcome.SUCCESS, 200, 120, attempts=[attempt("alpha", 200)]),
            "main: alpha/m 200 (0.1 s)",
        ),
        (
            TurnRecord(
                "combo/main",
                "main",
                0,
                Outcome.EXHAUSTED,
                502,
                4000,
                attempts=[
                    attempt("a", None, "connection_refused"),
                    attempt("b", None, "idle_timeout"),
                    attempt("c", 503),
                ],
                waits_ms=[1000, 2000],
            ),
            "main: a/m connection_refused → b/m idle_timeout → c/m 503 (2 hops, waited 3.0 s, exhausted, 4.0 s)",
        ),
        (
            TurnRecord("combo/main", "main", 0, Outcome.UNAVAILABLE, 503, 0, reason="alpha/m: cooling"),
            "main: 503 (unavailable, alpha/m: cooling, 0.0 s)",
        ),
        (
            TurnRecord("alpha/m", None, 0, Outcome.CANCELLED, 499, 50, attempts=[attempt("alpha", None)]),
            "alpha/m: alpha/m no answer (cancelled, 0.1 s)",
        ),
        (TurnRecord("combo/main", "main", 0, attempts=[attempt("alpha", 200)]), "main: alpha/m 200"),
        (
            TurnRecord(
                "combo/main",
                "main",
                0,
                attempts=[attempt("alpha", 200)],
                decision=DecisionRecord("typesafe", "apply", "alpha", "m", "high", 212),
            ),
            "main: alpha/m 200 (typesafe apply 0.2 s)",
        ),
    ],
)
def test_trail(record: TurnRecord, line: str) -> None:
    assert trail(record) == line
