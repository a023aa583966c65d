"""Every screen, wide and narrow, light and dark: nothing that axe-core calls serious, nothing wider than the window."""

from pathlib import Path

import pytest

pytest.importorskip("playwright.async_api", reason="Playwright is not installed: ./scripts/browser installs it")

from playwright.async_api import expect

from browser.scene import NARROW, WIDE, scene

SCREENS = (
    ("combos",),
    ("combos", "main", "live"),
    ("combos", "turns", "edit"),
    ("combos", "auto", "edit"),
    ("combos", "main", "history"),
    ("combos", "new combo", "edit"),
    ("requests",),
    ("statistics",),
    ("providers",),
)


@pytest.mark.parametrize(("size", "scheme"), [(WIDE, "light"), (WIDE, "dark"), (NARROW, "light"), (NARROW, "dark")])
async def test_every_screen(tmp_path: Path, confdir: Path, size: tuple[int, int], scheme: str) -> None:
    async with scene(tmp_path, confdir, size=size, scheme=scheme) as on:
        on.providers.fail("alpha", 429, {"Retry-After": "50"})
        await on.page.goto(on.origin)
        await expect(on.page.get_by_label("Admin token")).to_be_visible()
        assert await on.violations() == []
        await on.page.goto("about:blank")
        await on.open()
        for model in ("combo/main", "combo/turns", "combo/auto", "combo/nobody"):
            await on.ask(model)
        for screen in SCREENS:
            await on.open(*screen)
            await on.page.locator("[data-screen], nav [aria-current]").first.wait_for()
            await on.page.wait_for_timeout(250)
            assert await on.overflow() <= 0, screen
            assert await on.violations() == [], screen
            if screen in (("combos",), ("combos", "turns", "edit"), ("combos", "main", "live")):
                await on.shot(f"{screen[-1]}-{size[0]}-{scheme}" if len(screen) > 1 else f"overview-{size[0]}-{scheme}")


async def test_on_a_small_screen_a_combo_opens_in_view(tmp_path: Path, confdir: Path) -> None:
    async with scene(tmp_path, confdir, size=NARROW) as on:
        page = on.page
        await on.open()
        await page.get_by_role("link", name="Team best").first.click()
        plan = page.get_by_label("The next request")
        await expect(plan).to_be_in_viewport()
        box = await plan.bounding_box()
        assert box["y"] < 300
        await page.get_by_role("link", name="Back to all combos").click()
        await expect(page.get_by_role("link", name="Team best").first).to_be_in_viewport()


async def test_names_are_shown_as_they_are_however_long(tmp_path: Path, confdir: Path) -> None:
    name = "<img src=x onerror=alert(1)>" + "W" * 90
    model = "m" * 200
    long = "c" * 64
    given = {
        "providers": {"a": {"adapter": "openai-chat", "baseUrl": "https://api.example.com/v1", "liveModels": False}},
        "combos": {
            "main": {"displayName": name, "targets": [{"provider": "a", "model": model}]},
            long: {"targets": [{"provider": "a", "model": "m"}]},
        },
    }
    async with scene(tmp_path, confdir, size=NARROW, given=given) as on:
        await on.open()
        await expect(on.page.get_by_role("link", name=name).first).to_be_visible()
        await on.ask("combo/main")
        for screen in (
            ("combos",),
            ("combos", "main", "live"),
            ("combos", "main", "edit"),
            ("combos", long, "live"),
            ("combos", long, "edit"),
            ("requests",),
            ("statistics",),
        ):
            await on.open(*screen)
            await on.page.wait_for_timeout(200)
            assert await on.overflow() <= 0, screen
        assert await on.page.locator("img").count() == 0
        await on.page.set_viewport_size({"width": WIDE[0], "height": WIDE[1]})
        await on.open("combos")
        beyond = "aside => aside.scrollWidth - aside.clientWidth"
        assert await on.page.get_by_role("complementary", name="Combos").evaluate(beyond) <= 0


async def test_an_address_that_was_cut_shows_a_screen(tmp_path: Path, confdir: Path) -> None:
    async with scene(tmp_path, confdir) as on:
        await on.open()
        await on.page.evaluate("location.hash = '#/combos/%E0%A4%A/edit'")
        await expect(on.page.get_by_text("There is no combo of this name")).to_be_visible()


async def test_colours_can_be_chosen(tmp_path: Path, confdir: Path) -> None:
    async with scene(tmp_path, confdir, scheme="dark") as on:
        await on.open()
        ground = "getComputedStyle(document.body).backgroundColor"
        dark = await on.page.evaluate(ground)
        await on.page.get_by_role("button", name="Colours").click()
        assert await on.page.evaluate(ground) != dark
        await on.page.reload()
        await on.page.locator("main.page").wait_for()
        assert await on.page.evaluate(ground) != dark


async def test_a_first_start(tmp_path: Path, confdir: Path) -> None:
    empty = {"providers": {"a": {"adapter": "openai-chat", "baseUrl": "https://api.example.com/v1"}}}
    async with scene(tmp_path, confdir, given=empty) as on:
        await on.open()
        await expect(on.page.get_by_role("heading", name="A combo is one model name")).to_be_visible()
        await on.page.get_by_role("button", name="Create the first combo").click()
        await expect(on.page.get_by_role("heading", name="New combo")).to_be_visible()
        assert await on.page.locator("[aria-invalid=true]").count() == 0
