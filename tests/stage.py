"""The addon in a real mitmproxy master, with scripted providers around it and a clock that the test moves.

    alpha, beta = [error(503, {...})], [R.answers("beta-ok")]
    async with stage(confdir, case := Case(R, alpha=..., beta=...)) as on:
        answer = await on.ask(case)
        assert case.calls == ["alpha", "beta"] and on.cooling(case) == {"alpha/m1": 60_000}

One stage serves many cases at once: each has a combo and providers of its own, so that none sees another's cooldowns.
"""

import asyncio
import dataclasses
import itertools
import json
import logging
import ssl
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

from mitmproxy import ctx
from mitmproxy.hooks import ConfigureHook
from mitmproxy.http import HTTPFlow

from combos.core.cooldowns import CooldownKey
from combos.core.facts import Now
from combos.engine.record import TurnRecord
from combos.mitm.addon import Combos
from combos.mitm.service import Service
from mitm.harness import Proxy, running_proxy
from ports import free_port
from rawclient import Answer, Talk, answer_of, request_bytes, talk
from rawserver import Again, Connection, Pairs, RawServer, Request, Send, Step, play
from wires import Wire, error

EPOCH_MS = 1_790_856_000_000
"""2026-10-01 12:00:00 UTC, when every case begins."""

type Script = bytes | Sequence[Step]

at_listener = False
"""Whether clients enter stages at the addon's own listener. The fixture `entrance` of a directory sets it."""

_STUBS = ("alpha", "beta", "gamma", "delta")
_UNEXPECTED = error(500, {"error": {"message": "this stub was not to be called"}})


class Clock:
    """The addon's time. It stands still until a test moves it. `reads` counts how often it was asked."""

    def __init__(self) -> None:
        self.mono_ms = 5_000
        self.epoch_ms = EPOCH_MS
        self.reads = 0

    def __call__(self) -> Now:
        self.reads += 1
        return Now(self.mono_ms, self.epoch_ms)

    def advance(self, ms: int) -> None:
        self.mono_ms += ms
        self.epoch_ms += ms


class Case:
    """One combo with stub providers. A stub is a script, or a list of them for one call after another.

    `targets` are `stub/model` names in order, by default `alpha/m1`, `beta/m2`, `gamma/m3` for the stubs given.
    `urls` replaces the address of a stub, `providers` adds fields to one, `combo` adds fields to the combo.
    """

    def __init__(
        self,
        wire: Wire,
        *,
        targets: Sequence[str] = (),
        combo: Mapping[str, Any] | None = None,
        providers: Mapping[str, Mapping[str, Any]] | None = None,
        urls: Mapping[str, str] | None = None,
        weights: Sequence[int] = (),
        **stubs: Script | list[Script],
    ) -> None:
        self.wire = wire
        self.id = ""
        self.calls: list[str] = []
        self.requests: list[Request] = []
        self.record: TurnRecord | None = None
        self.records: list[TurnRecord] = []
        self._scripts = {name: _scripts(given) for name, given in stubs.items()}
        self._urls = dict(urls or {})
        known = [f"{name}/m{n}" for n, name in enumerate(_STUBS, 1) if name in stubs or name in self._urls]
        self.targets = list(targets) or known
        self._combo = dict(combo or {})
        self._providers = dict(providers or {})
        self._weights = weights

    @property
    def model(self) -> str:
        return f"combo/{self.id}"

    def provider(self, stub: str) -> str:
        return f"{self.id}-{stub}"

    def requests_of(self, stub: str) -> list[Request]:
        """What this stub was sent."""
        return [request for name, request in zip(self.calls, self.requests, strict=True) if name == stub]

    def providers(self, origin: str) -> dict[str, Any]:
        """The provider objects. A field given as None is left out."""
        names = dict.fromkeys(target.partition("/")[0] for target in self.targets)
        rows = {
            self.provider(name): {
                "adapter": self.wire.adapter,
                "baseUrl": self._urls.get(name, f"{origin}/{self.id}/{name}/v1"),
                "apiKey": f"{name}-key",
                "allowPrivateNetwork": True,
                "liveModels": False,  # the stubs answer model requests, and every request counts as one
                **self._providers.get(name, {}),
            }
            for name in names
        }
        return {name: {key: value for key, value in row.items() if value is not None} for name, row in rows.items()}

    def combo(self) -> dict[str, Any]:
        split = (target.partition("/")[::2] for target in self.targets)
        rows: list[dict[str, Any]] = [{"provider": self.provider(name), "model": model} for name, model in split]
        for row, weight in zip(rows, self._weights, strict=False):
            row["weight"] = weight
        return {"targets": rows, **self._combo}

    async def play(self, stub: str, request: Request, connection: Connection) -> None:
        scripts = self._scripts.get(stub, [[Send(_UNEXPECTED)]])
        script = scripts[min(self.calls.count(stub), len(scripts) - 1)]
        self.calls.append(stub)
        self.requests.append(request)
        await play(script, connection)


