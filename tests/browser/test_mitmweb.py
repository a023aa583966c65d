"""mitmweb in the browser: attempts beside the request, marks and trail, and the view of the model's turn."""

from pathlib import Path

import pytest

pytest.importorskip("playwright.async_api", reason="Playwright is not installed: ./scripts/browser installs it")

from playwright.async_api import expect

from browser.scene import scene
from ports import free_port


async def test_attempts_and_the_view_of_a_turn(tmp_path: Path, confdir: Path) -> None:
    port = free_port()
    web = ("--no-web-open-browser", "--set", f"web_port={port}", "--set", "web_password=web-secret")
    async with scene(tmp_path, confdir, *web, tool="mitmweb") as on:
        page = on.page
        on.providers.fail("alpha", 429, {"Retry-After": "30"})
        assert await on.ask("combo/main") == 200
        await page.goto(f"http://127.0.0.1:{port}/?token=web-secret")
        rows = page.locator(".flow-table tbody tr:has(td)")
        await expect(rows.filter(has_text="/v1/chat/completions")).to_have_count(3)
        client = rows.filter(has_text=f"127.0.0.1:{on.proxy.port}")
        await client.click()
        await page.get_by_text("Response", exact=True).click()
        await expect(page.get_by_text("Model turn").first).to_be_visible()
        body = page.locator(".contentview")
        await expect(body).to_contain_text("main: alpha/big 429 → beta/big 200 (1 hop")
        await expect(body).to_contain_text("rule status-retryable")
        await expect(body).to_contain_text("Hello from beta")
        await on.shot("mitmweb")
        await rows.filter(has_text="/alpha/v1/").click()
        await expect(body).to_contain_text("attempt 1: alpha/big")
        await expect(body).to_contain_text("hop, cooldown 30 s by retry-after")
        await page.get_by_text("Comment", exact=True).click()
        await expect(page.locator("#root, body").first).to_contain_text("alpha/big")
        on.faults.clear()  # mitmweb is another host to the dashboard
