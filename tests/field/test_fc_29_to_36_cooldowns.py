"""Field cases FC-29 to FC-36: how long a target rests."""

import math
from pathlib import Path
from typing import Any

import pytest

from rawserver import Pairs
from stage import Case, stage
from wires import WIRES, R, error

SLOW = {"error": {"message": "slow"}}
MAIN = "alpha/m1"


def limited(
    document: dict[str, Any] = SLOW, headers: Pairs = (), *, status: int = 429, cooldown_ms: int | None = None
) -> Case:
    """A first target that answers like this, and a healthy second one."""
    combo = {} if cooldown_ms is None else {"cooldownMs": cooldown_ms}
    return Case(R, alpha=error(status, document, headers), beta=R.answers("beta-ok"), combo=combo)


def after(value: str) -> Pairs:
    return [(b"Retry-After", value.encode())]


async def rests(confdir: Path, runs: list[tuple[Case, int]]) -> None:
    """Each case hops once and rests as long as said; 0 stands for "free at once"."""
    cases = [case for case, _ in runs]
    async with stage(confdir, *cases) as on:
        for answer in await on.ask_all(cases):
            assert b"beta-ok" in answer.body
        for case, ms in runs:
            assert case.calls == ["alpha", "beta"]
            assert on.cooling(case) == {MAIN: max(1, ms)}, case.record
        on.clock.advance(1)
        for case, ms in runs:
            assert on.cooling(case) == ({MAIN: ms - 1} if ms > 1 else {})


UNUSABLE = ("", "abc", "30abc", "-5", "1e3", "inf", "nan", "Thu, 31 Feb 2026 12:00:30 GMT", "2026-10-01T12:00:30Z")


async def test_fc_29_unusable_retry_after_values(confdir: Path) -> None:
    plain = [(limited(headers=after(value)), 60_000) for value in UNUSABLE]
    stated = [(limited(headers=after(value), cooldown_ms=7_000), 7_000) for value in UNUSABLE]
    await rests(confdir, [*plain, *stated])


DATES = {
    "Thu, 01 Oct 2026 12:00:30 GMT": 30_000,
    "Thursday, 01-Oct-26 12:00:30 GMT": 30_000,
    "Thu Oct  1 12:00:30 2026": 30_000,
    "Thu, 01 Oct 2026 11:59:00 GMT": 0,
    "0": 0,
}


async def test_fc_30_dates(confdir: Path) -> None:
    plain = [(limited(headers=after(value)), ms) for value, ms in DATES.items()]
    stated = [(limited(headers=after(value), cooldown_ms=60_000), ms) for value, ms in DATES.items()]
    await rests(confdir, [*plain, *stated])


async def test_fc_30_free_at_once_is_not_asked_twice_in_one_request(confdir: Path) -> None:
    case = Case(R, alpha=error(429, SLOW, after("0")), beta=error(429, SLOW, after("0")))
    async with stage(confdir, case) as on:
        assert (await on.ask(case)).status == 429
        assert case.calls == ["alpha", "beta"]


async def test_fc_31_fractions(confdir: Path) -> None:
    await rests(confdir, [(limited(headers=after("0.5")), 500), (limited(headers=after("1.5")), 1_500)])


@pytest.mark.parametrize(("left_ms", "shown"), [(25_200, "26"), (300, "1")])
async def test_fc_32_everybody_is_cooling(left_ms: int, shown: str, confdir: Path) -> None:
    def waits(seconds: float) -> bytes:
        return error(429, SLOW, after(str(seconds)))

    cases = [Case(wire, alpha=waits(40), beta=waits(left_ms / 1000)) for wire in WIRES]
    async with stage(confdir, *cases) as on:
        await on.ask_all(cases)
        for case, answer in zip(cases, await on.ask_all(cases), strict=True):
            assert on.cooling(case) == {"alpha/m1": 40_000, "beta/m2": left_ms}
            assert case.calls == ["alpha", "beta"]  # those of the first request
            assert (answer.status, answer.header("retry-after")) == (503, shown)
            assert math.ceil(left_ms / 1000) == int(shown)
            fault = answer.json()["error"]
            assert fault.get("code") == "combo_unavailable" or "combo_unavailable" in fault["message"]


async def test_fc_33_a_wait_that_is_only_in_the_prose(confdir: Path) -> None:
    told = "Rate limit exceeded. Try again in 17 seconds."
    bodies = [
        {"error": {"code": "rate_limit_exceeded", "message": told}},
        {"error": {"message": "Please retry in 52.4s.", "retryDelay": "52s"}},
    ]
    await rests(confdir, [(limited(body), 60_000) for body in bodies])


SPENT: list[tuple[int, dict[str, str]]] = [
    (429, {"type": "insufficient_quota", "code": "insufficient_quota", "message": "check billing"}),
    (402, {"code": "payment_required", "message": "add credit"}),
    (429, {"code": "usage_limit_reached", "message": "limit"}),
    (429, {"code": "1308", "message": "window"}),
    (502, {"message": "usage limit reached"}),
]


async def test_fc_34_spent_quota_is_not_a_hiccup(confdir: Path) -> None:
    runs = []
    for status, fault in SPENT:
        body = {"error": fault}
        runs += [
            (limited(body, status=status), 600_000),
            (limited(body, status=status, cooldown_ms=5_000), 5_000),
            (limited(body, after("3600"), status=status), 3_600_000),
        ]
    await rests(confdir, runs)


async def test_fc_35_one_models_limit_another_model_of_the_same_provider(confdir: Path) -> None:
    fault = {"error": {"code": "rate_limit_exceeded", "message": "tokens per minute"}}
    case = Case(R, targets=["alpha/m1", "alpha/m2"], alpha=[error(429, fault), R.answers("m2-ok")])
    async with stage(confdir, case) as on:
        assert b"m2-ok" in (await on.ask(case)).body
        assert case.calls == ["alpha", "alpha"]
        assert on.cooling(case) == {"alpha/m1": 60_000}


async def test_fc_36_request_rate_codes(confdir: Path) -> None:
    runs = []
    for code in ("1302", "1305", 1302):
        body = {"error": {"code": code, "message": "too many"}}
        runs += [
            (limited(body), 5_000),
            (limited(body, cooldown_ms=30_000), 30_000),
            (limited(body, after("9")), 9_000),
        ]
    await rests(confdir, runs)
