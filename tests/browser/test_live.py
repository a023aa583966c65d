"""What the dashboard shows of running combos: signing in, hops, cooldowns that count down, trails, statistics."""

import asyncio
import json
from pathlib import Path

import pytest

pytest.importorskip("playwright.async_api", reason="Playwright is not installed: ./scripts/browser installs it")

from playwright.async_api import expect

from browser.scene import TOKEN, browser, scene
from e2e.proxyprocess import mitmdump


async def test_the_token_is_asked_for_once(tmp_path: Path, confdir: Path) -> None:
    async with scene(tmp_path, confdir) as on:
        page = on.page
        await page.goto(on.origin)
        await expect(page.get_by_label("Admin token")).to_be_focused()
        await page.keyboard.type("wrong")
        await page.keyboard.press("Enter")
        await expect(page.get_by_role("alert")).to_contain_text("not accepted")
        await page.get_by_label("Admin token").fill("wröng…")
        await page.keyboard.press("Enter")
        await expect(page.get_by_label("Admin token")).to_have_value("")
        await expect(page.get_by_role("alert")).to_contain_text("not accepted")
        await page.get_by_label("Admin token").fill(TOKEN)
        await page.keyboard.press("Enter")
        await expect(page.get_by_role("link", name="Team best").first).to_be_visible()
        await expect(page.get_by_text("Live", exact=True).first).to_be_visible()
        await page.reload()
        await expect(page.get_by_role("link", name="Team best").first).to_be_visible()
        assert TOKEN not in page.url
        assert await page.evaluate("localStorage.length + document.cookie.length") == 0
        await page.get_by_role("button", name="Sign out").click()
        await expect(page.get_by_label("Admin token")).to_be_visible()
        assert await page.evaluate("sessionStorage.length") == 0
        await page.goto(f"{on.origin}/#token={TOKEN}")
        await page.reload()
        await expect(page.get_by_role("link", name="Team best").first).to_be_visible()
        assert TOKEN not in page.url


async def test_a_hop_and_its_cooldown_are_seen_as_they_happen(tmp_path: Path, confdir: Path) -> None:
    async with scene(tmp_path, confdir) as on:
        page = on.page
        await on.open("combos", "main", "live")
        plan = page.get_by_label("The next request")
        await expect(plan).to_contain_text("goes to alpha/big")
        on.providers.fail("alpha", 429, {"Retry-After": "40"})
        assert await on.ask("combo/main") == 200
        await expect(plan).to_contain_text("goes to beta/big")
        row = page.locator(".target-live").first
        await expect(row).to_contain_text("Cooling")
        await expect(row).to_contain_text("status 429, rule status-retryable, by the target's Retry-After")
        await expect(row).to_contain_text("rate_limit_exceeded")
        countdown = row.locator(".countdown")
        first = await countdown.inner_text()
        assert first.startswith("0:")
        await expect(countdown).not_to_have_text(first, timeout=4000)
        assert int((await countdown.inner_text())[2:]) < int(first[2:]) <= 40
        await on.shot("live")
        await page.get_by_role("button", name="End the cooldown of alpha/big").click()
        await expect(row).to_contain_text("Ready")
        await expect(plan).to_contain_text("goes to alpha/big")
        on.providers.mend("alpha")
        assert await on.ask("team/best") == 200
        assert on.providers.calls == ["alpha", "beta", "alpha"]


async def test_traffic_and_rotation(tmp_path: Path, confdir: Path) -> None:
    async with scene(tmp_path, confdir) as on:
        await on.open("combos", "turns", "live")
        for _ in range(4):
            assert await on.ask("combo/turns") == 200
        rows = on.page.locator(".target-live")
        await expect(rows.nth(0)).to_contain_text("Weight3 (60 %)")
        await expect(rows.nth(0)).to_contain_text("Traffic75 %")
        await expect(rows.nth(1)).to_contain_text("Served1")
        await expect(rows.nth(0)).to_contain_text("Rotation position")
        await expect(rows.nth(2)).to_contain_text("no usable credentials")


