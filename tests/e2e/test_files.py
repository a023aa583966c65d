"""The files that a running proxy makes: private whatever the umask, and not where a link planted before leads."""

import json
import stat
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from e2e.proxyprocess import mitmdump
from ports import free_port
from rawclient import ask
from wires import C

OPEN_TO_ALL = ["sh", "-c", 'umask 0; exec "$@"', "sh"]
TOKEN = "a-token-of-the-test"
ROW = {"adapter": "openai-chat", "baseUrl": "https://vendor.test/v1", "apiKey": "a-key-of-the-test"}


async def used(home: Path, confdir: Path, environ: Mapping[str, str]) -> None:
    """A process that makes all it can make: folder, token, configuration with backup, lock, ledger, port file."""
    port = free_port()
    own = {"COMBOS_HOME": str(home), **environ}
    started = home.parent / "started"
    async with mitmdump(started, confdir, under=OPEN_TO_ALL, environ=own, admin=f"127.0.0.1:{port}") as proxy:
        await proxy.line("dashboard on")
        body = json.dumps(C.request("combo/demo", stream=False)).encode()
        assert (await ask(proxy.port, "POST", "/v1/chat/completions", body=body)).status == 200
        token = environ.get("COMBOS_ADMIN_TOKEN") or (home / "admin-api-token").read_text().strip()
        async with aiohttp.ClientSession(headers={"Authorization": f"Bearer {token}"}) as session:
            for name in ("one", "two"):
                document: dict[str, Any] = {"name": name, "provider": ROW}
                async with session.post(f"http://127.0.0.1:{port}/api/providers", json=document) as answer:
                    assert answer.status in (200, 201), await answer.text()


async def test_every_file_is_private_whatever_the_umask(tmp_path: Path, confdir: Path) -> None:
    home = tmp_path / "above" / "home"
    await used(home, confdir, {})
    made = {path.name: stat.S_IMODE(path.stat().st_mode) for path in home.rglob("*")}
    assert {"config.json", "config.json.bak", "config.lock", "admin-api-token", "usage.sqlite"} <= set(made)
    assert {name: oct(mode) for name, mode in made.items() if mode & 0o077} == {}
    assert stat.S_IMODE(home.stat().st_mode) & 0o077 == 0


@pytest.mark.parametrize("name", ["admin-api-token", "config.lock", "runtime-port.json"])
async def test_a_link_that_was_planted_is_not_followed(name: str, tmp_path: Path, confdir: Path) -> None:
    home, victim = tmp_path / "home", tmp_path / "victim"
    home.mkdir(mode=0o700)
    victim.write_text("untouched")
    victim.chmod(0o644)
    (home / name).symlink_to(victim)
    port = free_port()
    async with mitmdump(home, confdir, environ={"COMBOS_ADMIN_TOKEN": TOKEN}, admin=f"127.0.0.1:{port}") as proxy:
        await proxy.line("dashboard on")
        async with aiohttp.ClientSession(headers={"Authorization": f"Bearer {TOKEN}"}) as session:
            document = {"name": "one", "provider": ROW}
            async with session.post(f"http://127.0.0.1:{port}/api/providers", json=document) as answer:
                assert (answer.status in (200, 201)) is (name != "config.lock")
    assert victim.read_text() == "untouched"
    assert stat.S_IMODE(victim.stat().st_mode) == 0o644
