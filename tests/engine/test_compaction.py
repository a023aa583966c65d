"""Compaction recall over whole requests: the same body with and without its mark, other names, other lanes."""

from typing import Any

import orjson
import pytest

from catalogs import provider, registry, targets
from combos.core.recall import Completion, LaneKey, RecallStore, Written, remember
from combos.core.registry import Registry
from combos.engine.compaction import recalled_route
from combos.wire.fields import Fields
from combos.wire.request import lane

LANE = LaneKey("caller", "thread")
TRIGGER: dict[str, Any] = {"type": "compaction_trigger"}
MESSAGE = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "compaction_trigger"}]}
COMBOS = {
    "main": {"targets": targets("up1/m1")},
    "named": {"alias": "daily", "targets": targets("up1/m1")},
}


def known() -> Registry:
    return registry({"providers": {"up1": provider()}, "combos": COMBOS})


def remembered(model: str = "m1", key: LaneKey = LANE) -> RecallStore:
    store, found = RecallStore(), known()
    combo = found.combos["main"]
    assert remember(store, found, key, Completion(combo, combo.targets[0], 1, model), 0) is Written.WRITTEN
    return store


def asked(
    store: RecallStore,
    *items: dict[str, Any],
    model: str = "m1",
    path: str = "/v1/responses",
    key: LaneKey | None = LANE,
) -> str | None:
    body = orjson.dumps({"model": model, "input": list(items)})
    route = recalled_route(store, known(), key, path, body, 1)
    return route.combo.id if route else None


@pytest.mark.parametrize(
    ("items", "path", "combo"),
    [
        ((MESSAGE, TRIGGER), "/v1/responses", "main"),
        ((TRIGGER, MESSAGE), "/v1/responses", "main"),
        ((MESSAGE, TRIGGER), "/backend-api/codex/responses", "main"),
        ((MESSAGE,), "/v1/responses", None),
        ((MESSAGE,), "/v1/responses/compact", "main"),
        ((MESSAGE, TRIGGER), "/v1/chat/completions", None),
    ],
)
def test_only_a_compaction_is_recalled(items: tuple[dict[str, Any], ...], path: str, combo: str | None) -> None:
    assert asked(remembered(), *items, path=path) == combo


@pytest.mark.parametrize("model", ["up1/m1", "combo/named", "daily", "daily--fast", "m2"])
def test_other_names_are_never_recalled(model: str) -> None:
    assert asked(remembered(), TRIGGER, model=model) is None


@pytest.mark.parametrize("key", [None, LaneKey("caller", "other"), LaneKey("other", "thread")])
def test_another_conversation_is_not_recalled(key: LaneKey | None) -> None:
    assert asked(remembered(), TRIGGER, key=key) is None


def test_an_ordinary_turn_leaves_the_entry_alone() -> None:
    store = remembered()
    asked(store, MESSAGE)
    assert asked(store, TRIGGER) == "main"


THREAD, SESSION, PARENT = b"thread-id", b"session-id", b"x-codex-parent-thread-id"


@pytest.mark.parametrize(
    ("turn", "compaction", "same"),
    [
        ({THREAD: b"t", SESSION: b"s1"}, {THREAD: b"t", SESSION: b"s2"}, True),
        ({THREAD: b"t1", SESSION: b"s"}, {THREAD: b"t2", SESSION: b"s"}, False),
        ({PARENT: b"p", THREAD: b"c1"}, {PARENT: b"p", THREAD: b"c2"}, False),
        ({PARENT: b"p"}, {PARENT: b"p", THREAD: b"c"}, False),
        ({PARENT: b"p"}, {PARENT: b"p"}, True),
        ({b"session_id": b"s"}, {SESSION: b"s"}, True),
        ({THREAD: b" t "}, {b"Thread-Id": b"t"}, True),
    ],
)
def test_lanes(turn: dict[bytes, bytes], compaction: dict[bytes, bytes], same: bool) -> None:
    written, read = lane(Fields(tuple(turn.items()))), lane(Fields(tuple(compaction.items())))
    assert written is not None
    assert read is not None
    store = remembered(key=LaneKey("caller", written))
    assert asked(store, TRIGGER, key=LaneKey("caller", read)) == ("main" if same else None)