async def test_when_everything_fails(tmp_path: Path, confdir: Path) -> None:
    async with scene(tmp_path, confdir) as on:
        await on.open()
        on.providers.fail("alpha", 500)
        on.providers.fail("beta", 503, {"Retry-After": "30"})
        await on.ask("combo/main")
        attention = on.page.locator(".attention")
        await expect(attention).to_contain_text("no target is ready, the first is back in")
        await expect(on.page.locator(".feed")).to_contain_text("alpha/big failed (status-retryable), on to beta/big")
        await on.open("combos", "main", "live")
        await expect(on.page.get_by_label("The next request")).to_contain_text("is refused: 503 combo_unavailable")
        await on.page.get_by_role("button", name="End all cooldowns").click()
        await expect(on.page.get_by_label("The next request")).to_contain_text("goes to alpha/big")


async def test_requests_statistics_and_history(tmp_path: Path, confdir: Path) -> None:
    async with scene(tmp_path, confdir) as on:
        page = on.page
        on.providers.fail("alpha", 429, {"Retry-After": "30"})
        for model in ("combo/main", "combo/main", "combo/turns", "combo/auto"):
            assert await on.ask(model) == 200
        await on.open()
        await page.get_by_role("link", name="Requests", exact=True).click()
        hopped = page.locator(".requests > li").filter(has_text="alpha/big 429")
        await hopped.locator("summary").click()
        await expect(hopped).to_contain_text("Rule status-retryable: on to the next target; rests 30 s")
        await expect(hopped).to_contain_text("Rate limit reached")
        await expect(hopped).to_contain_text("120 in, 30 out")
        await on.shot("requests")
        await page.get_by_label("Combo").select_option("turns")
        await expect(page.locator(".requests > li")).to_have_count(1)
        await page.get_by_label("Combo").select_option("")
        await expect(page.locator(".requests > li")).to_have_count(4)
        decided = page.locator(".requests > li").filter(has_text="auto").first
        await decided.locator("summary").click()
        await expect(decided).to_contain_text("systemone")
        await page.get_by_role("link", name="Statistics").click()
        cards = page.locator(".counters").first
        await expect(cards).to_contain_text("100 % served")
        await expect(cards).to_contain_text("Saved by a hop")
        await expect(page.locator("svg[aria-label='Requests by day'] rect")).to_have_count(2)
        await expect(page.get_by_role("region", name="By combo")).to_contain_text("main")
        await expect(page.locator(".bars").first).to_contain_text("status-retryable")
        await expect(page.get_by_role("region", name="Picks")).to_contain_text("Picks")
        await on.shot("statistics")
        await page.get_by_role("button", name="30 days").click()
        await expect(page.get_by_role("button", name="30 days")).to_have_attribute("aria-pressed", "true")
        await page.get_by_role("link", name="main", exact=True).click()
        # The page left behind has two of them, and may still be there.
        await expect(cards).to_contain_text("Requests2")
        assert await on.ask("combo/main") == 200
        await expect(cards).to_contain_text("Requests3")


async def test_older_requests_stay_when_new_ones_come(tmp_path: Path, confdir: Path) -> None:
    async with scene(tmp_path, confdir) as on:
        for _ in range(55):
            await on.ask("combo/main")
        await on.open("requests")
        rows = on.page.locator(".requests > li")
        await expect(rows).to_have_count(50)
        await on.page.get_by_role("button", name="Show older").click()
        await expect(rows).to_have_count(55)
        await on.ask("combo/main")
        await expect(rows).to_have_count(56)
        await expect(on.page.get_by_role("button", name="Show older")).to_have_count(0)


async def test_budgets(tmp_path: Path, confdir: Path) -> None:
    async with scene(tmp_path, confdir, more={"budgets": {"combos": {"main": {"tokensPerDay": 100}}}}) as on:
        assert await on.ask("combo/main") == 200
        await on.open("statistics")
        budgets = on.page.get_by_role("region", name="Budgets")
        await expect(budgets).to_contain_text("150 of 100 tokens")
        await expect(budgets).to_contain_text("spent")
        await on.open("combos", "main", "live")
        await expect(on.page.locator(".target-live").first).to_contain_text("budget is spent")


