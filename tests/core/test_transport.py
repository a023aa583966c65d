import re

import pytest

from combos.core.cooldown import cooldown_for
from combos.core.facts import Cooldown, Now, Scope, TransportFault, Verdict
from combos.core.failures import classify
from combos.core.transport import FAULTS, transport_facts, transport_message


def test_every_fault_has_one_row() -> None:
    assert sorted(row.fault for row in FAULTS) == sorted(TransportFault)


@pytest.mark.parametrize("fault", TransportFault)
def test_a_broken_exchange_hops_and_cools_the_target_for_a_minute(fault: TransportFault) -> None:
    facts = transport_facts(fault)
    verdict = classify(facts)
    assert verdict == Verdict("transport", True, Scope.TARGET)
    assert cooldown_for(verdict, facts, cooldown_ms=None, now=Now(0, 0)) == Cooldown(60_000, "default")


@pytest.mark.parametrize("fault", TransportFault)
def test_clients_read_a_sentence(fault: TransportFault) -> None:
    assert transport_message(fault).endswith(".")
    assert transport_facts(fault).status == (504 if fault is TransportFault.IDLE_TIMEOUT else 502)
    assert transport_facts(fault).fault is fault


@pytest.mark.parametrize("fault", [TransportFault.RESET, TransportFault.TRUNCATED, TransportFault.IDLE_TIMEOUT])
def test_what_breaks_an_answer_is_said_in_words_that_clients_repeat_after(fault: TransportFault) -> None:
    """opencode asks again when a failure within a stream reads like a lost connection, and gives up otherwise."""
    words = re.compile(r"connection lost|\bconnection timed out\b", re.IGNORECASE)
    assert words.search(transport_message(fault))
