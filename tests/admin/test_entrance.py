"""The way in at the listener: what is for models, what is for the management, and what a client's leaving ends."""

import asyncio
import gzip
import json
import zlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from aiohttp import web

from adminstage import AUTH, Stage, stage
from combos.admin.app import BODY_MAX, AdminServer
from combos.admin.client_wire import ClientWire
from combos.admin.entrance import is_for_models
from configs import document
from ports import free_port
from rawclient import Answer, answer_of, request_bytes, talk
from rawserver import Pairs
from stage import until


class Echo:
    """Answers with what it was asked; a path that ends in `/slow` waits until the client leaves."""

    body_limit = 1_000

    def __init__(self) -> None:
        self.begun = asyncio.Event()
        self.left = asyncio.Event()

    async def serve(self, request: web.BaseRequest, target: str, body: bytes | None, wire: ClientWire) -> None:
        if target.endswith("/slow"):
            self.begun.set()
            try:
                await asyncio.Event().wait()
            finally:
                self.left.set()
        said = json.dumps([request.method, target, None if body is None else body.decode()]).encode()
        wire.head(200, b"Fine", [(b"content-length", b"%d" % len(said))], bodiless=False)
        wire.chunk(said)
        wire.end()
        wire.flush()


@asynccontextmanager
async def listening(tmp_path: Path, echo: Echo) -> AsyncIterator[tuple[Stage, int]]:
    async with stage(tmp_path / "config.json", document()) as api:
        server = AdminServer(api.server.parts, (), echo)
        _, port = await server.start("127.0.0.1", free_port())
        try:
            yield api, port
        finally:
            await server.close()


async def ask(port: int, method: str, path: str, fields: Pairs = (), body: bytes = b"") -> Answer:
    host = [] if any(name == b"Host" for name, _ in fields) else [(b"Host", b"127.0.0.1:%d" % port)]
    async with talk(port, request_bytes(method, path, [*host, *fields], body)) as started:
        return await answer_of(started)


MODELS = (
    "/v1", "/v1beta",
    "/v1/responses", "/v1/responses/compact", "/v1/chat/completions", "/v1/messages", "/v1/messages/count_tokens",
    "/v1/models", "/v1/models/a/b", "/v1beta/models/combo/main:generateContent", "/responses", "/chat/completions",
    "/backend-api/codex/responses", "/models/x", "/v1/anything", "/v1beta/anything", "/anthropic/v1/messages/",
)  # fmt: skip
MANAGED = (
    "/",
    "/healthz",
    "/metrics",
    "/api/models",
    "/api/v1/responses",
    "/api/combos",
    "/assets/app.js",
    "/v1x",
    "/x",
)


@pytest.mark.parametrize("path", MODELS)
def test_paths_of_models(path: str) -> None:
    assert is_for_models(path)


@pytest.mark.parametrize("path", MANAGED)
def test_paths_of_the_management(path: str) -> None:
    assert not is_for_models(path)


async def test_what_reaches_the_models(tmp_path: Path) -> None:
    async with listening(tmp_path, Echo()) as (_, port):
        asked = await ask(port, "POST", "/v1/responses?a=b%2Fc", body=b"{}")
        assert asked.json() == ["POST", "/v1/responses?a=b%2Fc", "{}"]
        whole = await ask(port, "GET", f"http://localhost:{port}/v1/models?x=1")
        assert whole.json() == ["GET", "/v1/models?x=1", ""]
        large = [(b"X-Token", b"t" * 30_000)]
        assert (await ask(port, "GET", "/v1/models", large)).status == 200


async def test_a_body_goes_on_as_it_was_sent(tmp_path: Path) -> None:
    coded = zlib.compress(b"{}")
    async with listening(tmp_path, echo := Echo()) as (_, port):
        seen: list[bytes | None] = []
        serve = echo.serve

        async def noting(request: web.BaseRequest, target: str, body: bytes | None, wire: ClientWire) -> None:
            seen.append(body)
            await serve(request, target, b"", wire)

        echo.serve = noting  # type: ignore[method-assign]
        await ask(port, "POST", "/v1/responses", [(b"Content-Encoding", b"deflate")], coded)
        await ask(port, "POST", "/v1/responses", body=b"x" * 1_000)
        await ask(port, "POST", "/v1/responses", body=b"x" * 1_001)
        assert seen == [coded, b"x" * 1_000, None]


@pytest.mark.parametrize("host", ["evil.example", "127.0.0.1.evil.example", ""])
async def test_only_names_of_this_machine(host: str, tmp_path: Path) -> None:
    async with listening(tmp_path, Echo()) as (_, port):
        refused = await ask(port, "GET", "/v1/models", [(b"Host", host.encode())])
        assert (refused.status, refused.json()["error"]["code"]) == (403, "forbidden")
        refused = await ask(port, "GET", f"http://{host or 'evil.example'}/v1/models", [(b"Host", b"127.0.0.1")])
        assert refused.status == 403