async def test_providers_are_tested_changed_and_added(tmp_path: Path, confdir: Path) -> None:
    async with scene(tmp_path, confdir) as on:
        page = on.page
        await on.open("providers")
        alpha = page.locator(".provider-cards > li").filter(has=page.get_by_role("heading", name="alpha"))
        await alpha.get_by_role("button", name="Change alpha").click()
        await page.get_by_label("Default model").fill("small")
        await page.get_by_role("button", name="Save").click()
        await expect(page.get_by_text("alpha is saved.")).to_be_visible()
        assert json.loads(on.proxy.config.read_text())["providers"]["alpha"]["defaultModel"] == "small"
        await page.get_by_role("button", name="Add provider").click()
        await page.get_by_label("Name").fill("local")
        await page.get_by_label("Address").fill(f"{on.providers.url}/local/v1")
        await page.get_by_label("Credentials").select_option("local")
        await page.get_by_role("button", name="Add", exact=True).click()
        await expect(page.locator("dialog")).to_contain_text("allowPrivateNetwork")
        await page.get_by_label("May be on this machine").check()
        await page.get_by_role("button", name="Add", exact=True).click()
        local = page.locator(".provider-cards > li").filter(has=page.get_by_role("heading", name="local"))
        await local.get_by_role("button", name="Test").click()
        await expect(local).to_contain_text("with 2 models")
        await local.get_by_role("button", name="Disable").click()
        await expect(local).to_contain_text("Disabled")
        await alpha.get_by_role("button", name="Remove alpha").click()
        await page.locator("dialog").get_by_role("button", name="Remove").click()
        await expect(page.locator(".toast")).to_contain_text(["main"])
        await on.shot("providers")
        await page.get_by_role("button", name="Add provider").click()
        await page.get_by_label("Vendor").select_option("anthropic")
        await expect(page.get_by_label("Address")).to_have_value("https://api.anthropic.com")


async def test_a_broken_file_is_shown_with_its_problems(tmp_path: Path, confdir: Path) -> None:
    async with scene(tmp_path, confdir) as on:
        page = on.page
        await on.open("combos", "main", "live")
        await expect(page.get_by_label("The next request")).to_contain_text("alpha/big")
        whole = on.proxy.config.read_text()
        on.proxy.config.write_text(whole.replace('"weight": 3', '"weight": 0'))
        banner = page.locator(".banner")
        await expect(banner).to_contain_text("combos.turns.targets[0].weight")
        on.proxy.config.write_text(whole.replace('"Team best"', '"Renamed outside"'))
        await expect(banner).to_have_count(0)
        await expect(page.get_by_role("heading", name="Renamed outside")).to_be_visible()


async def test_a_proxy_that_goes_away_is_noticed(tmp_path: Path, confdir: Path) -> None:
    async with scene(tmp_path, confdir) as on:
        await on.open()
        await expect(on.page.get_by_text("Live", exact=True).first).to_be_visible()
        await on.proxy.stop()
        await expect(on.page.get_by_text("Reconnecting")).to_be_visible()
        on.faults.clear()  # the browser reports the refused connections


async def test_what_changed_while_the_proxy_was_away_is_shown(tmp_path: Path, confdir: Path) -> None:
    async with scene(tmp_path, confdir) as on:
        await on.open("combos", "main", "live")
        await expect(on.page.get_by_text("Live", exact=True).first).to_be_visible()
        await on.proxy.stop()
        await expect(on.page.get_by_text("Reconnecting")).to_be_visible()
        on.proxy.config.write_text(on.proxy.config.read_text().replace("Team best", "Renamed meanwhile"))
        environ, admin = {"COMBOS_ADMIN_TOKEN": TOKEN}, on.origin.removeprefix("http://")
        async with mitmdump(tmp_path, confdir, environ=environ, admin=admin):
            await expect(on.page.get_by_role("heading", name="Renamed meanwhile")).to_be_visible()
            on.page.remove_listener("console", on._console)
        on.faults.clear()  # the browser reports the refused connections


async def test_through_the_proxy_as_ocx_local(tmp_path: Path, confdir: Path) -> None:
    async with scene(tmp_path, confdir) as on, browser(proxy={"server": f"http://127.0.0.1:{on.proxy.port}"}) as page:
        await page.goto(f"http://ocx.local/#token={TOKEN}")
        await expect(page.get_by_role("link", name="Team best").first).to_be_visible()
        await expect(page.get_by_text("Live", exact=True).first).to_be_visible()
        await asyncio.sleep(0.3)
        assert await on.ask("combo/main") == 200
        await expect(page.locator(".feed")).to_contain_text("main: served")
