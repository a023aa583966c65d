import copy

from combos.core.facts import TransportFault
from combos.engine.events import Failed, Started
from combos.engine.explain import Explanation, explain
from playbook import World, config, provider, sends, target


def explained(world: World, **hooks: object) -> Explanation:
    return explain(world.registry.combos["main"], world.registry, world.state, world.now, **hooks)  # type: ignore[arg-type]


def test_reasons_cooldowns_and_the_next_target() -> None:
    off = provider("beta", disabled=True)
    world = World(config("alpha/m1", "beta/m2", "gamma/m3", "delta/m4", providers={"beta": off}))
    world.turn() >> Started() << sends("alpha/m1") >> Failed(0, TransportFault.RESET)
    world.mono_ms += 20_000
    seen = explained(world, unusable=lambda p: "no_credentials" if p.name == "gamma" else None)
    assert [(row.key, row.reason) for row in seen.targets] == [
        ("alpha/m1", "cooling"),
        ("beta/m2", "provider_disabled"),
        ("gamma/m3", "no_credentials"),
        ("delta/m4", None),
    ]
    alpha = seen.targets[0]
    assert (alpha.cooling_ms, alpha.cooldown_rule, alpha.cooldown_status) == (40_000, "transport", 502)
    assert alpha.cooldown_source
    assert (seen.next, seen.retry_after_ms, seen.strategy) == ("delta/m4", 40_000, "failover")


def test_it_foretells_round_robin_without_moving_it() -> None:
    world = World(config("alpha/m1:2", "beta/m2:1", strategy="round-robin"))
    for _ in range(4):
        before = copy.deepcopy(world.state.peek_rotation("main"))
        foretold = explained(world).next
        assert world.state.peek_rotation("main") == before
        play = (world.turn() >> Started()).skip()
        assert play.calls == [foretold]
        play.answer(0, 200, b'{"status":"completed","output":[1]}')
    rows = explained(world).targets
    assert [row.successes for row in rows] == [3, 1]


def test_a_draw_is_not_foretold_and_a_last_resort_stands_back() -> None:
    world = World(config("alpha/m1", "beta/m2", strategy="random"))
    assert explained(world).next is None
    rows = (target("alpha/m1", lastResort=True), "beta/m2")
    world = World(config(*rows, cooldownWaitPolicy="before-last-resort"))
    assert explained(world).next == "beta/m2"
