"""The state of pools: members that rest, and what survives a reload."""

from typing import Any

from combos.core.facts import Now
from combos.core.failure_facts import AccountRefusal, FailureFacts, Signals
from combos.core.pools import PoolKind, PoolNote, PoolSignals
from combos.core.registry import Registry, build_registry
from combos.engine.pools import PoolBook, PoolTurn
from combos.engine.state import EngineState
from configs import config, document, provider

NOW = Now(1_000, 1_790_856_000_000)
LATER = Now(62_000, 1_790_856_061_000)
LIMITED = FailureFacts(429)
LOGINS = {"a": b"1", "b": b"2"}
NOTHING = PoolSignals()


def registry(**fields: Any) -> Registry:
    return build_registry(config(document(providers={"alpha": provider(**fields), "beta": provider()})), 2)


def turn(
    book: PoolBook, kind: PoolKind = PoolKind.API_KEYS, logins: dict[str, bytes] = LOGINS, model: str = "m"
) -> PoolTurn:
    return PoolTurn(kind, book.pool("alpha", logins), list(logins), model)


def begin(one: PoolTurn, now: Now = NOW) -> str | None:
    return one.first(None, now, lambda _: 0.0)


def test_a_failed_member_rests_and_the_next_one_goes_on_serving() -> None:
    book = PoolBook()
    one = turn(book)
    assert begin(one) == "a"
    note, rest = one.failed("a", LIMITED, NOTHING, NOW)
    assert (note, rest.rotates) == (PoolNote(PoolKind.API_KEYS, "a", cooled=True), True)
    assert one.next("a", NOW) == "b"
    one.take("b")
    assert one.succeeded("b") == PoolNote(PoolKind.API_KEYS, "b")
    assert begin(turn(book)) == "b"
    assert book.running(NOW) == [{"provider": "alpha", "member": "a", "leftMs": 60_000}]
    assert book.running(LATER) == []


def test_a_key_that_rests_is_asked_rather_than_none() -> None:
    book = PoolBook()
    one = turn(book)
    one.failed("a", FailureFacts(429, signals=Signals("30")), NOTHING, NOW)
    one.failed("b", LIMITED, NOTHING, NOW)
    assert begin(turn(book)) == "a"


def test_a_pool_of_accounts_refuses_while_all_rest() -> None:
    book = PoolBook()
    one = turn(book, PoolKind.ANTHROPIC)
    one.failed("a", LIMITED, NOTHING, NOW)
    one.failed("b", LIMITED, NOTHING, NOW)
    assert begin(turn(book, PoolKind.ANTHROPIC)) is None
    assert begin(turn(book, PoolKind.ANTHROPIC), LATER) is not None


def test_a_replaced_credential_starts_anew() -> None:
    book = PoolBook()
    turn(book).failed("a", LIMITED, NOTHING, NOW)
    assert begin(turn(book, logins={"a": b"1", "b": b"2"})) == "b"
    assert begin(PoolTurn(PoolKind.API_KEYS, book.pool("alpha", {"a": b"new", "b": b"2"}), ["a"], "m")) == "a"
    assert book.running(NOW) == []


def test_a_refused_model_is_asked_of_the_other_account_only() -> None:
    book = PoolBook()
    one = turn(book, PoolKind.CODEX)
    note, rest = one.failed("a", FailureFacts(400, account_refusal=AccountRefusal.EXACT), NOTHING, NOW)
    assert (note.cooled, rest.rotates) == (False, True)
    assert begin(turn(book, PoolKind.CODEX)) == "b"
    assert begin(turn(book, PoolKind.CODEX, model="other")) is not None
    book.clear()
    assert begin(turn(book, PoolKind.CODEX)) is not None


def test_passing_failures_avoid_an_account_in_the_end() -> None:
    book = PoolBook()
    for _ in range(3):
        turn(book, PoolKind.CODEX).failed("a", FailureFacts(503), NOTHING, NOW)
    assert book.running(NOW) == [{"provider": "alpha", "member": "a", "leftMs": 30_000}]
    assert begin(turn(book, PoolKind.CODEX)) == "b"


def test_a_reload_forgets_what_left_the_configuration() -> None:
    book = PoolBook()
    turn(book).failed("a", LIMITED, NOTHING, NOW)
    turn(book).failed("b", LIMITED, NOTHING, NOW)
    keys = [{"id": "a", "key": "k"}, {"id": "c", "key": "l"}]
    book.reconcile(registry(apiKeyPool=keys))
    assert [row["member"] for row in book.running(NOW)] == ["a"]
    book.reconcile(registry())
    assert book.running(NOW) == []


def test_clearing_everything_lets_members_serve_again() -> None:
    state = EngineState()
    turn(state.pools).failed("a", LIMITED, NOTHING, NOW)
    turn(state.pools).succeeded("b")
    assert state.clear_cooldowns("main") == 0
    assert state.clear_cooldowns() == 1
    assert state.pools.running(NOW) == []
    assert state.pools.clear("beta") == 0
