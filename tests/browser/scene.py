"""A real proxy with its dashboard, simulated providers whose behaviour a test sets, and Chromium looking at it.

async with scene(tmp_path, confdir) as on:
    await on.open("combos", "main", "live")
    on.providers.fail("alpha", 429, {"Retry-After": "30"})
    await on.ask("combo/main")
"""

import asyncio
import importlib.resources
import json
import os
import shutil
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import quote

import aiohttp
import pytest
from aiohttp import web

from e2e.proxyprocess import ProxyProcess, mitmdump
from ports import free_port

TOKEN = "ocx_admin_" + "b" * 43
IMAGES = Path(__file__).parents[2] / "docs" / "images"
IMAGE_MAX = 200_000
DOCUMENTED = frozenset(
    {
        "overview-1200-light",
        "live",
        "targets",
        "problems",
        "quota",
        "requests",
        "statistics",
        "live-420-dark",
        "mitmweb",
    }
)
"""Pictures that the documentation shows."""
PATIENCE_MS = 15_000  # two cores are shared with everything else that is tested
WIDE, NARROW = (1200, 780), (420, 860)

_BINARIES = ("chromium", "chromium-browser", "google-chrome")
_ARGUMENTS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
# A request that the page means to fail is in the console as well.
_EXPECTED = ("status of 400", "status of 401", "status of 404", "status of 409")


@dataclass
class Providers:
    """Simulated providers under `url/<name>/v1`, which answer in Chat Completions."""

    url: str = ""
    failing: dict[str, tuple[int, Mapping[str, str]]] = field(default_factory=dict)
    calls: list[str] = field(default_factory=list)

    def fail(self, name: str, status: int, headers: Mapping[str, str] | None = None) -> None:
        """From now on this provider answers so."""
        self.failing[name] = (status, headers or {})

    def mend(self, name: str) -> None:
        """From now on this provider serves."""
        self.failing.pop(name, None)

    async def _chat(self, request: web.Request) -> web.Response:
        name = request.match_info["name"]
        self.calls.append(name)
        if name in self.failing:
            status, headers = self.failing[name]
            error = {"message": "Rate limit reached", "type": "requests", "code": "rate_limit_exceeded"}
            return web.json_response({"error": error}, status=status, headers=headers)
        said = {"role": "assistant", "content": f"Hello from {name}"}
        choice = {"index": 0, "message": said, "finish_reason": "stop"}
        usage = {"prompt_tokens": 120, "completion_tokens": 30, "total_tokens": 150}
        answer = {"id": "c", "object": "chat.completion", "created": 1, "model": "m", "choices": [choice]}
        return web.json_response({**answer, "usage": usage})

    async def _models(self, _request: web.Request) -> web.Response:
        return web.json_response(
            {"object": "list", "data": [{"id": name, "object": "model"} for name in ("big", "small")]}
        )

    async def _decide(self, request: web.Request) -> web.Response:
        options = list((await request.json())["questions"]["route"]["criteria"])
        answer = {"type": "choice", "choice": options[-1], "confidence": 0.8}
        return web.json_response({"answers": {"route": answer}, "usage": {"input_tokens": 40, "output_tokens": 2}})

    @asynccontextmanager
    async def serve(self) -> AsyncIterator[None]:
        """Listen while inside."""
        app = web.Application()
        app.router.add_post("/{name}/v1/chat/completions", self._chat)
        app.router.add_get("/{name}/v1/models", self._models)
        app.router.add_post("/{name}/systemone", self._decide)
        runner = web.AppRunner(app, access_log=None)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        self.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
        try:
            yield
        finally:
            await runner.cleanup()


def document(url: str) -> dict[str, Any]:
    """Four providers, a decision service and three combos."""
    own = {"adapter": "openai-chat", "authMode": "local", "allowPrivateNetwork": True, "liveModels": False}
    providers = {
        name: {**own, "baseUrl": f"{url}/{name}/v1", "models": ["big", "small"]} for name in ("alpha", "beta", "gamma")
    }
    judge = {"adapter": "jev-decision", "baseUrl": f"{url}/judge/systemone", "apiKey": "judge-key", "models": ["tev1"]}
    main = [{"provider": name, "model": "big"} for name in ("alpha", "beta")]
    return {
        "providers": {
            **providers,
            "keyless": {"adapter": "openai-chat", "baseUrl": "https://api.example.com/v1", "liveModels": False},
            "judge": {**judge, "allowPrivateNetwork": True},
        },
        "combos": {
            "main": {"alias": "team/best", "displayName": "Team best", "targets": main},
            "turns": {
                "strategy": "round-robin",
                "targets": [
                    {"provider": "alpha", "model": "small", "weight": 3},
                    {"provider": "beta", "model": "small"},
                    {"provider": "keyless", "model": "gpt-5.5"},
                ],
            },
            "auto": {
                "strategy": "jev",
                "decisionProvider": "judge",
                "targets": [
                    {"provider": "beta", "model": "big", "modelProfile": "Slow and careful"},
                    {"provider": "alpha", "model": "small"},
                ],
            },
        },
    }


