"""The management API on a temporary configuration, with a scripted upstream and a clock that tests turn."""

import json
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from aiohttp import web
from aiohttp.test_utils import TestClient, TestServer

from combos.admin.activity import Activity
from combos.admin.app import AdminServer
from combos.admin.live_config import Change, LiveConfig
from combos.admin.parts import Parts
from combos.admin.store import ConfigStore
from combos.core.facts import Headers, Now, TransportFault
from combos.core.registry import Provider
from combos.decision.service import Secrets
from combos.engine.commands import OutboundRequest, Timeouts
from combos.engine.state import EngineState
from combos.upstream.decision import Decider
from combos.upstream.exchange import Answer
from combos.upstream.faults import UpstreamFault

TOKEN = "ocx_admin_" + "t" * 43
AUTH = {"Authorization": f"Bearer {TOKEN}"}


class NoUpstream:
    """Refuses every connection."""

    async def send(self, request: OutboundRequest, timeouts: Timeouts, secrets: Headers = ()) -> Answer:
        raise UpstreamFault(TransportFault.REFUSED, "connection refused")


@dataclass
class Stage:
    """Everything a test may look at or turn."""

    path: Path
    live: LiveConfig
    state: EngineState
    activity: Activity
    client: "TestClient[Any, Any]"
    server: AdminServer
    now: list[Now] = field(default_factory=lambda: [Now(1_000_000, 1_700_000_000_000)])
    unusable: dict[str, str] = field(default_factory=dict)
    addresses: dict[str, Sequence[str]] = field(default_factory=dict)

    async def call(self, method: str, path: str, body: Any = None, **options: Any) -> tuple[int, Any]:
        """Status and JSON of an authorised request."""
        options.setdefault("headers", AUTH)
        if body is not None:
            options["json"] = body
        async with self.client.request(method, path, **options) as answer:
            return answer.status, await answer.json()

    @property
    def document(self) -> Any:
        """What the file holds now."""
        return json.loads(self.path.read_text())


@asynccontextmanager
async def stage(
    path: Path, document: Any, *, environ: dict[str, str] | None = None, pages: Sequence[web.RouteDef] = ()
) -> AsyncIterator[Stage]:
    """Start on a document; None starts without a file."""
    if document is not None:
        path.write_text(json.dumps(document))  # noqa: ASYNC240 - nothing else runs yet
    live, state, activity = LiveConfig(path), EngineState(), Activity()
    live.subscribe(state.reconcile)
    live.reload()
    made: list[Stage] = []

    async def lookup(host: str) -> Sequence[str]:
        return made[0].addresses.get(host, ["93.184.216.34"])

    def unusable(provider: Provider) -> str | None:
        return made[0].unusable.get(provider.name)

    def reload() -> Change:
        return live.reload()

    parts = Parts(
        live=live, store=ConfigStore(path), state=state, activity=activity, now=lambda: made[0].now[0],
        unusable=unusable, reload=reload, sender=NoUpstream(), secrets=lambda _: ((b"authorization", b"Bearer k"),),
        environ={"COMBOS_ADMIN_TOKEN": TOKEN} if environ is None else environ, lookup=lookup,
        decider=Decider(NoUpstream(), lambda: Secrets({})),
    )  # fmt: skip
    server = AdminServer(parts, pages)
    server.open_token()
    async with TestClient(TestServer(server.app)) as client:
        made.append(Stage(path, live, state, activity, client, server))
        yield made[0]
        await server.close()
