"""Who is called for a hook, in which order. See `test_hooks` for what becomes of it."""

from types import SimpleNamespace

import pytest
from mitmproxy.addons.anticache import AntiCache
from mitmproxy.addons.maplocal import MapLocal
from mitmproxy.addons.mapremote import MapRemote
from mitmproxy.addons.stickyauth import StickyAuth
from mitmproxy.test import taddons

from combos.mitm.hook_steps import Step, has_coroutine, steps_of
from combos.mitm.relays import Relays


class Plain:
    def __init__(self, name: str, *addons: object) -> None:
        self.name = name
        self.addons = list(addons)

    def request(self, flow: object) -> None: ...


class Awaited(Plain):
    async def request(self, flow: object) -> None: ...  # type: ignore[override]


class Silent:
    """Handles nothing."""


class Host:
    service = None


def steps(*addons: object) -> tuple[Step, ...]:
    with taddons.context() as context:
        context.master.addons.chain.extend(addons)
        found = steps_of(context.master.addons, "request")
    assert found is not None
    return found


def test_the_order_of_addons_and_those_below_them() -> None:
    inner, last = Plain("inner"), Plain("last")
    group = Plain("group", inner, Silent())
    found = steps(group, Silent(), last)
    assert [step.addon for step in found] == [group, inner, last]
    assert [step.following for step in found] == [2, 2, 3]
    assert not [step for step in found if step.idlers is not None or step.left is not None or step.is_ours]


def test_neighbours_that_may_be_left_out_are_found_with_the_first_of_them() -> None:
    plain = Plain("between")
    found = steps(AntiCache(), MapLocal(), plain, StickyAuth(), Plain("last"), MapRemote())
    assert [step.left is not None for step in found] == [True, True, False, True, False, True]
    assert {place: step.past for place, step in enumerate(found) if step.idlers is not None} == {0: 2, 3: 4, 5: 6}


@pytest.mark.parametrize("is_replaced", [False, True])
def test_which_handlers_are_ours(is_replaced: bool) -> None:
    ours = Relays(Host(), "machine")
    if is_replaced:
        vars(ours)["request"] = print
    assert [step.is_ours for step in steps(Plain("other"), ours)] == [False, not is_replaced]


def test_a_handler_that_cannot_be_called_is_left_to_mitmproxy() -> None:
    with taddons.context() as context:
        context.master.addons.chain.extend([Plain("good"), SimpleNamespace(request="text")])
        assert steps_of(context.master.addons, "request") is None


def test_handlers_that_must_be_awaited() -> None:
    assert not has_coroutine(steps(Plain("plain")))
    assert has_coroutine(steps(Plain("plain"), Awaited("awaited")))
