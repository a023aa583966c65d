"""Changes of the addons are noticed; what is no change is not. See `test_hooks` for what follows from it."""

from types import SimpleNamespace

import pytest
from mitmproxy.test import taddons

from combos.mitm.handlers_seen import HandlersSeen


class Fresh:
    """Makes its list of sub-addons anew each time, as mitmproxy's scripts do."""

    def __init__(self, *addons: object) -> None:
        self._addons = addons

    @property
    def addons(self) -> list[object]:
        return list(self._addons)


class Slotted:
    __slots__ = ()


class Bare:
    """Has no attribute of its own."""


def test_the_first_attribute_of_an_addon() -> None:
    bare = Bare()
    with taddons.context(bare) as context:
        seen = HandlersSeen(context.master.addons)
        seen.look()
        assert seen.is_current()
        vars(bare)["request"] = print
        assert not seen.is_current()


@pytest.mark.parametrize("is_changed", [True, False])
def test_a_change_among_addons_of_every_kind(is_changed: bool) -> None:
    inner = SimpleNamespace(name="inner", value=1)
    with taddons.context(Fresh(inner), Slotted()) as context:
        seen = HandlersSeen(context.master.addons)
        assert not seen.is_current()
        seen.look()
        assert seen.is_current()
        inner.value = 2
        if is_changed:
            inner.request = print
        assert seen.is_current() is not is_changed
        seen.look()
        assert seen.is_current()
