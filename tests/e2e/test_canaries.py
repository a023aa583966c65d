"""Credentials of the caller, of every provider and of the management are followed through everything that is written.

Each is a text of its own. Upstreams repeat in their failures whatever they were sent. Afterwards no artefact holds one
that does not belong there, and no upstream has seen one of somebody else.
"""

import asyncio
import gzip
import json
import re
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
from click.testing import CliRunner
from mitmproxy.http import HTTPFlow
from mitmproxy.io import FlowReader

from combos.cli.main import main as cli
from e2e.proxyprocess import ProxyProcess, mitmdump
from ports import free_port
from rawclient import Answer, ask
from rawserver import Again, Connection, RawServer, Request, closed_port, event_stream, response
from wires import WIRES, R, Wire, sse


def canary(owner: str) -> str:
    return f"canary-{owner}-7f3a9c51d2e8"


# Where a caller's credentials travel; `None` is the query.
CALLER = {
    "Authorization": f"Bearer {canary('caller-bearer')}",
    "x-api-key": canary("caller-x-api-key"),
    "x-goog-api-key": canary("caller-x-goog"),
    "api-key": canary("caller-api-key"),
    "Cookie": f"session={canary('caller-cookie')}",
    "chatgpt-account-id": canary("caller-account"),
    "openai-organization": canary("caller-organization"),
    "openai-project": canary("caller-project"),
    "Proxy-Authorization": f"Basic {canary('caller-proxy')}",
}
CALLER_QUERY = canary("caller-query")
OWN = re.compile(rb"canary-[a-z0-9-]+?-7f3a9c51d2e8")


def provider(origin: str, name: str, adapter: str = "openai-responses", **fields: Any) -> dict[str, Any]:
    row = {"adapter": adapter, "baseUrl": f"{origin}/{name}/v1", "allowPrivateNetwork": True, "liveModels": False}
    return {**row, "reasoningEfforts": ["low", "high"], **fields}


def configuration(origin: str, token_file: Path, dead: int) -> dict[str, Any]:
    """Every way in which a credential can be configured, and combos whose targets fail one after the other."""
    pool = [{"id": "one", "key": canary("pool1")}, {"id": "two", "key": canary("pool2")}]
    providers = {
        "alpha": provider(origin, "alpha", apiKey=canary("alpha"), liveModels=True),
        "pool": provider(origin, "pool", "openai-chat", apiKeyPool=pool),
        "variable": provider(origin, "variable", "anthropic", apiKey="${CANARY_VARIABLE}"),
        "token": provider(origin, "token", authMode="oauth", accountPool=[{"id": "a", "tokenFile": str(token_file)}]),
        "field": provider(origin, "field", headers={"x-team-token": canary("field")}, authMode="local"),
        "google": provider(origin, "google", "google", apiKey=canary("google")),
        "azure": provider(origin, "azure", "azure-openai", apiKey=canary("azure")),
        "away": provider(origin, "away", apiKey=canary("alpha"), proxy=f"http://u:{canary('egress')}@127.0.0.1:{dead}"),
        "own": provider(origin, "own", authMode="forward"),
        "live": provider(origin, "live", apiKey=canary("live")),
        "judge": {
            **provider(
                origin, "judge", "jev-decision", apiKey=canary("judge"), defaultModel="tev1:4b", reasoningEfforts=[]
            ),
            "baseUrl": f"{origin}/judge/systemone",
        },
    }
    failing = [name for name in providers if name not in ("own", "judge", "live")]
    targets = [{"provider": name, "model": "m"} for name in failing]
    return {
        "providers": providers,
        "combos": {
            "ends-well": {"targets": [*targets, {"provider": "own", "model": "well"}]},
            "ends-badly": {"targets": targets[::-1]},
            "decided": {"targets": targets[:2], "strategy": "jev", "decisionProvider": "judge"},
            "streamed": {"targets": [{"provider": "live", "model": "m"}, targets[0]]},
            **{f"only-{name}": {"targets": [{"provider": name, "model": "m"}]} for name in failing},
        },
        "apiKeys": [canary("admission")],
    }


REPEATED = "repeated in a stream"
"""A stream is not changed: what a target writes in one is seen by the client, and is in the body of its flow alone."""


