import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from combos.engine.budget import Denial, SendBudget, SendKind


@pytest.mark.parametrize(
    ("targets", "total", "base", "changes"), [(1, 4, 3, 1), (2, 5, 4, 1), (3, 6, 5, 2), (10, 13, 12, 9)]
)
def test_quantities(targets: int, total: int, base: int, changes: int) -> None:
    budget = SendBudget(targets)
    assert (budget.total, budget.base, budget.changes) == (total, base, changes)


def spend(budget: SendBudget) -> int:
    """Retries of the current target until they are refused."""
    count = 0
    while budget.reserve(SendKind.RETRY) is None:
        count += 1
    return count


def test_three_targets_that_always_fail_send_three_two_one() -> None:
    budget = SendBudget(3)
    sent = []
    for kind in (SendKind.FIRST, SendKind.HOP, SendKind.HOP):
        assert budget.reserve(kind) is None
        sent.append(1 + spend(budget))
    assert (sent, budget.used) == ([3, 2, 1], 6)
    assert budget.reserve(SendKind.HOP) is Denial.TOTAL


def test_one_target_sends_three_and_one_recovery() -> None:
    budget = SendBudget(1)
    budget.reserve(SendKind.FIRST)
    assert spend(budget) == 2
    assert budget.reserve(SendKind.RETRY) is Denial.SPEND
    assert budget.charge() is Denial.SPEND
    assert budget.reserve(SendKind.HOP) is None
    assert budget.reserve(SendKind.HOP) is Denial.TOTAL


def test_the_reserve_is_for_hops_and_replays_only() -> None:
    budget = SendBudget(2)
    for kind in (SendKind.FIRST, SendKind.RETRY, SendKind.HOP, SendKind.RETRY):
        assert budget.reserve(kind) is None
    assert budget.used == budget.base
    assert budget.reserve(SendKind.RETRY) is Denial.BASE
    assert budget.charge() is None
    assert budget.charge() is Denial.TOTAL


def test_target_changes_are_bounded() -> None:
    budget = SendBudget(2)
    budget.reserve(SendKind.FIRST)
    assert budget.reserve(SendKind.HOP) is None
    assert budget.reserve(SendKind.HOP) is Denial.TRANSITION
    assert budget.used == 2


def test_nothing_is_sent_again_that_must_not_be() -> None:
    budget = SendBudget(2)
    assert budget.reserve(SendKind.FIRST, replay_safe=False) is None
    for kind in (SendKind.HOP, SendKind.RETRY, SendKind.REPLAY):
        assert budget.reserve(kind, replay_safe=False) is Denial.NOT_REPLAY_SAFE
    assert budget.used == 1


@settings(deadline=None)
@given(st.integers(1, 8), st.lists(st.sampled_from(list(SendKind)), max_size=40))
def test_a_denial_charges_nothing_and_the_total_holds(targets: int, kinds: list[SendKind]) -> None:
    budget = SendBudget(targets)
    granted = [kind for kind in kinds if budget.reserve(kind) is None]
    assert budget.used == len(granted) <= targets + 3
    assert granted.count(SendKind.HOP) <= max(1, targets - 1)


@settings(deadline=None)
@given(st.integers(1, 8), st.lists(st.integers(0, 5), max_size=8))
def test_every_declared_target_can_still_be_asked(targets: int, retries: list[int]) -> None:
    budget = SendBudget(targets)
    for position in range(targets):
        assert budget.reserve(SendKind.HOP if position else SendKind.FIRST) is None
        for _ in range(retries[position] if position < len(retries) else 0):
            budget.reserve(SendKind.RETRY)