class Scene:
    """Everything a test of the dashboard looks at or turns."""

    def __init__(self, page: Any, proxy: ProxyProcess, origin: str, providers: Providers, images: Path) -> None:
        self.page = page
        self.proxy = proxy
        self.origin = origin
        self.providers = providers
        self.faults: list[str] = []
        self._images = images
        page.on("console", self._console)
        page.on("pageerror", lambda error: self.faults.append(str(error)))
        page.on("request", self._request)

    def _console(self, message: Any) -> None:
        if message.type in ("error", "warning") and not any(word in message.text for word in _EXPECTED):
            self.faults.append(message.text)

    def _request(self, request: Any) -> None:
        if not request.url.startswith(self.origin):
            self.faults.append(f"another host: {request.url}")

    @property
    def stored(self) -> Any:
        """The combos in the file."""
        return json.loads(self.proxy.config.read_text())["combos"]

    async def open(self, *place: str) -> None:
        """Go to a screen; signs in on the way."""
        if not self.page.url.startswith(self.origin):
            await self.page.goto(f"{self.origin}/#token={TOKEN}")
        await self.page.locator("main.page .split, main.page .wide").first.wait_for()
        if place:
            target = "#/" + "/".join(quote(part, safe="") for part in place)
            await self.page.evaluate("hash => { location.hash = hash }", target)

    async def ask(self, model: str) -> int:
        """One request of a client for a model; answers the status."""
        body = {"model": model, "messages": [{"role": "user", "content": "hi"}]}
        url = f"http://127.0.0.1:{self.proxy.port}/v1/chat/completions"
        async with aiohttp.ClientSession() as session, session.post(url, json=body) as answer:
            await answer.read()
            return answer.status

    async def shot(self, name: str) -> None:
        """A picture of the window; with COMBOS_SCREENSHOTS=1 those of the documentation are made anew."""
        folder = IMAGES if os.environ.get("COMBOS_SCREENSHOTS") and name in DOCUMENTED else self._images
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / f"{name}.png"
        await self.page.screenshot(path=path)
        assert 2_000 < path.stat().st_size < IMAGE_MAX

    async def violations(self) -> list[str]:
        """What axe-core finds on this screen that is serious or critical."""
        if not await self.page.evaluate("typeof axe === 'object'"):
            await self.page.evaluate(axe_source())
        found = await self.page.evaluate("axe.run(document, {resultTypes: ['violations']})")
        return [
            f"{violation['id']}: {node['html'][:200]}"
            for violation in found["violations"]
            if violation["impact"] in ("serious", "critical")
            for node in violation["nodes"]
        ]

    async def overflow(self) -> int:
        """By how many pixels the page is wider than the window."""
        wide: int = await self.page.evaluate("document.documentElement.scrollWidth - innerWidth")
        return wide


def axe_source() -> str:
    """The program of axe-core."""
    return importlib.resources.files("axe_playwright_python").joinpath("axe.min.js").read_text()


def chromium() -> str:
    """Where Chromium is; skips the test where there is none."""
    found = next((path for name in _BINARIES if (path := shutil.which(name))), None)
    if found is None:
        pytest.skip("Chromium is not installed: ./scripts/browser installs it")
    return found


@asynccontextmanager
async def browser(**options: Any) -> AsyncIterator[Any]:
    """A page of a fresh Chromium. `options` are those of a Playwright context."""
    from playwright.async_api import async_playwright, expect

    async with async_playwright() as playwright:
        started = await playwright.chromium.launch(executable_path=chromium(), args=_ARGUMENTS)
        context = await started.new_context(**options)
        context.set_default_timeout(PATIENCE_MS)
        expect.set_options(timeout=PATIENCE_MS)
        try:
            yield await context.new_page()
        finally:
            await started.close()


@asynccontextmanager
async def scene(
    home: Path,
    confdir: Path,
    *arguments: str,
    size: tuple[int, int] = WIDE,
    scheme: str = "light",
    tool: str = "mitmdump",
    given: Mapping[str, Any] | None = None,
    more: Mapping[str, Any] | None = None,
) -> AsyncIterator[Scene]:
    """Proxy, providers and browser; afterwards the page must have had no fault and asked no other host."""
    providers, port = Providers(), free_port()
    viewport = {"width": size[0], "height": size[1]}
    async with providers.serve(), browser(viewport=viewport, color_scheme=scheme) as page:
        made = {**(given if given is not None else document(providers.url)), **(more or {})}
        options: Any = {"environ": {"COMBOS_ADMIN_TOKEN": TOKEN}, "tool": tool, "admin": f"127.0.0.1:{port}"}
        async with mitmdump(home, confdir, *arguments, document=made, **options) as proxy:
            await proxy.line("combos: dashboard on")
            on = Scene(page, proxy, f"http://127.0.0.1:{port}", providers, home / "images")
            yield on
            await asyncio.sleep(0)
            assert not on.faults
