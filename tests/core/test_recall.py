"""The recall store: bounds, what is written, what is read, and a model that it is compared with step by step."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from combos.core.config import parse_config
from combos.core.recall import (
    LANES_MAX,
    NAME_BYTES_MAX,
    NAMES_BYTES_MAX,
    TTL_MS,
    Completion,
    LaneKey,
    RecallStore,
    Written,
    caller_digest,
    is_recallable,
    recall,
    reconcile,
    remember,
    sweep,
)
from combos.core.registry import Registry, build_registry

LANE = LaneKey("caller", "thread")
PROVIDER = {"adapter": "openai-responses", "baseUrl": "https://up.example/v1"}


def document(**changes: Any) -> dict[str, Any]:
    return {
        "providers": {"up1": PROVIDER, "up2": PROVIDER, "openai": PROVIDER},
        "combos": {
            "main": {"targets": [{"provider": "up1", "model": "m1"}, {"provider": "up2", "model": "m2"}]},
            "named": {"alias": "daily", "targets": [{"provider": "up1", "model": "m1"}]},
        },
        **changes,
    }


def registry_of(doc: dict[str, Any], generation: int = 1) -> Registry:
    return build_registry(parse_config(doc), generation)


def completion(registry: Registry, name: object = "m1", combo: str = "main", target: int = 0) -> Completion:
    found = registry.combos[combo]
    return Completion(found, found.targets[target], registry.generation, name)


def written(name: object = "m1", **changes: Any) -> tuple[RecallStore, Registry]:
    store, registry = RecallStore(), registry_of(document(**changes))
    assert remember(store, registry, LANE, completion(registry, name), 0) is Written.WRITTEN
    return store, registry


def recalled(
    store: RecallStore, registry: Registry, model: str = "m1", now_ms: int = 1, key: LaneKey | None = LANE
) -> str | None:
    route = recall(store, registry, key, model, now_ms)
    return route.combo.id if route else None


def test_the_combo_that_completed_last_is_recalled() -> None:
    store, registry = written()
    assert recalled(store, registry) == "main"
    assert remember(store, registry, LANE, completion(registry, combo="named"), 2) is Written.WRITTEN
    assert recalled(store, registry) == "named"


@pytest.mark.parametrize("key", [None, LaneKey("caller", "other"), LaneKey("other", "thread")])
def test_without_the_same_caller_and_lane_nothing_is_recalled(key: LaneKey | None) -> None:
    store, registry = written()
    assert recalled(store, registry, key=key) is None
    assert recalled(store, registry) == "main"


def test_without_a_lane_nothing_is_written() -> None:
    store, registry = RecallStore(), registry_of(document())
    assert remember(store, registry, None, completion(registry), 0) is Written.NO_LANE
    assert len(store) == 0


@pytest.mark.parametrize("name", [None, "", "  \t", 7, ["m1"]])
def test_an_answer_without_a_model_name_leaves_the_entry(name: object) -> None:
    store, registry = written()
    assert remember(store, registry, LANE, completion(registry, name, "named"), 2) is Written.NO_NAME
    assert recalled(store, registry) == "main"


@pytest.mark.parametrize(
    ("name", "result"),
    [
        ("é" * 512, Written.WRITTEN),
        ("é" * 513, Written.TOO_LARGE),
        ("x" * 1024, Written.WRITTEN),
        ("x" * 1025, Written.TOO_LARGE),
        ("x" * 1_000_000, Written.TOO_LARGE),
        ("\ud800" * 341, Written.WRITTEN),
        ("\ud800" * 342, Written.TOO_LARGE),
    ],
)
def test_a_name_is_retained_up_to_1024_bytes(name: str, result: Written) -> None:
    store, registry = written()
    assert remember(store, registry, LANE, completion(registry, name, "named"), 2) is result
    assert recalled(store, registry) == ("main" if result is Written.TOO_LARGE else None)
    assert recalled(store, registry, name) == ("named" if result is Written.WRITTEN else None)


def test_a_name_is_stored_as_it_is_and_matched_exactly() -> None:
    store, registry = written(" M1")
    assert recalled(store, registry, "M1") is None
    assert recalled(store, registry, " M1") == "main"


def test_a_turn_from_an_older_configuration_is_dropped() -> None:
    store, registry = written()
    newer = replace(registry, generation=2)
    assert remember(store, newer, LANE, completion(registry, combo="named"), 2) is Written.STALE
    assert recalled(store, newer) == "main"


@pytest.mark.parametrize(
    "changes",
    [
        {"combos": {}},
        {"combos": {"main": {"targets": [{"provider": "up2", "model": "m2"}]}}},
        {"providers": {"up1": {**PROVIDER, "disabled": True}, "up2": PROVIDER}},
        {"combos": {"main": {"targets": [{"provider": "up1", "model": "m1-new"}]}}},
    ],
)
def test_what_the_configuration_no_longer_offers_is_neither_written_nor_recalled(changes: dict[str, Any]) -> None:
    store, registry = written()
    now = registry_of(document(**changes))
    assert remember(store, now, LANE, completion(registry), 2) is Written.GONE
    assert recalled(store, now) is None
    assert recalled(store, registry) is None, "the entry was deleted"


def test_another_model_name_recalls_nothing_and_keeps_the_entry() -> None:
    store, registry = written()
    assert recalled(store, registry, "m2") is None
    assert recalled(store, registry) == "main"


@pytest.mark.parametrize(("age", "combo"), [(TTL_MS - 1, "main"), (TTL_MS, None), (TTL_MS + 1, None)])
def test_an_entry_lasts_half_an_hour_however_often_it_is_read(age: int, combo: str | None) -> None:
    store, registry = written()
    assert recalled(store, registry, now_ms=TTL_MS // 2) == "main"
    assert recalled(store, registry, now_ms=age) == combo
    assert len(store) == (1 if combo else 0)


def test_an_expired_entry_goes_even_when_the_name_differs() -> None:
    store, registry = written()
    assert recalled(store, registry, "m2", TTL_MS) is None
    assert len(store) == 0


@pytest.mark.parametrize(
    ("model", "is_bare"),
    [
        ("m1", True),
        ("gpt-5.6-sol", True),
        ("up1/m1", False),
        ("combo/main", False),
        ("combo/nope", False),
        ("unknown/m1", False),
        ("daily", False),
        ("daily--fast", False),
        ("gpt-5.6-sol--fast", False),
    ],
)
def test_only_bare_names_are_recalled(model: str, is_bare: bool) -> None:
    store, registry = written(model)
    assert is_recallable(registry, model) is is_bare
    assert recalled(store, registry, model) == ("main" if is_bare else None)


def test_a_native_alias_beats_recall() -> None:
    alias = {"alias": "gpt-5.6-sol", "nativeAlias": True, "displayName": "Mine"}
    combos = {**document()["combos"], "native": {**alias, "targets": [{"provider": "up2", "model": "m2"}]}}
    store, registry = written("gpt-5.6-sol")
    assert recalled(store, registry, "gpt-5.6-sol") == "main"
    assert recalled(store, registry_of(document(combos=combos)), "gpt-5.6-sol") is None


def test_the_257th_lane_evicts_the_one_written_longest_ago() -> None:
    store, registry = RecallStore(), registry_of(document())
    for number in range(LANES_MAX):
        remember(store, registry, LaneKey("c", str(number)), completion(registry), 0)
    remember(store, registry, LaneKey("c", "0"), completion(registry), 1)
    assert recalled(store, registry, key=LaneKey("c", "1")) == "main", "reading does not refresh"
    remember(store, registry, LaneKey("c", "new"), completion(registry), 2)
    assert len(store) == LANES_MAX
    assert store.peek(LaneKey("c", "1")) is None
    assert store.peek(LaneKey("c", "0")) is not None


def test_65_names_of_1024_bytes_evict_the_first() -> None:
    store, registry = RecallStore(), registry_of(document())
    for number in range(65):
        remember(store, registry, LaneKey("c", str(number)), completion(registry, "n" * NAME_BYTES_MAX), 0)
        assert len(store) == min(number + 1, 64)
    assert store.peek(LaneKey("c", "0")) is None
    assert store.names_bytes == NAMES_BYTES_MAX


def test_sweep_drops_expired_entries_that_nobody_reads() -> None:
    store, registry = written()
    remember(store, registry, LaneKey("c", "young"), completion(registry), 10)
    assert sweep(store, TTL_MS - 1) == 0
    assert sweep(store, TTL_MS) == 1
    assert [key.lane for key, _ in store.items()] == ["young"]


@pytest.mark.parametrize(
    ("changes", "dropped"),
    [
        ({}, 0),
        ({"providers": {"up1": {**PROVIDER, "disabled": True}, "up2": PROVIDER}}, 0),
        ({"combos": {"named": document()["combos"]["named"]}}, 1),
        ({"combos": {"main": {"targets": [{"provider": "up2", "model": "m1"}]}}}, 1),
    ],
)
def test_a_new_configuration_drops_what_it_no_longer_has(changes: dict[str, Any], dropped: int) -> None:
    store, _ = written()
    assert reconcile(store, registry_of(document(**changes), 2)) == dropped
    assert len(store) == 1 - dropped


def test_the_caller_is_a_digest() -> None:
    assert caller_digest(b"sk-secret") == caller_digest(b"sk-secret")
    assert caller_digest(b"sk-secret") != caller_digest(b"sk-other")
    assert "sk-secret" not in repr(LaneKey(caller_digest(b"sk-secret"), "lane"))


NAMES = st.sampled_from(["m1", "m2", "é" * 300, "x" * 1000, "x" * NAME_BYTES_MAX, "x" * 1025, "é" * 513, " "])
LANES = st.integers(0, LANES_MAX + 5).map(lambda number: LaneKey("c", str(number)))


class RecallAgainstAList(RuleBasedStateMachine):
    """The naive model: a list of (lane, combo, name, written at), youngest last, that is cut after every write."""

    def __init__(self) -> None:
        super().__init__()
        self.store = RecallStore()
        self.registry = registry_of(document())
        self.now = 0
        self.rows: list[tuple[LaneKey, str, str, int]] = []

    def write_one(self, key: LaneKey, name: str, combo: str) -> None:
        remember(self.store, self.registry, key, completion(self.registry, name, combo), self.now)
        if name.strip() and len(name.encode()) <= 1024:
            self.rows = [row for row in self.rows if row[0] != key] + [(key, combo, name, self.now)]
        while len(self.rows) > 256 or sum(len(row[2].encode()) for row in self.rows) > 65_536:
            self.rows = self.rows[1:]

    @rule(key=LANES, name=NAMES, combo=st.sampled_from(["main", "named"]))
    def write(self, key: LaneKey, name: str, combo: str) -> None:
        self.write_one(key, name, combo)

    @rule(first=st.integers(0, 200), count=st.integers(1, 300), name=NAMES)
    def write_many(self, first: int, count: int, name: str) -> None:
        for number in range(first, first + count):
            self.write_one(LaneKey("c", str(number)), name, "main")

    @rule(ms=st.sampled_from([1, 60_000, TTL_MS - 1, TTL_MS]))
    def pass_time(self, ms: int) -> None:
        self.now += ms

    @rule(key=LANES, name=NAMES)
    def read(self, key: LaneKey, name: str) -> None:
        row = next((row for row in self.rows if row[0] == key), None)
        is_expired = row is not None and self.now - row[3] >= 1_800_000
        expected = row[1] if row is not None and row[2] == name and not is_expired else None
        assert recalled(self.store, self.registry, name, self.now, key) == expected
        if is_expired and is_recallable(self.registry, name):
            self.rows.remove(row)  # type: ignore[arg-type]

    @precondition(lambda self: self.rows)
    @rule()
    def sweep(self) -> None:
        fresh = [row for row in self.rows if self.now - row[3] < 1_800_000]
        assert sweep(self.store, self.now) == len(self.rows) - len(fresh)
        self.rows = fresh

    @rule(combo=st.sampled_from(["main", "named"]))
    def remove_combo_and_restore_it(self, combo: str) -> None:
        combos = {name: value for name, value in document()["combos"].items() if name != combo}
        reconcile(self.store, registry_of(document(combos=combos), 2))
        self.rows = [row for row in self.rows if row[1] != combo]

    @invariant()
    def same_entries_in_the_same_order(self) -> None:
        assert [(key, s.combo, s.response_model, s.at_ms) for key, s in self.store.items()] == self.rows
        assert self.store.names_bytes == sum(len(row[2].encode()) for row in self.rows)


TestRecallAgainstAList = RecallAgainstAList.TestCase
TestRecallAgainstAList.settings = settings(max_examples=40, stateful_step_count=25, deadline=None)
