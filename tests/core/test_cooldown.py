import pytest
from hypothesis import given
from hypothesis import strategies as st

from combos.core.cooldown import CEILING_MS, SOURCES, cooldown_for
from combos.core.facts import Cooldown, Now, Scope, Verdict
from combos.core.failure_facts import FailureFacts, Signals
from combos.core.retry_after import CEILING_MS as DAY_MS

NOW = Now(mono_ms=77, epoch_ms=1_790_251_200_000)
HOP = Verdict("any", True, Scope.TARGET)


def cooled(failure: FailureFacts, cooldown_ms: int | None = None, verdict: Verdict = HOP) -> Cooldown | None:
    return cooldown_for(verdict, failure, cooldown_ms=cooldown_ms, now=NOW)


def resets(*values: str, retry_after: str | None = None) -> Signals:
    return Signals(retry_after, values)


def seconds(ahead: int) -> str:
    return str(NOW.epoch_ms // 1000 + ahead)


@pytest.mark.parametrize("verdict", [Verdict("a", False), Verdict("b", False, Scope.TARGET), Verdict("c", True)])
def test_stops_and_uncooled_hops_record_nothing(verdict: Verdict) -> None:
    assert cooled(FailureFacts(429, signals=Signals("30")), 5_000, verdict) is None


def test_provider_scope_takes_the_same_inputs() -> None:
    verdict = Verdict("credentials", True, Scope.PROVIDER)
    assert cooled(FailureFacts(401, signals=Signals("120")), None, verdict) == Cooldown(120_000, "retry-after")


STRONGEST_FIRST = [
    (Signals("30", (seconds(90),)), 20_000, "1308", "", Cooldown(30_000, "retry-after")),
    (Signals("0", (seconds(90),)), 20_000, "1308", "", Cooldown(1, "retry-after")),
    (Signals("soon", (seconds(90),)), 20_000, "1308", "", Cooldown(90_000, "codex-reset")),
    (Signals("soon", ("soon",)), 20_000, "1308", "", Cooldown(20_000, "configured")),
    (Signals(), None, "1308", "", Cooldown(600_000, "hold")),
    (Signals(), None, "1302", "usage limit reached", Cooldown(600_000, "hold")),
    (Signals(), None, "1302", "", Cooldown(5_000, "request-rate")),
    (Signals(), None, "rate_limit_exceeded", "", Cooldown(60_000, "default")),
]


@pytest.mark.parametrize(("signals", "configured", "code", "message", "expected"), STRONGEST_FIRST)
def test_precedence(signals: Signals, configured: int | None, code: str, message: str, expected: Cooldown) -> None:
    assert cooled(FailureFacts(429, code=code, message=message, signals=signals), configured) == expected


def test_every_source_is_reached_in_order() -> None:
    reached = dict.fromkeys(expected.source for *_, expected in STRONGEST_FIRST)
    assert list(reached) == [name for name, _, _ in SOURCES]


@pytest.mark.parametrize(
    ("failure", "ms"),
    [
        (FailureFacts(401), 600_000),
        (FailureFacts(402, code="invalid_request_error"), 600_000),
        (FailureFacts(401, code="brand_new"), 60_000),
        (FailureFacts(401, code="permission_denied"), 60_000),
        (FailureFacts(403), 60_000),
        (FailureFacts(403, code="subscription_required"), 600_000),
        (FailureFacts(429, code="insufficient_quota"), 600_000),
        (FailureFacts(429, code="1310"), 60_000),
        (FailureFacts(429, code="gousagelimiterror", message="Monthly usage limit reached."), 600_000),
        (FailureFacts(429, code="gousagelimiterror"), 60_000),
        (FailureFacts(502, message="The usage limit has been reached"), 600_000),
        (FailureFacts(502, message="The usage limit has been reached", garbled=True), 60_000),
        (FailureFacts(502, code="usage_limit_reached", garbled=True), 60_000),
        (FailureFacts(400, message="Your credit balance is too low to access the Anthropic API."), 600_000),
        (FailureFacts(429, message="Rate limit reached for requests"), 5_000),
        (FailureFacts(429, code="1310", message="Rate limit reached for requests"), 60_000),
        (FailureFacts(429, message="Please try again in 11s"), 60_000),
    ],
)
def test_fallbacks(failure: FailureFacts, ms: int) -> None:
    cooldown = cooled(failure)
    assert cooldown is not None
    assert cooldown.ms == ms


@pytest.mark.parametrize(
    ("status", "code", "counts"),
    [
        (429, "", True),
        (402, "", True),
        (502, "usage_limit_reached", True),
        (502, "insufficient_quota", True),
        (500, "1316", True),
        (502, "upstream_server_error", False),
        (403, "", False),
        (503, "", False),
    ],
)
def test_reset_headers_count_for_quota_failures_only(status: int, code: str, counts: bool) -> None:
    cooldown = cooled(FailureFacts(status, code=code, signals=resets(seconds(90))))
    assert cooldown is not None
    assert (cooldown == Cooldown(90_000, "codex-reset")) is counts


@pytest.mark.parametrize(
    ("values", "ms"),
    [
        ((seconds(90),), 90_000),
        ((f"{NOW.epoch_ms + 90_000}",), 90_000),
        ((f" {seconds(90)}.5 ",), 90_500),
        ((seconds(300), seconds(60), seconds(200)), 60_000),
        ((seconds(-100), seconds(45)), 45_000),
        ((seconds(7200),), CEILING_MS),
    ],
)
def test_reset_values(values: tuple[str, ...], ms: int) -> None:
    assert cooled(FailureFacts(429, signals=resets(*values))) == Cooldown(ms, "codex-reset")


@pytest.mark.parametrize("value", ["", "0", "-5", "soon", "1e12", "nan", seconds(-1), seconds(0), "9" * 129])
def test_unusable_reset_values(value: str) -> None:
    assert cooled(FailureFacts(429, signals=resets(value))) == Cooldown(60_000, "default")


HEADER = st.none() | st.text(max_size=20) | st.integers(-5, 10**14).map(str)


@given(HEADER, st.lists(HEADER.filter(bool), max_size=3), st.none() | st.integers(1, 10**7), st.integers(400, 599))
def test_cooldowns_keep_within_their_ceilings(
    retry_after: str | None, values: list[str], configured: int | None, status: int
) -> None:
    cooldown = cooled(FailureFacts(status, signals=resets(*values, retry_after=retry_after)), configured)
    assert cooldown is not None
    assert 1 <= cooldown.ms <= (DAY_MS if cooldown.source == "retry-after" else CEILING_MS)
