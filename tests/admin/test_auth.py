"""Who gets in: token, Host, Origin; what every answer carries."""

import json
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from adminstage import AUTH, TOKEN, Stage, stage
from combos.admin.admin_token import FILE_NAME
from configs import document

EVIL = "https://evil.example"


@pytest.fixture
async def api(tmp_path: Path) -> AsyncIterator[Stage]:
    async with stage(tmp_path / "config.json", document(corsAllowOrigins=["https://console.example"])) as found:
        yield found


@pytest.mark.parametrize(
    "headers",
    [
        {"Authorization": f"Bearer {TOKEN}"},
        {"Authorization": f"bearer  {TOKEN}"},
        {"X-Combos-API-Key": TOKEN},
        {"X-OpenCodex-API-Key": TOKEN},
        {"Authorization": "Bearer wrong", "X-Combos-API-Key": TOKEN},
    ],
)
async def test_the_token_in_every_place(api: Stage, headers: dict[str, str]) -> None:
    assert (await api.call("GET", "/api/combos", headers=headers))[0] == 200


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"Authorization": "Bearer"},
        {"Authorization": f"Bearer {TOKEN}x"},
        {"Authorization": f"Bearer {TOKEN[:-1]}"},
        {"Authorization": f"Basic {TOKEN}"},
        {"Authorization": TOKEN},
        {"X-Combos-API-Key": ""},
        {"X-Combos-API-Key": "\u00fc"},
        {"Cookie": f"token={TOKEN}"},
        {"Origin": EVIL},
    ],
)
@pytest.mark.parametrize("place", ["GET /api/combos", "PUT /api/combos", "GET /api/nope", "GET /api/events"])
async def test_without_the_token_nothing_is_told(api: Stage, headers: dict[str, str], place: str) -> None:
    method, path = place.split(" ")
    status, body = await api.call(method, path, headers=headers)
    assert (status, body["code"], body["error"]) == (401, "unauthorized", "admin token required")


async def test_the_token_in_the_query_does_not_count(api: Stage) -> None:
    assert (await api.call("GET", f"/api/combos?token={TOKEN}&api_key={TOKEN}", headers={}))[0] == 401


@pytest.mark.parametrize(
    ("host", "status"),
    [
        ("127.0.0.1:10100", 200),
        ("127.9.9.9", 200),
        ("localhost", 200),
        ("LOCALHOST:1", 200),
        ("app.localhost", 200),
        ("[::1]:10100", 200),
        ("ocx.local", 200),
        ("evil.example", 403),
        ("127.0.0.1.evil.example", 403),
        ("localhost.evil.example", 403),
        ("evil.ocx.local", 403),
        ("192.168.1.5", 403),
        ("0.0.0.0", 403),
        ("user@127.0.0.1", 403),
        ("[bad", 403),
        ("", 403),
    ],
)
async def test_the_host_must_be_this_machine(api: Stage, host: str, status: int) -> None:
    assert (await api.call("GET", "/api/combos", headers={**AUTH, "Host": host}))[0] == status
    assert (await api.call("GET", "/healthz", headers={"Host": host}))[0] == status


@pytest.mark.parametrize(
    ("origin", "status"),
    [
        ("http://127.0.0.1:10100", 200),
        ("http://localhost:5173", 200),
        ("http://ocx.local", 200),
        ("https://console.example", 200),
        (EVIL, 403),
        ("https://console.example.evil.example", 403),
        ("http://console.example", 403),
        ("null", 403),
        ("", 403),
        ("file://", 403),
        ("chrome-extension://abc", 403),
        ("http://localhost@evil.example", 403),
        ("http://localhost/evil.example", 403),
    ],
)
async def test_the_origin_is_a_page_of_ours(api: Stage, origin: str, status: int) -> None:
    headers = {**AUTH, "Origin": origin}
    async with api.client.get("/api/combos", headers=headers) as answer:
        assert answer.status == status
        allowed = answer.headers.get("Access-Control-Allow-Origin")
        assert allowed == (origin if status == 200 else None)


async def test_a_preflight_needs_no_token_and_tells_nothing(api: Stage) -> None:
    asks = {"Origin": "https://console.example", "Access-Control-Request-Method": "PUT"}
    async with api.client.options("/api/combos", headers=asks) as answer:
        assert (answer.status, await answer.read()) == (204, b"")
        assert "X-Combos-API-Key" in answer.headers["Access-Control-Allow-Headers"]
        assert "PUT" in answer.headers["Access-Control-Allow-Methods"]
    async with api.client.options("/api/combos", headers={**asks, "Origin": EVIL}) as answer:
        assert answer.status == 403
        assert "Access-Control-Allow-Origin" not in answer.headers


@pytest.mark.parametrize("path", ["/healthz", "/api/combos", "/api/nope", "/api/events"])
async def test_every_answer_is_sealed(api: Stage, path: str) -> None:
    async with api.client.get(path, headers=AUTH) as answer:
        assert answer.headers["X-Frame-Options"] == "DENY"
        assert "frame-ancestors 'none'" in answer.headers["Content-Security-Policy"]
        assert answer.headers["X-Content-Type-Options"] == "nosniff"
        assert answer.headers["Cache-Control"] == "no-store"
        assert answer.headers["Vary"] == "Origin"
        assert answer.headers["Server"] == "combos"


async def test_a_token_file_that_others_can_read_is_not_trusted(tmp_path: Path) -> None:
    (tmp_path / FILE_NAME).write_text(TOKEN)
    (tmp_path / FILE_NAME).chmod(0o644)
    async with stage(tmp_path / "config.json", document(), environ={}) as api:
        status, body = await api.call("GET", "/api/combos")
        assert (status, body["code"]) == (503, "token_unusable")
        assert "chmod 600" in body["hint"]
        assert TOKEN not in json.dumps(body)
        assert (await api.call("GET", "/healthz", headers={}))[0] == 200


async def test_the_token_of_the_file_is_made_and_works(tmp_path: Path) -> None:
    async with stage(tmp_path / "config.json", document(), environ={}) as api:
        token = (tmp_path / FILE_NAME).read_text().strip()
        assert (await api.call("GET", "/api/combos", headers={"X-Combos-API-Key": token}))[0] == 200
        assert (await api.call("GET", "/api/combos"))[0] == 401


async def test_an_admission_key_is_no_admin_token(tmp_path: Path) -> None:
    async with stage(tmp_path / "config.json", document(apiKeys=["other", TOKEN])) as api:
        status, body = await api.call("GET", "/api/combos")
        assert (status, body["code"]) == (503, "token_unusable")
        assert "apiKeys" in body["reason"]