class Echo:
    """Upstreams that answer with everything they were sent: in the body, in a header, in the reason of a challenge."""

    def __init__(self) -> None:
        self.seen: dict[str, list[Request]] = {}

    async def serve(self, connection: Connection) -> None:
        request = await connection.request()
        name = request.target.split("/")[1]
        self.seen.setdefault(name, []).append(request)
        if b'"well"' in request.body:
            connection.writer.write(R.answers("done", stream=json.loads(request.body).get("stream") is True))
            return
        shown = [value for _, value in request.headers if OWN.search(value)]
        if name == "live":
            event = {"type": "error", "code": "server_error", "message": f"{REPEATED}: {shown}"}
            connection.writer.write(event_stream(sse(event)))
            return
        status = {"alpha": 401, "pool": 429, "variable": 500, "google": 403, "azure": 404}.get(name, 503)
        said = {"error": {"message": f"refused: {b' '.join(shown).decode('latin-1')}", "code": "invalid_api_key"}}
        echoes = [(b"WWW-Authenticate", b"Bearer " + value) for value in shown]
        kind = [(b"Content-Type", b"application/json")]
        connection.writer.write(response(status, json.dumps(said).encode(), [*kind, *echoes]))


class World:
    """A process with its upstreams, what clients were answered, and everything that was written."""

    def __init__(self, proxy: ProxyProcess, echo: Echo, admin: int, files: Path) -> None:
        self.proxy = proxy
        self.echo = echo
        self.admin = admin
        self.files = files
        self.answers: list[Answer] = []

    async def ask(self, wire: Wire, combo: str, *, port: int | None = None, **fields: Any) -> Answer:
        headers = [(b"Content-Type", b"application/json"), *((k.encode(), v.encode()) for k, v in CALLER.items())]
        body = json.dumps(wire.request(combo, **fields)).encode()
        target = f"{wire.path}?key={CALLER_QUERY}&beta=true"
        made = await ask(port or self.proxy.port, "POST", target, headers=headers, body=body)
        self.answers.append(made)
        return made

    async def managed(self) -> AsyncIterator[tuple[str, bytes]]:
        """Every answer of the management that can be read, and refusals that repeat what was sent."""
        base, token = f"http://127.0.0.1:{self.admin}", canary("admin")
        async with aiohttp.ClientSession(headers={"Authorization": f"Bearer {token}"}) as session:
            async with session.get(f"{base}/api/openapi.json") as got:
                described = await got.json()
            for path, methods in described["paths"].items():
                if path == "/api/events":
                    continue
                for method in methods:
                    real = re.sub(r"\{[^}]+\}", "alpha", path)
                    options: dict[str, Any] = {"params": {"id": "ends-badly", "name": "alpha", "refresh": "true"}}
                    if method != "get":
                        options["json"] = {"id": "x", "apiKey": canary("admin"), "combo": {"targets": canary("admin")}}
                    async with session.request(method, base + real, **options) as got:
                        yield f"{method} {real}", await got.read() + repr(got.headers).encode()
            for page in ("/", "/healthz", "/nothing", "/app.js"):
                async with session.get(base + page) as got:
                    yield page, await got.read() + repr(got.headers).encode()
            async with session.get(
                f"{base}/api/combos", headers={"Authorization": f"Bearer {canary('admin')}x"}
            ) as got:
                yield "refused", await got.read()

    async def commands(self) -> AsyncIterator[tuple[str, bytes]]:
        """What `ocx` prints, as text and as JSON."""
        environ = {"COMBOS_HOME": str(self.files), "COMBOS_ADMIN_TOKEN": canary("admin")}
        runner = CliRunner(env={**environ, "CANARY_VARIABLE": canary("variable")})
        for command in COMMANDS:
            for more in ([], ["--json"]):
                done = await asyncio.to_thread(runner.invoke, cli, [*command.split(), *more])
                yield f"ocx {command}", done.output.encode() + repr(done.exception).encode()


COMMANDS = (
    "config show", "config validate", "provider list", "provider show alpha", "provider show away", "combo list",
    "combo show ends-badly", "state", "cooldowns", "usage", "explain ends-badly", "catalog", "health", "ready",
)  # fmt: skip


