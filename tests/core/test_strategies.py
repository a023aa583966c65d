import random
from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from combos.core.config_combo import Strategy
from combos.core.registry import Target
from combos.core.strategies import Evidence, RotationState, choose


def targets(*weights: int) -> list[Target]:
    return [Target(chr(65 + i), chr(97 + i), "m", None, None, weight) for i, weight in enumerate(weights)]


def evidence(draw: float = 0.0, resets: dict[str, int] | None = None) -> Evidence:
    return Evidence(lambda: draw, lambda target: (resets or {}).get(target.key))


def picks(strategy: Strategy, eligible: list[Target], state: RotationState, count: int, sticky: int = 1) -> str:
    out = []
    for _ in range(count):
        out.append(choose(strategy, eligible, state, evidence()).key)
        state.succeeded(out[-1], sticky)
    return "".join(out)


@pytest.mark.parametrize(
    ("weights", "expected"),
    [
        ((2, 1), "ABAABA"),
        ((5, 1, 1), "AABACAA"),
        ((3, 2), "ABABAABABA"),
        ((200, 100), "ABAABA"),
        ((1, 1, 1), "ABCABC"),
        ((1,), "AAA"),
    ],
)
def test_smooth_weights(weights: tuple[int, ...], expected: str) -> None:
    assert picks(Strategy.ROUND_ROBIN, targets(*weights), RotationState(), len(expected)) == expected


def test_batches_of_two() -> None:
    assert picks(Strategy.ROUND_ROBIN, targets(2, 1), RotationState(), 12, sticky=2) == "AABBAAAABBAA"


def test_without_a_success_the_selection_stays() -> None:
    state = RotationState()
    assert {choose(Strategy.ROUND_ROBIN, targets(1, 1), state, evidence()).key for _ in range(5)} == {"A"}


def test_a_hop_ends_the_batch_and_its_count() -> None:
    state = RotationState()
    a, b = targets(1, 1)
    assert choose(Strategy.ROUND_ROBIN, [a, b], state, evidence()) is a
    state.succeeded("A", 3)
    state.release("A")
    assert (state.active, state.served) == (None, 0)
    assert choose(Strategy.ROUND_ROBIN, [b], state, evidence()) is b


def test_a_hop_of_another_target_keeps_the_batch() -> None:
    state = RotationState()
    choose(Strategy.ROUND_ROBIN, targets(1, 1), state, evidence())
    state.succeeded("A", 3)
    state.release("B")
    assert (state.active, state.served) == ("A", 1)


@settings(deadline=None)
@given(st.lists(st.integers(1, 50), min_size=1, max_size=6), st.integers(1, 4))
def test_shares_are_exact_over_a_cycle(weights: list[int], sticky: int) -> None:
    cycle = sum(weights)
    seen = Counter(picks(Strategy.ROUND_ROBIN, targets(*weights), RotationState(), cycle * sticky, sticky))
    assert seen == Counter({chr(65 + i): weight * sticky for i, weight in enumerate(weights)})


@settings(deadline=None)
@given(st.lists(st.integers(1, 10_000), min_size=2, max_size=5), st.data())
def test_smooth_weights_stay_bounded_while_eligibility_changes(weights: list[int], data: st.DataObject) -> None:
    all_targets, state = targets(*weights), RotationState()
    for _ in range(30):
        some = data.draw(st.lists(st.sampled_from(all_targets), min_size=1, unique_by=lambda t: t.key))
        eligible = [t for t in all_targets if t in some]
        assert choose(Strategy.ROUND_ROBIN, eligible, state, evidence()) in eligible
        state.succeeded(state.active or "", 1)
        assert sum(state.weights.values()) == 0
        assert all(abs(value) <= 2 * len(weights) * sum(weights) for value in state.weights.values())


def test_random_follows_weights() -> None:
    # Chi-square with 2 degrees of freedom: 13.8 is the 99.9 % bound; the seed makes the test repeatable.
    rng, count, weights = random.Random(7), 30_000, (5, 3, 2)
    seen = Counter(
        choose(Strategy.RANDOM, targets(*weights), RotationState(), evidence(rng.random())).key for _ in range(count)
    )
    expected = {chr(65 + i): count * weight / 10 for i, weight in enumerate(weights)}
    assert sum((seen[key] - want) ** 2 / want for key, want in expected.items()) < 13.8


@pytest.mark.parametrize(
    ("draw", "expected"), [(0.0, "A"), (0.49999, "A"), (0.5, "B"), (0.7499, "B"), (0.75, "C"), (1 - 2**-53, "C")]
)
def test_random_edges(draw: float, expected: str) -> None:
    assert choose(Strategy.RANDOM, targets(2, 1, 1), RotationState(), evidence(draw)).key == expected


def test_least_used_counts_successes_and_ties_keep_order() -> None:
    assert picks(Strategy.LEAST_USED, targets(9, 1, 1), RotationState(counts={"B": 1}), 5) == "ACABC"


@pytest.mark.parametrize(
    ("resets", "expected"),
    [({}, "A"), ({"C": 5}, "C"), ({"B": 5, "C": 5}, "B"), ({"A": 9, "B": 5}, "B"), ({"A": 5, "B": 9}, "A")],
)
def test_reset_window(resets: dict[str, int], expected: str) -> None:
    chosen = choose(Strategy.RESET_WINDOW, targets(1, 1, 1), RotationState(), evidence(resets=resets))
    assert chosen.key == expected


@pytest.mark.parametrize("strategy", [Strategy.FAILOVER, Strategy.JEV])
def test_configuration_order(strategy: Strategy) -> None:
    assert picks(strategy, targets(1, 9, 9), RotationState(), 4, sticky=1) == "AAAA"


def test_removed_targets_are_forgotten() -> None:
    state = RotationState("A", 1, {"A": 1, "B": -1}, {"A": 4, "B": 2})
    state.keep(["B"])
    assert state == RotationState(None, 0, {"B": -1}, {"B": 2})
