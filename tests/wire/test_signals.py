from combos.core.failure_facts import Signals
from combos.wire.signals import failure_signals, joined


def test_names_have_any_case_and_repeated_values_are_joined() -> None:
    headers = ((b"Retry-After", b"30"), (b"x-other", b"1"), (b"RETRY-AFTER", b"60"))
    assert joined(headers, "retry-after") == "30, 60"
    assert joined(headers, "content-encoding") is None


def test_signals_are_kept_as_they_came() -> None:
    headers = ((b"X-Codex-Tertiary-Reset-At", b"3"), (b"x-codex-primary-reset-at", b"soon"), (b"retry-after", b"\xff"))
    assert failure_signals(headers) == Signals("\xff", ("soon", "3"))
    assert failure_signals(()) == Signals()