@asynccontextmanager
async def world(folder: Path, confdir: Path) -> AsyncIterator[World]:
    echo, admin, home = Echo(), free_port(), folder / "home"
    token_file = folder / "token.json"
    token_file.write_text(json.dumps({"access_token": canary("token"), "account_id": canary("account")}))
    with closed_port() as dead:
        async with RawServer([Again([echo.serve])]) as server:
            arguments = ["-w", str(folder / "flows"), "--set", "termlog_verbosity=debug"]
            arguments += ["--set", "combos_attempt_flows=all", "--set", "combos_response_headers=true"]
            arguments += ["--set", f"combos_state=redis://u:{canary('state')}@127.0.0.1:{dead}"]
            environ = {"CANARY_VARIABLE": canary("variable"), "COMBOS_ADMIN_TOKEN": canary("admin")}
            document = configuration(server.url, token_file, dead)
            async with mitmdump(
                home, confdir, *arguments, document=document, environ=environ, admin=f"127.0.0.1:{admin}"
            ) as proxy:
                yield World(proxy, echo, admin, home)


def owners(data: bytes) -> set[str]:
    """Whose credentials stand in the data, plain or in a gzip body."""
    if data.startswith(b"\x1f\x8b"):
        data = gzip.decompress(data)
    return {found.decode() for found in OWN.findall(data)}


def flows(path: Path) -> Iterator[HTTPFlow]:
    with path.open("rb") as file:
        yield from (flow for flow in FlowReader(file).stream() if isinstance(flow, HTTPFlow))


MINE = {value.split(" ")[-1].removeprefix("session=") for value in CALLER.values()} | {CALLER_QUERY}
ALLOWED = {
    "alpha": {canary("alpha")},
    "pool": {canary("pool1"), canary("pool2")},
    "variable": {canary("variable")},
    "token": {canary("token"), canary("account")},
    "field": {canary("field")},
    "google": {canary("google")},
    "azure": {canary("azure")},
    "live": {canary("live")},
    "own": MINE - {CALLER_QUERY, canary("caller-proxy")},
    "judge": {canary("judge")},
}


async def test_no_credential_is_found_where_it_does_not_belong(tmp_path: Path, confdir: Path) -> None:
    found: dict[str, set[str]] = {}
    async with world(tmp_path, confdir) as on:
        for wire in WIRES:
            for combo in on_combos():
                for stream in (True, False):
                    await on.ask(wire, combo, stream=stream)
        await on.ask(R, "combo/ends-badly", port=on.admin)
        direct = await ask(on.proxy.port, "GET", "/v1/models/alpha/m?key=" + CALLER_QUERY)
        on.answers += [direct, await ask(on.proxy.port, "GET", "/v1/models")]
        found |= {f"answer {i}": owners(a.body + repr(a.headers).encode()) for i, a in enumerate(on.answers)}
        found |= {name: owners(data) async for name, data in on.managed()}
        found |= {name: owners(data) async for name, data in on.commands()}
        assert {name for name, seen in on.echo.seen.items() if seen} >= set(ALLOWED)
        for name, seen in on.echo.seen.items():
            shown = set().union(*(owners(request.head + request.body) for request in seen))
            assert shown <= ALLOWED[name], name
            assert shown, name
    found["log"] = owners(on.proxy.log.encode())
    for path in on.files.rglob("*"):
        if path.is_file() and not path.name.startswith("config.json"):  # itself, and how it was before the last change
            found[path.name] = owners(path.read_bytes())
    assert {"usage.sqlite"} <= set(found)
    assert {name: seen for name, seen in found.items() if seen} == {}
    check_flows(tmp_path / "flows")


def on_combos() -> list[str]:
    names = ("alpha", "pool", "variable", "token", "field", "google", "azure", "away")
    several = ("combo/ends-well", "combo/ends-badly", "combo/decided", "combo/streamed")
    return [*several, *(f"combo/only-{name}" for name in names), "alpha/m"]


def check_flows(path: Path) -> None:
    """A recorded flow of a client holds what the client sent; nothing else holds a credential of anybody."""
    recorded = list(flows(path))
    assert len(recorded) > 100
    for flow in recorded:
        is_attempt = "client_flow" in flow.metadata.get("combos", {})
        sent = b"\n".join([*(value for _, value in flow.request.headers.fields), flow.request.path.encode()])
        response_ = flow.response
        got = b"" if response_ is None else repr(response_.headers).encode() + (response_.raw_content or b"")
        noted = json.dumps([flow.metadata, flow.comment, str(flow.error)]).encode()
        assert owners(sent) <= (set() if is_attempt else MINE | {canary("admin")})
        if REPEATED.encode() in got:
            assert owners(got) == {canary("live")}
            got = b""
        assert owners(got + noted + (flow.request.raw_content or b"")) == set()
