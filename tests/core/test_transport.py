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
