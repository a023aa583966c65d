"""The shared case file: verdict, scope and cooldown of one failed attempt, wherever one attempt decides them."""

import json
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path

import pytest

from combos.core.cooldown import cooldown_for
from combos.core.facts import Dialect, Headers, Now, TransportFault
from combos.core.failure_facts import FailureFacts
from combos.core.failures import classify
from combos.core.pools import PoolKind, PoolNote, spared
from combos.core.transport import transport_facts
from combos.wire.dialect import FailureTerminal, inspector, whole_answer
from combos.wire.envelope import failure_facts, stream_failure_facts

CASES = json.loads((Path(__file__).parents[1] / "data" / "classification-cases.json").read_text())

NOT_AN_ATTEMPT = {
    "rs-undeclared": "tool catalogs of in-process adapters: this product relays bytes",
    "rs-declared": "as above",
    "rs-undeclared-late": "as above",
    "rs-undeclared-chat": "as above",
    "tr-reset-after-output": "a stream that breaks after commitment is the turn's business",
}
"""Cases of the file that are not decided by the facts of one attempt, with the reason."""

DECIDED = [case for case in CASES if case["id"] not in NOT_AN_ATTEMPT]
PREFIX_BYTES = 4_194_304
"""What is held back before a stream commits for its size alone."""

DIALECTS = {
    "openai-responses": Dialect.RESPONSES,
    "openai-chat": Dialect.CHAT,
    "anthropic": Dialect.MESSAGES,
}

type Outcome = tuple[str, str, int | None]


def test_every_case_is_decided_or_named() -> None:
    assert len(CASES) == 308
    assert NOT_AN_ATTEMPT.keys() <= {case["id"] for case in CASES}
    assert len(DECIDED) == 308 - len(NOT_AN_ATTEMPT)
    others = {case["group"] for case in CASES if case["id"] in NOT_AN_ATTEMPT}
    assert others == {"stream_responses", "transport"}


@pytest.mark.parametrize("case", DECIDED, ids=lambda case: case["id"])
def test_case(case: Mapping[str, object]) -> None:
    verdict, scope, cooldown_ms = outcome(case)
    expected = case["expected"]
    assert verdict in allowed(expected, "verdict"), case["contested"] if "contested" in case else expected["why"]
    if verdict == "commit":
        return  # what a late failure cools is decided by the turn
    assert scope in allowed(expected, "scope"), expected["why"]
    assert cooldown_ms in allowed(expected, "cooldown_ms"), expected["why"]


def allowed(expected: Mapping[str, object], member: str) -> list[object]:
    return [expected[member], *expected.get("accept", {}).get(member, [])]


def outcome(case: Mapping[str, object]) -> Outcome:
    facts = attempt(case)
    if facts is None:
        return "commit", "none", None
    verdict = spared(classify(facts), facts.status, member_of(case))
    cooldown_ms = case.get("combo", {}).get("cooldownMs")
    cooldown = cooldown_for(verdict, facts, cooldown_ms=cooldown_ms, now=now_of(case))
    return "hop" if verdict.hop else "stop", str(verdict.scope), cooldown.ms if cooldown else None


def member_of(case: Mapping[str, object]) -> PoolNote | None:
    """The member of a credential pool that failed, as its pool notes it."""
    pool = case.get("pool")
    return None if pool is None else PoolNote(PoolKind(pool["kind"]), pool["account"], pool["account_cooled"])


def attempt(case: Mapping[str, object]) -> FailureFacts | None:
    """The facts of a failed attempt; None when the target owns the answer."""
    if "transport" in case:
        return broken(case["transport"]["error"])
    headers = raw_headers(case["headers"])
    if "sse" in case or "sse_template" in case:
        return streamed(DIALECTS[case["dialect"]], stream_of(case), headers)
    body = case["body"].encode()
    if case["status"] == 200:
        failure = whole_answer(DIALECTS[case["dialect"]], body).failure
        return stream_failure_facts(failure, headers) if failure else None
    return failure_facts(case["status"], headers, body)


def broken(error: str) -> FailureFacts:
    if error == "client_disconnected":
        return FailureFacts(status=499)
    return transport_facts(TransportFault(error))


def streamed(dialect: Dialect, stream: bytes, headers: Headers) -> FailureFacts | None:
    reader = inspector(dialect)
    reader.feed(stream[:PREFIX_BYTES])
    if len(stream) > PREFIX_BYTES and reader.terminal is None:
        return None
    reader.close()
    if reader.output or not isinstance(reader.terminal, FailureTerminal):
        return None
    return stream_failure_facts(reader.terminal, headers)


def stream_of(case: Mapping[str, object]) -> bytes:
    if "sse" in case:
        return case["sse"].encode()
    template = case["sse_template"]
    return (template["prefix"] + template["fill"] * template["count"] + template["suffix"]).encode()


def raw_headers(headers: Mapping[str, str]) -> Headers:
    return tuple((name.encode(), value.encode()) for name, value in headers.items())


def now_of(case: Mapping[str, object]) -> Now:
    moment = datetime.fromisoformat(case.get("now", "2026-09-24T12:00:00Z"))
    return Now(mono_ms=5_000, epoch_ms=round(moment.timestamp() * 1000))
