"""A request at the listener leaves nothing behind that only a garbage collection could free."""

import gc
import weakref
from collections.abc import Iterator
from pathlib import Path

import pytest
from mitmproxy.http import HTTPFlow

import stage as entrances
from stage import Case, stage, until
from wires import C, R, Wire, error

DOWN = error(503, {"error": {"message": "down"}})


@pytest.fixture(autouse=True)
def at_listener(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(entrances, "at_listener", True)


@pytest.fixture(autouse=True)
def _uncollected() -> Iterator[None]:
    gc.collect()
    gc.disable()
    yield
    gc.enable()


class Noting:
    """Notes the flows without keeping them."""

    def __init__(self) -> None:
        self.flows: list[weakref.ref[HTTPFlow]] = []

    def requestheaders(self, flow: HTTPFlow) -> None:
        self.flows.append(weakref.ref(flow))


@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize("wire", [C, R], ids=lambda wire: wire.name)
@pytest.mark.parametrize("hops", [False, True])
async def test_flows_are_gone_when_their_answers_are_over(wire: Wire, stream: bool, hops: bool, confdir: Path) -> None:
    answer = wire.answers("ok", stream=stream)
    case = Case(wire, alpha=DOWN, beta=answer) if hops else Case(wire, alpha=answer)
    noting = Noting()
    async with stage(confdir, case, addons=[noting]) as on:
        assert (await on.ask(case, stream=stream)).status == 200
        await until(lambda: all(not flow.live for flow in on.flows))
        seen = len(noting.flows)
        on.flows.clear()
        await until(lambda: not any(noted() for noted in noting.flows))
    assert seen == (3 if hops else 1)