async def test_a_client_that_leaves_ends_its_request(tmp_path: Path) -> None:
    async with listening(tmp_path, echo := Echo()) as (_, port):
        message = request_bytes("POST", "/v1/slow", [(b"Host", b"127.0.0.1")], b"{}")
        async with talk(port, message) as client:
            await asyncio.wait_for(echo.begun.wait(), 10)
            client.leave()
            await asyncio.wait_for(echo.left.wait(), 10)


async def test_a_change_of_the_configuration_is_finished_without_its_client(tmp_path: Path) -> None:
    async with listening(tmp_path, Echo()) as (api, port):
        parts = api.server.parts
        begun, go_on = asyncio.Event(), asyncio.Event()
        edit = type(parts).edit

        async def slow(*given: object) -> object:
            begun.set()
            await go_on.wait()
            return await edit(*given)  # type: ignore[arg-type]

        body = json.dumps({"disabledModels": ["alpha/m9"]}).encode()
        fields = [
            (b"Host", b"127.0.0.1"),
            (b"Content-Type", b"application/json"),
            (b"Authorization", AUTH["Authorization"].encode()),
        ]
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(type(parts), "edit", slow)
            async with talk(port, request_bytes("PUT", "/api/disabled-models", fields, body)) as client:
                await asyncio.wait_for(begun.wait(), 10)
                client.leave()
            go_on.set()
            await until(lambda: api.document.get("disabledModels") == ["alpha/m9"])


async def test_a_compressed_body_of_the_management(tmp_path: Path) -> None:
    async with listening(tmp_path, Echo()) as (api, port):
        fields = [(b"Content-Encoding", b"gzip"), (b"Authorization", AUTH["Authorization"].encode())]
        body = gzip.compress(json.dumps({"disabledModels": ["alpha/m9"]}).encode())
        assert (await ask(port, "PUT", "/api/disabled-models", fields, body)).status == 200
        assert api.document["disabledModels"] == ["alpha/m9"]
        bomb = gzip.compress(b" " * (BODY_MAX + 1))
        assert (await ask(port, "PUT", "/api/disabled-models", fields, bomb)).status == 413
        assert (await ask(port, "PUT", "/api/disabled-models", fields, b"not gzip")).status == 400


async def test_pipelined_requests_are_answered_in_order_whoever_answers_them(tmp_path: Path) -> None:
    asyncio.get_running_loop().set_task_factory(asyncio.eager_task_factory)  # as mitmproxy does
    async with listening(tmp_path, Echo()) as (_, port):
        host = b"Host: 127.0.0.1:%d" % port
        paths = (b"/v1/a", b"/v1/b", b"/api/status", b"/v1/c")  # the third without a token
        lines = [b"GET %b HTTP/1.1\r\n%b\r\n\r\n" % (path, host) for path in paths]
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(b"".join(lines) + b"GET /v1/d HTTP/1.1\r\nConnection: close\r\n%b\r\n\r\n" % host)
        async with asyncio.timeout(10):
            said = await reader.read()
        writer.close()
        marks = (b"/v1/a", b"/v1/b", b"HTTP/1.1 401", b"/v1/c", b"/v1/d")
        places = [said.find(mark) for mark in marks]
        assert -1 not in places
        assert places == sorted(places)


@pytest.mark.parametrize("behind", [b"GET /api/status HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n", b"no request\r\n\r\n"])
async def test_what_follows_a_declined_upgrade_is_answered_after_it(tmp_path: Path, behind: bytes) -> None:
    asyncio.get_running_loop().set_task_factory(asyncio.eager_task_factory)  # as mitmproxy does
    upgrade = [(b"Host", b"127.0.0.1"), (b"Connection", b"upgrade"), (b"Upgrade", b"websocket")]
    first = request_bytes("GET", "/v1/first", upgrade, b"")
    async with listening(tmp_path, Echo()) as (_, port), talk(port, first + behind) as client:
        assert (await answer_of(client)).json()[1] == "/v1/first"
        assert (await client.head())[0] == (401 if b"/api" in behind else 400)


REFUSED = {
    "/v1/chat/completions": {"error"},
    "/v1/responses": {"error"},
    "/v1/messages": {"type", "error"},
    "/v1/messages/count_tokens": {"type", "error"},
    "/v1beta/models/m:generateContent": {"error"},
    "/v1/models": {"error"},
}


@pytest.mark.parametrize(("path", "members"), REFUSED.items())
async def test_refusals_have_the_form_of_their_dialect(tmp_path: Path, path: str, members: set[str]) -> None:
    async with listening(tmp_path, Echo()) as (_, port):
        answer = await ask(port, "POST", path, [(b"Host", b"evil.test")])
    assert answer.status == 403
    said = answer.json()
    assert set(said) == members
    assert ("status" in said["error"]) == ("generateContent" in path)
    assert ("param" in said["error"]) == path.endswith(("/chat/completions", "/models"))


async def test_a_refused_list_has_the_form_of_who_asks(tmp_path: Path) -> None:
    async with listening(tmp_path, Echo()) as (_, port):
        fields = [(b"Host", b"evil.test"), (b"anthropic-version", b"2023-06-01")]
        assert (await ask(port, "GET", "/v1/models", fields)).json()["type"] == "error"
