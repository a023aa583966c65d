"""Selection: the short way to the usual target, and whose rules it leaves out, give what the whole tables give."""

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from combos.core.cooldowns import CooldownEntry, CooldownKey
from combos.core.eligibility import AT_REST, RULES, Constraints, reason_out
from combos.core.facts import Now
from combos.core.registry import Target
from combos.engine.request import never_spent
from combos.engine.select import Pick, Selector, over_budget
from combos.engine.speech import Speech
from combos.engine.state import PickedFrom
from fuzzing import law
from playbook import World, config, provider, target

KEYS = ("alpha/m1", "beta/m2", "gamma/m3")
NAMES = ("alpha", "beta", "gamma")
asked = st.sampled_from([set[str](), set[str](), {KEYS[0]}, set(KEYS[:2])])
some = st.sets(st.sampled_from(NAMES), max_size=1)


@st.composite
def worlds(draw: st.DrawFn) -> World:
    """A combo of three targets, some of which are out for reasons that the configuration gives."""
    rows = {
        name: provider(name, draw(st.sampled_from("RRRRCM")), disabled=draw(st.integers(0, 5)) == 0) for name in NAMES
    }
    targets = [target(key, **({"lastResort": True} if draw(st.booleans()) else {})) for key in KEYS]
    combo = {
        "strategy": draw(st.sampled_from(["failover", "failover", "jev", "round-robin", "random"])),
        "affinity": draw(st.sampled_from(["none", "none", "conversation"])),
        "waitForCooldownMs": draw(st.sampled_from([0, 9_000])),
        **({"cooldownWaitPolicy": "before-last-resort"} if draw(st.booleans()) else {}),
    }
    document = config(*targets, providers=rows, **combo)
    if draw(st.booleans()):
        document["budgets"] = {"providers": {name: {"tokensPerDay": 1} for name in draw(some)}}
    return World(document, draws=[0.5] * 20)


@st.composite
def selectors(draw: st.DrawFn) -> Selector:
    """A request in such a world, in which some targets are out for the time being."""
    world = draw(worlds())
    state, now = world.state, world.now
    world.unusable = dict.fromkeys(draw(some), "no_credentials")
    world.spent = {key for key in KEYS if key.partition("/")[0] in draw(some)}
    for name in draw(some):
        state.spending.add(name, "main", None, 10, now.epoch_ms)
    for key in KEYS:
        if (left := draw(st.sampled_from([None, None, -1, 5_000]))) is not None:
            ends = now.mono_ms + left
            state.cooldowns.replace(CooldownKey("main", key), CooldownEntry(ends, "rule", "default", 429))
    request = world.request(previous_response_id="r1") if draw(st.integers(0, 5)) == 0 else world.request()
    if draw(st.booleans()):
        request = replace(request, spent=never_spent)
    origin = PickedFrom(world.registry.combos["main"], world.registry.generation)
    return Selector(request, state, origin, Speech(request, state), encrypted=draw(st.integers(0, 5)) == 0)


def is_eligible(selector: Selector, one: Target, tried: set[str], now: Now) -> bool:
    """Whether no row of the whole table keeps a target out, and the request can be said to it."""
    request, state, combo = selector.request, selector.state, selector.origin.combo
    asked = Constraints(
        can_speak=lambda named: selector.speaker.problem(Pick(named, selector.origin), now) is None,
        encrypted=selector.encrypted,
        unusable=request.unusable,
        spent=lambda named: request.spent(named) or state.quota.spent(named, now),
        tried=tried,
        cooling_ms=lambda named: state.cooling_ms(combo, named, now),
        over_budget=over_budget(request, state, combo.id, now),
    )
    return reason_out(one, asked, RULES) is None


def long_way(selector: Selector, tried: set[str], now: Now) -> Pick | None:
    """What the whole selection picks without a wait."""
    try:
        next(selector.select(tried, now))
    except StopIteration as chosen:
        pick: Pick | None = chosen.value
        return pick
    return None


@settings(law, max_examples=300)
@given(selectors(), asked)
def test_the_short_way_picks_what_the_long_way_picks(selector: Selector, tried: set[str]) -> None:
    now, first = World(config()).now, selector.origin.combo.first
    pick = selector.first(tried, now)
    if first is not None and is_eligible(selector, first, tried, now):
        assert pick == Pick(first, selector.origin) == long_way(selector, tried, now)
    else:
        assert pick is None


@settings(law, max_examples=300)
@given(selectors(), asked)
def test_a_pick_is_the_first_that_the_whole_table_lets_through(selector: Selector, tried: set[str]) -> None:
    now, combo = World(config()).now, selector.origin.combo
    pick = selector.at_once(tried, now)
    eligible = [one for one in (*combo.normal, *combo.targets) if is_eligible(selector, one, tried, now)]
    assert (pick is None) is (not eligible)
    if pick is not None:
        assert pick.target in eligible
    if pick is not None and combo.is_in_order:
        assert pick.target is eligible[0]


def test_rules_that_are_left_out_are_rules_of_the_table() -> None:
    assert [rule for rule in RULES if rule in AT_REST] == list(AT_REST)


@pytest.mark.parametrize(
    ("policy", "marked", "normal", "first"),
    [
        (None, (), KEYS, KEYS[0]),
        (None, KEYS[:1], KEYS, KEYS[0]),
        ("before-last-resort", KEYS[:1], KEYS[1:], KEYS[1]),
        ("before-last-resort", KEYS, KEYS, KEYS[0]),
    ],
)
def test_last_resorts_stand_back_where_something_else_is_there(
    policy: str | None, marked: tuple[str, ...], normal: tuple[str, ...], first: str
) -> None:
    rows = [target(key, lastResort=key in marked) for key in KEYS]
    combo = World(config(*rows, **({"cooldownWaitPolicy": policy} if policy else {}))).registry.combos["main"]
    assert tuple(one.key for one in combo.normal) == normal
    assert combo.first is not None
    assert combo.first.key == first
    spread = World(config(*rows, strategy="round-robin")).registry.combos["main"]
    assert spread.first is None