def _scripts(given: Script | list[Script]) -> list[Sequence[Step]]:
    is_many = isinstance(given, list) and bool(given) and isinstance(given[0], bytes | list | tuple)
    many = given if is_many else [given]
    return [[Send(script)] if isinstance(script, bytes) else script for script in many]


class Asker:
    """Asks the proxy on `port` of 127.0.0.1 for a case's combo, at the proxy's own address."""

    port: int

    def request(self, case: Case, body: bytes | None = None, headers: Pairs = (), **fields: Any) -> bytes:
        """The client's request for the case's combo, as bytes."""
        if body is None:
            body = json.dumps(case.wire.request(fields.pop("model", case.model), **fields)).encode()
        own = [(b"Host", b"127.0.0.1:%d" % self.port), (b"Content-Type", b"application/json"), *headers]
        return request_bytes("POST", case.wire.path, own, body)

    async def ask(self, case: Case, body: bytes | None = None, headers: Pairs = (), **fields: Any) -> Answer:
        """One request for the case's combo and its whole answer."""
        async with self.talk(case, body, headers, **fields) as started:
            return await answer_of(started)

    @asynccontextmanager
    async def talk(
        self, case: Case, body: bytes | None = None, headers: Pairs = (), **fields: Any
    ) -> AsyncIterator[Talk]:
        """One request whose answer is read step by step."""
        async with talk(self.port, self.request(case, body, headers, **fields)) as started:
            yield started

    async def ask_all(self, cases: Sequence[Case], **fields: Any) -> list[Answer]:
        """One request for each of the cases, at the same time."""
        return await asyncio.gather(*(self.ask(case, **fields) for case in cases))


class Stage(Asker):
    """A running proxy with its cases."""

    def __init__(self, proxy: Proxy, combos: Combos, clock: Clock, server: RawServer) -> None:
        assert combos.service is not None
        self.proxy = proxy
        self.port = proxy.port
        self.combos = combos
        self.service: Service = combos.service
        self.clock = clock
        self.server = server
        self.flows: list[HTTPFlow] = []

    def cooling(self, case: Case) -> dict[str, int]:
        """Target → milliseconds left, for the targets that are cooling."""
        left = {
            target: self.service.state.cooldowns.remaining(
                CooldownKey(case.id, f"{case.id}-{target}"), self.clock.mono_ms
            )
            for target in case.targets
        }
        return {target: ms for target, ms in left.items() if ms}


class Deferred:
    """Sets options that another addon is yet to declare. Comes before it."""

    def __init__(self, options: Mapping[str, Any]) -> None:
        self._options = options

    def load(self, loader: object) -> None:
        ctx.options.update_defer(**self._options)


class Configured:
    """Has another addon take the options, as mitmproxy does for one loaded with `-s`. Comes after it."""

    def __init__(self, addon: object) -> None:
        self._addon = addon

    def load(self, loader: object) -> None:
        ctx.master.addons.invoke_addon_sync(self._addon, ConfigureHook(set(ctx.options.keys())))


