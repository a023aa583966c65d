"""Who may be chosen, with which effort, and what is used when nobody chooses."""

from typing import Any

import pytest

from combos.core.registry import Registry
from combos.decision.gates import Closed, Gate
from combos.decision.options import Candidate, Option, candidates_of, fail_open, notes_of, options_of
from decisions import main_of, provider, registry, row, target

LADDER = provider(reasoningEfforts=["low", "medium", "high"])
POLICY = "before-last-resort"


def candidates(made: Registry, *eligible: str) -> tuple[Candidate, ...]:
    combo = main_of(made)
    kept = [target for target in combo.targets if not eligible or target.key in eligible]
    return candidates_of(combo, kept)


def keys(made: Registry, *eligible: str) -> list[str]:
    return [candidate.key for candidate in candidates(made, *eligible)]


def test_one_option_per_target_and_effort_in_order() -> None:
    made = registry(
        [target("beta/m2"), target("alpha/m1")],
        providers={"alpha": provider(reasoningEfforts=["high", "low", "none", "minimal"])},
    )
    options = options_of(candidates(made))
    assert list(options) == ["beta/m2:none", "alpha/m1:low", "alpha/m1:high"]
    assert options["beta/m2:none"].effort is None
    assert options["alpha/m1:high"].criteria == {
        "target": "alpha/m1",
        "provider": "alpha",
        "model": "m1",
        "reasoning_effort": "high",
    }
    assert options["alpha/m1:high"].description == (
        "Target alpha/m1 (provider alpha, model m1) with high reasoning effort."
    )
    assert options["beta/m2:none"].description == (
        "Target beta/m2 (provider beta, model m2) with no reasoning-effort control."
    )


def test_only_eligible_targets_are_offered() -> None:
    assert keys(registry(), "beta/m2") == ["beta/m2"]


@pytest.mark.parametrize(
    ("ladder", "allowed", "efforts"),
    [
        (["low", "medium", "high"], ["high", "low"], ("low", "high")),
        (["low", "medium", "high"], ["high", "ultra"], ("high",)),
        (["low"], None, ("low",)),
        ([], None, ()),
        (None, None, ()),
    ],
)
def test_an_allowlist_narrows_the_ladder(ladder: Any, allowed: Any, efforts: tuple[str, ...]) -> None:
    config = provider() if ladder is None else provider(reasoningEfforts=ladder)
    limits = {} if allowed is None else {"reasoningEfforts": allowed}
    made = registry([target("alpha/m1", **limits)], providers={"alpha": config})
    assert [candidate.efforts for candidate in candidates(made)] == [efforts]


@pytest.mark.parametrize("ladder", [["low", "medium"], [], None])
def test_an_allowlist_that_fits_no_rung_removes_the_option_and_not_the_target(ladder: Any) -> None:
    config = provider() if ladder is None else provider(reasoningEfforts=ladder)
    made = registry([target("alpha/m1", reasoningEfforts=["xhigh"]), target("beta/m2")], providers={"alpha": config})
    assert keys(made) == ["beta/m2"]
    assert [t.key for t in main_of(made).targets] == ["alpha/m1", "beta/m2"]


def test_a_row_of_the_decision_service_is_skipped() -> None:
    made = registry(providers={"jev": provider(), "zen": row("http://127.0.0.1:1/v1/systemone")})
    combo = main_of(registry([target("jev/x"), target("beta/m2")], providers={"jev": provider()}))
    assert [candidate.key for candidate in candidates_of(combo, combo.targets)] == ["beta/m2"]
    assert keys(made) == ["alpha/m1", "beta/m2"]


class TestLastResort:
    TARGETS = (target("alpha/m1", lastResort=True), target("beta/m2"))

    def test_withheld_under_the_policy(self) -> None:
        assert keys(registry(self.TARGETS, cooldownWaitPolicy=POLICY)) == ["beta/m2"]

    def test_offered_when_alone(self) -> None:
        assert keys(registry(self.TARGETS, cooldownWaitPolicy=POLICY), "alpha/m1") == ["alpha/m1"]

    def test_inert_without_the_policy(self) -> None:
        assert keys(registry(self.TARGETS)) == ["alpha/m1", "beta/m2"]

    def test_offered_when_the_normal_target_is_no_candidate(self) -> None:
        targets = (self.TARGETS[0], target("beta/m2", reasoningEfforts=["low"]))
        assert keys(registry(targets, cooldownWaitPolicy=POLICY)) == ["alpha/m1"]


@pytest.mark.parametrize(
    ("efforts", "effort"),
    [
        (("low", "medium", "high"), "medium"),
        (("low", "high"), "low"),
        (("high", "max"), "high"),
        ((), None),
    ],
)
def test_without_a_decision_the_first_candidate_at_medium_or_the_nearest(
    efforts: tuple[str, ...], effort: str | None
) -> None:
    first = Candidate("a", "m", efforts)
    assert fail_open((first, Candidate("b", "m", ("medium",)))) == Option(first, effort)


def test_nothing_to_fall_back_on() -> None:
    assert fail_open(()) is None


class TestBounds:
    @pytest.mark.parametrize(
        ("made", "gate"),
        [
            ((), Gate.NO_CHOICES),
            (tuple(Candidate("p", f"m{n}") for n in range(65)), Gate.INVALID),
            ((Candidate("p" * 513, "m"),), Gate.INVALID),
            ((Candidate("p", "m" * 511),), Gate.INVALID),
            ((Candidate("", "m"),), Gate.INVALID),
            ((Candidate("p", ""),), Gate.INVALID),
            ((Candidate("p", "m", (), "n" * 513),), Gate.INVALID),
            ((Candidate("p", "m"), Candidate("p", "m")), Gate.INVALID),
        ],
    )
    def test_beyond(self, made: tuple[Candidate, ...], gate: Gate) -> None:
        with pytest.raises(Closed) as closed:
            options_of(made)
        assert closed.value.gate is gate

    @pytest.mark.parametrize(
        "made",
        [
            tuple(Candidate("p", f"m{n}") for n in range(64)),
            (Candidate("p", "m" * 510),),
            (Candidate("p", "m", (), "n" * 512),),
        ],
    )
    def test_within(self, made: tuple[Candidate, ...]) -> None:
        assert len(options_of(made)) == len(made)


def test_notes_are_trimmed_and_blank_ones_ignored() -> None:
    made = registry([target("alpha/m1", modelProfile=" cheap\n\tone "), target("beta/m2", modelProfile="  ")])
    assert notes_of(candidates(made)) == {"alpha/m1": "cheap\n\tone"}
