from combos.core.facts import Cooldown, Now, Scope, Verdict
from combos.core.recall import LaneKey
from combos.core.registry import Target
from combos.engine.state import RESPONSES_TTL_MS, EngineState, PickedFrom
from playbook import World, config

HOP = Verdict("status-retryable", hop=True, scope=Scope.TARGET)
WIDE = Verdict("credentials", hop=True, scope=Scope.PROVIDER)
MINUTE = Cooldown(60_000, "default")


def origin(world: World) -> PickedFrom:
    return PickedFrom(world.registry.combos["main"], world.registry.generation)


def test_stale_writes_for_removed_targets_are_dropped_and_others_kept() -> None:
    world = World(config("alpha/m1", "beta/m2"))
    old = origin(world)
    alpha, beta = old.combo.targets
    world.reload(config("beta/m2", "gamma/m3"))
    assert not world.state.cool(old, alpha, HOP, MINUTE, 503, world.now)
    assert world.state.cool(old, beta, HOP, MINUTE, 503, world.now)
    for target in old.combo.targets:
        world.state.succeeded(old, target, None, world.now)
    assert world.cooling() == {"beta/m2": 60_000}
    assert world.state.peek_rotation("main").counts == {"beta/m2": 1}


def test_a_newer_generation_than_the_last_reconciliation_may_write() -> None:
    world = World(config())
    newer = PickedFrom(world.registry.combos["main"], world.registry.generation + 1)
    world.state.reconcile(world.registry)
    assert world.state.cool(newer, newer.combo.targets[0], HOP, MINUTE, 503, world.now)


def test_rotation_of_removed_targets_and_combos_goes_and_cooldowns_of_targets_stay() -> None:
    world = World(config("alpha/m1", "beta/m2", strategy="round-robin"))
    at = origin(world)
    alpha, beta = at.combo.targets
    rotation = world.state.rotation(at)
    rotation.weights, rotation.active = {"alpha/m1": -1, "beta/m2": 1}, "alpha/m1"
    world.state.succeeded(at, beta, None, world.now)
    world.state.cool(at, alpha, HOP, MINUTE, 503, world.now)
    world.reload(config("beta/m2", strategy="round-robin"))
    after = world.state.peek_rotation("main")
    assert (after.active, after.weights, after.counts) == (None, {"beta/m2": 1}, {"beta/m2": 1})
    assert world.cooling() == {"alpha/m1": 60_000}
    world.reload({"providers": config()["providers"], "combos": {}})
    assert (world.cooling(), world.state.peek_rotation("main").counts) == ({}, {})


def test_a_running_turn_does_not_bring_back_a_deleted_combo() -> None:
    world = World(config())
    at = origin(world)
    world.reload({"providers": config()["providers"], "combos": {}})
    world.state.rotation(at).counts["alpha/m1"] = 9
    assert world.state.peek_rotation("main").counts == {}


def test_provider_scope_replaces_its_own_entry_and_never_shortens_a_siblings() -> None:
    world = World(config("alpha/m1", "alpha/m2", "beta/m2"))
    at = origin(world)
    first, second, _ = at.combo.targets
    world.state.cool(at, second, HOP, Cooldown(600_000, "retry-after"), 429, world.now)
    world.state.cool(at, first, HOP, Cooldown(600_000, "retry-after"), 429, world.now)
    world.state.cool(at, first, WIDE, MINUTE, 401, world.now)
    assert world.cooling() == {"alpha/m1": 60_000, "alpha/m2": 600_000}


def test_clearing() -> None:
    world = World(config())
    at = origin(world)
    for target in at.combo.targets:
        world.state.cool(at, target, HOP, MINUTE, 503, world.now)
    assert world.state.clear_cooldowns("main", "alpha/m1") == 1
    assert world.cooling() == {"beta/m2": 60_000}
    assert world.state.clear_cooldowns() == 1


def test_turn_state_belongs_to_its_issuer() -> None:
    world = World(config())
    alpha, beta = origin(world).combo.targets
    world.state.bind_turn_state("token", alpha, world.now)
    assert world.state.issued_by("token", alpha, world.now)
    assert not world.state.issued_by("token", beta, world.now)
    assert not world.state.issued_by("other", alpha, world.now)
    world.mono_ms += 60 * 60_000
    assert not world.state.issued_by("token", alpha, world.now)


def test_sweep_forgets_what_has_expired() -> None:
    world = World(config())
    at = origin(world)
    alpha = at.combo.targets[0]
    world.state.cool(at, alpha, HOP, MINUTE, 503, world.now)
    world.state.bind_turn_state("token", alpha, world.now)
    world.state.succeeded(at, alpha, LaneKey("", "x"), world.now)
    assert world.state.sweep(world.now) == 0
    world.mono_ms += 24 * 3_600_000
    assert world.state.sweep(world.now) == 3


def test_affinity_forgets_targets_that_are_gone() -> None:
    world = World(config())
    at = origin(world)
    world.state.succeeded(at, at.combo.targets[0], LaneKey("", "x"), world.now)
    assert world.state.bound_target(at.combo, LaneKey("", "x"), world.now) == "alpha/m1"
    assert world.state.bound_target(at.combo, LaneKey("other", "x"), world.now) is None
    world.reload(config("beta/m2"))
    assert world.state.bound_target(at.combo, LaneKey("", "x"), world.now) is None


def test_who_keeps_the_state_behind_a_response_is_remembered_for_a_day() -> None:
    state, target = EngineState(), Target("alpha/m1", "alpha", "m1", None, None)
    state.note_response("resp_1", target, Now(0, 0))
    assert state.keeper_of("resp_1", Now(RESPONSES_TTL_MS - 1, 0)) == "alpha/m1"
    assert state.keeper_of("resp_2", Now(0, 0)) is None
    assert state.sweep(Now(RESPONSES_TTL_MS, 0)) == 1
    assert state.keeper_of("resp_1", Now(RESPONSES_TTL_MS, 0)) is None


def test_the_makers_of_a_conversations_state_add_up() -> None:
    state, lane, at = EngineState(), LaneKey("me", "l"), Now(0, 0)
    assert state.foreign_maker(lane, "alpha", at) is None
    state.note_maker(lane, "alpha", at)
    assert (state.foreign_maker(lane, "alpha", at), state.foreign_maker(lane, "beta", at)) == (None, "alpha")
    state.note_maker(lane, "beta", at)
    assert (state.foreign_maker(lane, "alpha", at), state.foreign_maker(lane, "beta", at)) == ("beta", "alpha")
    assert state.foreign_maker(LaneKey("you", "l"), "beta", at) is None


def test_a_choice_of_an_outdated_configuration_moves_nothing() -> None:
    world = World(config())
    old = PickedFrom(world.registry.combos["main"], world.registry.generation)
    world.reload(config("alpha/m1"))
    world.state.choice_rotation(old).active = "beta/m2"
    assert world.state.peek_rotation("main").active is None
    new = PickedFrom(world.registry.combos["main"], world.registry.generation)
    world.state.choice_rotation(new).active = "alpha/m1"
    assert world.state.peek_rotation("main").active == "alpha/m1"