class _Flows:
    """Keeps the flows that pass."""

    def __init__(self) -> None:
        self.flows: list[HTTPFlow] = []

    def requestheaders(self, flow: HTTPFlow) -> None:
        self.flows.append(flow)


_names = itertools.count()


@asynccontextmanager
async def stubs(*cases: Case, tls: ssl.SSLContext | None = None) -> AsyncIterator[RawServer]:
    """Name the cases and serve their stub providers, all on one port."""
    for case in cases:
        case.id = f"c{next(_names)}"
    by_id = {case.id: case for case in cases}

    async def serve(connection: Connection) -> None:
        request = await connection.request()
        _, case_id, stub, *_ = request.target.split("/")
        await by_id[case_id].play(stub, request, connection)

    async with RawServer([Again([serve])], tls=tls) as server:
        yield server


@asynccontextmanager
async def stage(
    confdir: Path,
    *cases: Case,
    addons: Sequence[object] = (),
    before: Sequence[object] = (),
    document: Mapping[str, Any] | None = None,
    combos_options: Mapping[str, Any] | None = None,
    tls: ssl.SSLContext | None = None,
    **options: Any,
) -> AsyncIterator[Stage]:
    """Start everything; at the end, fail if something was logged as an error or with a traceback.

    `before` are addons that come before ours, `addons` those after it.
    """
    async with stubs(*cases, tls=tls) as server:
        path = confdir / f"combos-{next(_names)}.json"
        path.write_text(json.dumps(document_of(cases, server.url, document or {})))
        combos, clock, flows = Combos(), Clock(), _Flows()
        listen = f"127.0.0.1:{free_port()}" if at_listener else ""
        mine = {"combos_config": str(path), "combos_admin_listen": listen, **(combos_options or {})}
        with no_errors_logged():
            async with running_proxy(
                confdir, Deferred(mine), *before, combos, Configured(combos), flows, *addons, **options
            ) as proxy:
                made = Stage(proxy, combos, clock, server)
                made.flows = flows.flows
                if at_listener:
                    await until(lambda: combos.admin_address is not None)
                    made.port = (combos.admin_address or ("", 0))[1]
                _observe(made.service, clock, {case.id: case for case in cases})
                yield made


def document_of(cases: Sequence[Case], origin: str, more: Mapping[str, Any]) -> dict[str, Any]:
    """The configuration of the cases, and whatever else it is to hold."""
    made: dict[str, Any] = {"providers": {}, "combos": {}}
    for case in cases:
        made["providers"] |= case.providers(origin)
        made["combos"][case.id] = case.combo()
    for key, value in more.items():
        made[key] = {**made[key], **value} if key in made else value
    return made


def _observe(service: Service, clock: Clock, cases: Mapping[str, Case]) -> None:
    """Give the service the test's clock, and each case the record of its turns."""
    services = service._services

    def finished(flow: HTTPFlow, record: TurnRecord, changed: bool) -> None:
        if (case := cases.get(record.combo or "")) is not None:
            case.record = record
            case.records.append(record)
        services.finished(flow, record, changed)

    service.now = clock
    service._services = dataclasses.replace(services, finished=finished)


class _Errors(logging.Handler):
    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        if record.levelno >= logging.ERROR or record.exc_info:
            self.found.append(self.format(record))


@contextmanager
def no_errors_logged() -> Iterator[None]:
    """Fail when a message of level error, or one with a traceback, was logged."""
    handler = _Errors()
    logging.getLogger().addHandler(handler)
    try:
        yield
    finally:
        logging.getLogger().removeHandler(handler)
    assert not handler.found, "\n".join(handler.found)


async def until(condition: Callable[[], bool], limit_s: float = 10) -> None:
    """Wait for a condition that nothing announces."""
    async with asyncio.timeout(limit_s):
        while not condition():  # noqa: ASYNC110 - what is waited for has no event
            await asyncio.sleep(0.002)
