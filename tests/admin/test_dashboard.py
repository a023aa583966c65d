"""The dashboard as files: served without a token, under a strict policy, complete, and from nowhere else."""

import re
from collections.abc import AsyncIterator
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from adminstage import TOKEN, Stage, stage
from combos.admin.dashboard import ASSETS, page_routes
from combos.core.config import ComboConfig, TargetConfig
from combos.core.config_document import key_names

PAGES = Path(str(files("combos.admin"))) / "pages"
MODULES = sorted(PAGES.glob("*.js"))
SOURCE = {path.name: path.read_text() for path in PAGES.iterdir()}
DOCUMENT = {"providers": {"a": {"adapter": "openai-chat", "baseUrl": "https://api.example.com/v1"}}}


@pytest.fixture
async def on(tmp_path: Path) -> AsyncIterator[Stage]:
    async with stage(tmp_path / "config.json", DOCUMENT, pages=page_routes()) as started:
        yield started


async def fetch(on: Stage, path: str, **headers: str) -> tuple[int, Any, str]:
    async with on.client.get(
        path, headers={name.replace("_", "-"): value for name, value in headers.items()}
    ) as answer:
        return answer.status, answer.headers, await answer.text()


async def test_the_page_needs_no_token_and_holds_none(on: Stage) -> None:
    status, headers, text = await fetch(on, "/")
    assert (status, headers["Content-Type"]) == (200, "text/html; charset=utf-8")
    assert TOKEN not in text
    policy = dict(part.strip().partition(" ")[::2] for part in headers["Content-Security-Policy"].split(";"))
    assert policy["default-src"] == policy["base-uri"] == policy["form-action"] == policy["frame-ancestors"] == "'none'"
    assert policy["script-src"] == policy["style-src"] == policy["connect-src"] == "'self'"
    assert headers["X-Frame-Options"] == "DENY"
    assert (await fetch(on, "/api/combos"))[0] == 401


async def test_every_file_is_served_with_its_kind(on: Stage) -> None:
    kinds = {".js": "text/javascript", ".css": "text/css", ".svg": "image/svg+xml"}
    for name in SOURCE.keys() - {"index.html"}:
        status, headers, text = await fetch(on, ASSETS + name)
        assert (status, headers["Content-Type"].partition(";")[0]) == (200, kinds[Path(name).suffix])
        assert text == SOURCE[name]


async def test_an_unchanged_file_is_not_sent_again(on: Stage) -> None:
    _, headers, _ = await fetch(on, "/assets/main.js")
    assert headers["Cache-Control"] == "no-cache"
    status, again, text = await fetch(on, "/assets/main.js", If_None_Match=headers["ETag"])
    assert (status, text, again["ETag"]) == (304, "", headers["ETag"])
    assert (await fetch(on, "/assets/main.js", If_None_Match='"other"'))[0] == 200


@pytest.mark.parametrize(
    "path", ["/assets/", "/assets/none.js", "/assets/../app.py", "/assets/%2e%2e/app.py", "/pages"]
)
async def test_nothing_else_is_served(on: Stage, path: str) -> None:
    assert (await fetch(on, path))[0] in (401, 404)


async def test_other_hosts_get_no_page(on: Stage) -> None:
    assert (await fetch(on, "/", Host="evil.example"))[0] == 403
    assert (await fetch(on, "/", Origin="https://evil.example"))[0] == 403


async def test_no_icon_is_no_error(on: Stage) -> None:
    assert (await fetch(on, "/favicon.ico"))[0] == 204


def test_routes_are_listed_once() -> None:
    routes = [(route.method, route.path) for route in page_routes() if isinstance(route, web.RouteDef)]
    assert len(routes) == len(set(routes)) == len(SOURCE) + 1


def test_every_module_that_is_imported_is_there() -> None:
    imported = {name for path in MODULES for name in re.findall(r'from "\./([^"]+)"', path.read_text())}
    assert imported <= SOURCE.keys()
    assert {path.name for path in MODULES} - imported == {"main.js"}
    assert set(re.findall(r'/assets/([^"]+)"', SOURCE["index.html"])) <= SOURCE.keys()


def exported(name: str) -> set[str]:
    return set(re.findall(r"^export (?:async )?(?:function|const|class) (\w+)", SOURCE[name], re.MULTILINE))


@pytest.mark.parametrize("path", MODULES, ids=lambda path: path.name)
def test_every_imported_name_is_exported(path: Path) -> None:
    for names, module in re.findall(r'^import \{([^}]+)\} from "\./([^"]+)";', path.read_text(), re.MULTILINE):
        assert {name.strip() for name in names.split(",")} <= exported(module), module


@pytest.mark.parametrize("name", sorted(SOURCE))
def test_nothing_comes_from_another_host_or_is_inline(name: str) -> None:
    text = SOURCE[name].replace("http://www.w3.org/2000/svg", "")
    addresses = set(re.findall(r"(?:https?:)?//[\w.-]+\.\w+", re.sub(r"^\s*//.*$", "", text, flags=re.MULTILINE)))
    assert addresses <= {"https://api.example.com"}
    for unsafe in ("innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(", "@import", "<style"):
        assert unsafe not in text
    assert not re.search(r"<script(?![^>]*\bsrc=)", text)
    assert len(text.splitlines()) < 400


def test_the_editor_knows_every_field() -> None:
    draft, form = SOURCE["draft.js"], SOURCE["editor.js"] + SOURCE["targets.js"] + SOURCE["jev.js"]
    fields = {*key_names(ComboConfig).values(), *key_names(TargetConfig).values()} - {"targets"}
    assert len(fields) > 20
    for field in fields:
        assert re.search(rf"\b{field}\b", draft), f"{field} is not in a draft"
        assert re.search(rf'"{field}"', form), f"{field} cannot be edited"


async def test_clearing_a_field_that_is_kept_otherwise(tmp_path: Path) -> None:
    combo = {"targets": [{"provider": "a", "model": "m"}], "cooldownMs": 5000, "affinity": "conversation"}
    async with stage(tmp_path / "config.json", {**DOCUMENT, "combos": {"main": combo}}) as on:
        sent = {"targets": combo["targets"]}
        await on.call("PUT", "/api/combos", {"id": "main", "combo": sent})
        assert on.document["combos"]["main"]["cooldownMs"] == 5000
        status, _ = await on.call("PUT", "/api/combos", {"id": "main", "combo": sent, "clear": ["cooldownMs"]})
        assert status == 200
        assert "cooldownMs" not in on.document["combos"]["main"]
        assert on.document["combos"]["main"]["affinity"] == "conversation"
        for wrong in ("cooldownMs", ["targets"], [1], {}):
            status, answer = await on.call("PUT", "/api/combos", {"id": "main", "combo": sent, "clear": wrong})
            assert (status, answer["code"]) == (400, "invalid_request")


async def test_presets(on: Stage) -> None:
    status, answer = await on.call("GET", "/api/providers/presets")
    assert status == 200
    rows = {row["id"]: row for row in answer["presets"]}
    assert rows["openai"]["provider"] == {"adapter": "openai-responses", "baseUrl": "https://api.openai.com/v1"}
    assert rows["ollama"]["provider"]["authMode"] == "local"
