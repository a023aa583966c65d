"""The editor of combos: every field, problems at their fields, order, undo, rename, removal, all by keyboard too."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("playwright.async_api", reason="Playwright is not installed: ./scripts/browser installs it")

from playwright.async_api import expect

from browser.scene import TOKEN, Scene, scene

FOCUSED = """(() => {
    const at = document.activeElement;
    return at.ariaLabel || at.labels?.[0]?.innerText || at.innerText || "";
})()"""
"""The name of what has the focus."""


def editor(on: Scene) -> Any:
    return on.page.get_by_role("form", name="Combo")


def target(on: Scene, number: int) -> Any:
    return editor(on).locator(".targets > li").nth(number - 1)


async def save(on: Scene) -> None:
    """Save, and wait for this very save: the word of an earlier one may still be on the page."""
    async with on.page.expect_response(lambda answer: answer.request.method == "PUT" and answer.ok):
        await editor(on).get_by_role("button", name=re.compile("Save|Create")).click()
    await expect(on.page.locator(".toast.good")).to_contain_text([re.compile("is (saved|created)")])


async def test_every_field_is_edited_stored_and_shown_again(tmp_path: Path, confdir: Path) -> None:
    async with scene(tmp_path, confdir) as on:
        await on.open("combos", "main", "edit")
        form = editor(on)
        await form.get_by_label("Alias", exact=True).fill("team/other")
        await form.get_by_label("Display name").fill("Everything set")
        await form.get_by_label("Round-robin").check()
        await form.get_by_label("Sticky limit").fill("4")
        await form.get_by_label("Cooldown", exact=True).fill("45000")
        await form.get_by_label("Wait for a cooling target").fill("2500")
        await form.get_by_label("Last resort targets").select_option("before-last-resort")
        await form.get_by_label("A request too long").select_option("hop")
        await form.get_by_label("Default effort").select_option("high")
        await form.get_by_label("When the client asks").select_option("force")
        await form.get_by_label("Published ladder").select_option("adaptive")
        await form.get_by_label("Images").select_option("disabled")
        await form.get_by_label("First output within").fill("20000")
        await form.get_by_label("Ask a second target after").fill("9000")
        await form.get_by_label("Conversations").select_option("conversation")
        await target(on, 1).get_by_label("Weight").fill("3")
        await target(on, 1).get_by_label("Model").fill("an-unlisted-model")
        second = target(on, 2)
        await second.locator("details summary").click()
        await second.get_by_label("Last resort").check()
        await expect(form.get_by_text("= 45 s.")).to_be_visible()
        await save(on)
        expected = {
            "alias": "team/other", "displayName": "Everything set", "strategy": "round-robin", "stickyLimit": 4,
            "cooldownMs": 45000, "waitForCooldownMs": 2500, "cooldownWaitPolicy": "before-last-resort",
            "contextOverflow": "hop", "defaultEffort": "high", "defaultEffortMode": "force",
            "reasoningEffortMode": "adaptive", "imageInput": "disabled", "firstOutputTimeoutMs": 20000,
            "hedgeAfterMs": 9000, "affinity": "conversation",
            "targets": [
                {"provider": "alpha", "model": "an-unlisted-model", "weight": 3},
                {"provider": "beta", "model": "big", "weight": 1, "lastResort": True},
            ],
        }  # fmt: skip
        assert on.stored["main"] == expected
        await on.page.reload()
        form = editor(on)
        await expect(form.get_by_label("Cooldown", exact=True)).to_have_value("45000")
        await expect(form.get_by_label("Ask a second target after")).to_have_value("9000")
        await expect(form.get_by_label("When the client asks")).to_have_value("force")
        await expect(target(on, 2).get_by_label("Last resort")).to_be_checked()
        for label in ("Cooldown", "First output within", "Ask a second target after"):
            await form.get_by_label(label, exact=True).fill("")
        await form.get_by_label("Wait for a cooling target").fill("0")
        await form.get_by_label("When the client asks").select_option("fallback")
        await form.get_by_label("Default effort").select_option("")
        await form.get_by_label("Last resort targets").select_option("")
        await target(on, 2).get_by_label("Last resort").uncheck()
        await save(on)
        gone = {"cooldownMs", "firstOutputTimeoutMs", "hedgeAfterMs", "waitForCooldownMs", "cooldownWaitPolicy"}
        assert not gone & on.stored["main"].keys()
        assert on.stored["main"]["defaultEffort"] is None
        assert "lastResort" not in on.stored["main"]["targets"][1]


async def test_a_combo_is_created_by_keyboard_alone(tmp_path: Path, confdir: Path) -> None:
    async with scene(tmp_path, confdir) as on:
        page = on.page
        await on.open()

        async def reach(name: str) -> None:
            """Tab until the element of this name has the focus."""
            for _ in range(120):
                await page.keyboard.press("Tab")
                got = await page.evaluate(FOCUSED)
                if got.strip().startswith(name):
                    return
            raise AssertionError(f"{name} cannot be reached")

        await reach("New combo")
        await page.keyboard.press("Enter")
        await expect(page.get_by_role("heading", name="New combo")).to_be_visible()
        await reach("Id")
        await page.keyboard.type("typed")
        await reach("Provider")
        await page.keyboard.type("gamma")
        await reach("Model")
        await page.keyboard.type("big")
        await reach("Add target")
        await page.keyboard.press("Enter")
        await expect(target(on, 2).get_by_label("Provider")).to_be_focused()
        await page.keyboard.type("alpha")
        await reach("Model")
        await page.keyboard.type("small")
        await page.keyboard.press("Escape")
        await reach("Create")
        await page.keyboard.press("Enter")
        await expect(page.locator(".toast.good")).to_contain_text(["typed is created."])
        assert [row["provider"] for row in on.stored["typed"]["targets"]] == ["gamma", "alpha"]
        await reach("Move alpha/small: drag")
        await page.keyboard.press("ArrowUp")
        await expect(target(on, 1).get_by_label("Model")).to_have_value("small")
        await expect(page.get_by_label("Move alpha/small: drag, or press the arrow keys")).to_be_focused()
        await page.keyboard.press("Control+s")
        await expect(page.locator(".toast.good")).to_contain_text([re.compile("typed is saved")])
        assert [row["provider"] for row in on.stored["typed"]["targets"]] == ["alpha", "gamma"]
        assert await on.ask("combo/typed") == 200
        assert on.providers.calls == ["alpha"]


async def test_problems_are_at_their_fields_until_they_are_mended(tmp_path: Path, confdir: Path) -> None:
    async with scene(tmp_path, confdir) as on:
        await on.open("combos", "turns", "edit")
        form = editor(on)
        weight, sticky = target(on, 1).get_by_label("Weight"), form.get_by_label("Sticky limit")
        await weight.fill("0")
        await sticky.fill("soon")
        await expect(weight).to_have_attribute("aria-invalid", "true")
        described = (await weight.get_attribute("aria-describedby") or "").split()
        assert "from 1 to 10000, got 0" in await on.page.locator(f"#{described[-1]}").inner_text()
        await expect(sticky).to_have_attribute("aria-invalid", "true")
        await expect(form.locator(".summary.bad")).to_contain_text("2 problems to mend")
        await on.shot("problems")
        before = on.stored["turns"]
        await form.get_by_role("button", name="Save").click()
        await expect(form.locator(".summary.bad")).to_be_visible()
        assert on.stored["turns"] == before
        await form.get_by_role("link", name="targets[0].weight").click()
        await expect(weight).to_be_focused()
        await form.get_by_role("button", name="Show the first problem").click()
        await expect(sticky).to_be_focused()
        await weight.fill("1")
        await expect(form.locator(".summary.bad")).to_contain_text("1 problem to mend")
        await sticky.fill("2")
        await expect(form.locator(".summary.bad")).to_have_count(0)
        await save(on)
        assert on.stored["turns"]["stickyLimit"] == 2


async def test_weights_are_shown_as_shares(tmp_path: Path, confdir: Path) -> None:
    async with scene(tmp_path, confdir, scheme="dark") as on:
        await on.open("combos", "turns", "edit")
        await expect(target(on, 1).locator(".share")).to_have_text("60 %")
        await target(on, 2).get_by_label("Weight").fill("4")
        await expect(target(on, 1).locator(".share")).to_have_text("37.5 %")
        await expect(target(on, 2).locator(".share")).to_have_text("50 %")
        await on.page.get_by_role("heading", name="Targets", exact=True).evaluate(
            "at => scrollTo(0, at.offsetTop - 80)"
        )
        await on.shot("targets")


async def test_targets_are_dragged_and_it_can_be_undone(tmp_path: Path, confdir: Path) -> None:
    async with scene(tmp_path, confdir) as on:
        page = on.page
        await on.open("combos", "turns", "edit")
        order = editor(on).locator(".targets select")
        handle, last = target(on, 1).locator(".grip"), target(on, 3)
        await last.scroll_into_view_if_needed()
        await handle.hover()
        await page.mouse.down()
        box = await last.bounding_box()
        await page.mouse.move(box["x"] + 20, box["y"] + box["height"] / 2, steps=5)
        await page.mouse.move(box["x"] + 20, box["y"] + box["height"] - 5, steps=5)
        await page.mouse.up()
        assert [await one.input_value() for one in await order.all()] == ["beta", "keyless", "alpha"]
        await on.page.get_by_role("button", name="Undo").click()
        assert [await one.input_value() for one in await order.all()] == ["alpha", "beta", "keyless"]
        await page.keyboard.press("Control+Shift+z")
        assert [await one.input_value() for one in await order.all()] == ["beta", "keyless", "alpha"]
        await page.get_by_role("button", name="Move beta/small down").click()
        assert [await one.input_value() for one in await order.all()] == ["keyless", "beta", "alpha"]
        await page.get_by_role("button", name="Changes").click()
        await expect(page.locator("dialog .diff")).to_contain_text("keyless/gpt-5.5")
        await page.locator("dialog").get_by_role("button", name="Cancel").click()
        await page.get_by_role("button", name="Discard").click()
        await page.locator("dialog").get_by_role("button", name="Discard").click()
        await expect(order.first).to_have_value("alpha")
        await expect(editor(on).get_by_role("button", name="Save")).to_be_disabled()


async def test_rename_remove_and_undo(tmp_path: Path, confdir: Path) -> None:
    async with scene(tmp_path, confdir) as on:
        page = on.page
        await on.open("combos", "main", "edit")
        whole = on.stored["main"]
        await editor(on).get_by_label("Id", exact=True).fill("turns")
        await expect(editor(on).get_by_label("Id", exact=True)).to_have_attribute("aria-invalid", "true")
        await editor(on).get_by_label("Id", exact=True).fill("first")
        await expect(editor(on)).to_contain_text("Saving renames main.")
        await save(on)
        assert "main" not in on.stored
        assert on.stored["first"]["alias"] == "team/best"
        await page.get_by_role("button", name="Remove first").click()
        await page.locator("dialog").get_by_role("button", name="Remove").click()
        await expect(page.locator(".toast").filter(has_text="first is removed.")).to_be_visible()
        assert "first" not in on.stored
        await page.locator(".toast").filter(has_text="removed").get_by_role("button", name="Undo").click()
        await expect(page.locator(".toast").filter(has_text="first is as it was.")).to_be_visible()
        back = on.stored["first"]
        assert {**back, "targets": [{**row} for row in back["targets"]]} == {
            **whole, "strategy": "failover", "stickyLimit": 1, "defaultEffort": None,
            "targets": [{**row, "weight": 1} for row in whole["targets"]],
        }  # fmt: skip


async def test_the_browser_asks_before_typed_text_is_lost(tmp_path: Path, confdir: Path) -> None:
    async with scene(tmp_path, confdir) as on:
        await on.open("combos", "main", "edit")
        name = editor(on).get_by_label("Display name")
        await name.click()
        await on.page.keyboard.type("!")
        async with on.page.expect_event("dialog") as asked:
            await on.page.evaluate("setTimeout(() => location.reload())")
        dialog = await asked.value
        assert dialog.type == "beforeunload"
        await dialog.dismiss()
        await expect(name).to_have_value(re.compile("!"))
        await save(on)
        await on.page.reload()  # would wait for an answer
        await expect(name).to_have_value(re.compile("!"))


async def test_a_refused_token_is_no_problem_of_the_draft(tmp_path: Path, confdir: Path) -> None:
    async with scene(tmp_path, confdir) as on:
        await on.open("combos", "main", "edit")
        name = editor(on).get_by_label("Display name")
        await name.fill("Typed before")
        await on.page.evaluate("sessionStorage.setItem('combos-admin-token', 'another')")
        await editor(on).get_by_role("button", name="Save").click()
        await on.page.get_by_label("Admin token").fill(TOKEN)
        await on.page.get_by_role("button", name="Open the dashboard").click()
        await expect(name).to_have_value("Typed before")
        await expect(editor(on).locator(".summary.bad")).to_have_count(0)
        await save(on)
        assert on.stored["main"]["displayName"] == "Typed before"


async def test_a_dialog_gives_the_focus_back(tmp_path: Path, confdir: Path) -> None:
    async with scene(tmp_path, confdir) as on:
        await on.open("combos", "main", "live")
        opener = on.page.get_by_role("button", name="Remove main")
        for key in ("Escape", "Enter"):  # the second one is for Cancel, which has the focus first
            await opener.focus()
            await on.page.keyboard.press("Enter")
            await expect(on.page.get_by_role("dialog").get_by_role("button", name="Cancel")).to_be_focused()
            await on.page.keyboard.press(key)
            await expect(on.page.get_by_role("dialog")).to_have_count(0)
            await expect(opener).to_be_focused()


async def test_what_the_next_request_would_do_with_the_draft(tmp_path: Path, confdir: Path) -> None:
    async with scene(tmp_path, confdir) as on:
        await on.open("combos", "main", "edit")
        outcome = on.page.get_by_label("What the next request would do")
        await expect(outcome).to_contain_text("goes to alpha/big")
        await target(on, 1).get_by_label("Provider").select_option("keyless")
        await expect(outcome).to_contain_text("goes to beta/big")
        assert on.stored["main"]["targets"][0]["provider"] == "alpha"
        await on.page.get_by_text("As it is written to the file").click()
        await expect(outcome.locator("pre")).to_contain_text('"keyless"')


async def test_a_change_from_elsewhere_is_not_written_over_unseen(tmp_path: Path, confdir: Path) -> None:
    async with scene(tmp_path, confdir) as on:
        await on.open("combos", "main", "edit")
        name = editor(on).get_by_label("Display name")
        await expect(name).to_have_value("Team best")

        def elsewhere(text: str) -> None:
            document = json.loads(on.proxy.config.read_text())
            document["combos"]["main"]["displayName"] = text
            on.proxy.config.write_text(json.dumps(document))

        elsewhere("Seen at once")
        await expect(name).to_have_value("Seen at once")
        await name.fill("Typed here")
        elsewhere("From elsewhere")
        notice = editor(on).get_by_text("changed elsewhere")
        await expect(notice).to_be_visible()
        await expect(name).to_have_value("Typed here")
        await editor(on).get_by_role("button", name="Take the stored one").click()
        await expect(name).to_have_value("From elsewhere")
        await expect(notice).to_have_count(0)


async def test_what_was_typed_outlives_a_combo_that_went_elsewhere(tmp_path: Path, confdir: Path) -> None:
    async with scene(tmp_path, confdir) as on:
        await on.open("combos", "main", "edit")
        await editor(on).get_by_label("Display name").fill("Typed here")
        document = json.loads(on.proxy.config.read_text())
        document["combos"]["other"] = document["combos"].pop("main")
        on.proxy.config.write_text(json.dumps(document))
        await on.page.get_by_role("button", name="Make it a new combo").click()
        await expect(editor(on).get_by_label("Display name")).to_have_value("Typed here")
        await editor(on).get_by_label("Alias", exact=True).fill("")
        await save(on)
        assert on.stored["main"]["displayName"] == "Typed here"
        assert on.stored["other"]["displayName"] == "Team best"


async def test_a_rename_takes_back_the_offer_to_undo_under_the_old_name(tmp_path: Path, confdir: Path) -> None:
    async with scene(tmp_path, confdir) as on:
        await on.open("combos", "main", "edit")
        offers = on.page.locator(".toast").get_by_role("button", name="Undo")
        await editor(on).get_by_label("Alias", exact=True).fill("")
        await save(on)
        await expect(offers).to_have_count(1)
        await editor(on).get_by_label("Id", exact=True).fill("renamed")
        await editor(on).get_by_role("button", name="Save").click()
        await expect(on.page.get_by_text("renamed is saved.")).to_be_visible()
        await expect(offers).to_have_count(1)
        await offers.click()
        await expect(on.page.get_by_text("main is as it was.")).to_be_visible()
        assert "renamed" not in on.stored
        assert "alias" not in on.stored["main"]


async def test_decisions(tmp_path: Path, confdir: Path) -> None:
    async with scene(tmp_path, confdir) as on:
        await on.open("combos", "auto", "edit")
        form = editor(on)
        await expect(form.get_by_label("Server", exact=True)).to_have_value("judge")
        await expect(target(on, 1)).to_contain_text("fail-open")
        await form.get_by_role("button", name="Test the decision").click()
        await expect(form.locator(".trial")).to_contain_text("Decided by systemone")
        await form.get_by_label("Decision timeout").fill("500")
        await expect(form.get_by_label("Decision timeout")).to_have_attribute("aria-invalid", "true")
        await form.get_by_label("Decision timeout").fill("9000")
        await target(on, 2).get_by_label("low", exact=True).check()
        await target(on, 2).get_by_label("Note for the decision").fill("Cheap")
        await form.get_by_label("A model").check()
        await form.get_by_label("Decision model").fill("combo/auto")
        await expect(form.get_by_label("Decision model")).to_have_attribute("aria-invalid", "true")
        await form.get_by_label("Decision model").fill("gamma/small")
        await expect(form.locator(".summary.bad")).to_have_count(0)
        await save(on)
        stored = on.stored["auto"]
        assert (stored["decisionModel"], stored["decisionTimeoutMs"]) == ("gamma/small", 9000)
        assert "decisionProvider" not in stored
        assert stored["targets"][1]["reasoningEfforts"] == ["low"]
        assert stored["targets"][1]["modelProfile"] == "Cheap"
        await form.get_by_label("TypeSafe JEV").check()
        await form.get_by_label("Decision timeout").fill("")
        await save(on)
        assert not {"decisionModel", "decisionTimeoutMs"} & on.stored["auto"].keys()


async def test_jev_auto_is_proposed_once(tmp_path: Path, confdir: Path) -> None:
    async with scene(tmp_path, confdir) as on:
        await on.open()
        await on.page.get_by_role("button", name="New JEV Auto").click()
        await expect(editor(on).get_by_label("Id", exact=True)).to_have_value("jev-auto")
        await expect(editor(on).get_by_role("radio", name="JEV A decision")).to_be_checked()


async def test_spent_quota_blocks_saving_until_it_is_back(tmp_path: Path, confdir: Path) -> None:
    async with scene(tmp_path, confdir) as on:
        page = on.page
        state = {"state": "exhausted"}

        async def answer(route: Any) -> None:
            now = await page.evaluate("Date.now()")
            badge = {"state": state["state"], "updatedAt": now - 60_000, "validUntil": now + 600_000}
            window = {"fiveHourPercent": 100, "fiveHourResetAt": now + 600_000, "updatedAt": now - 60_000}
            report = {"label": "Plan", "source": "test", "updatedAt": now - 60_000, "quota": window}
            rows = [{**report, "provider": name, "routingQuota": badge} for name in ("alpha", "beta")]
            await route.fulfill(json={"generatedAt": now, "reports": rows, "combos": []})

        await page.route("**/api/provider-quotas*", answer)
        await on.open("combos", "main", "edit")
        badge = target(on, 1).get_by_role("button", name="Out of quota: quota of alpha")
        await badge.click()
        popover = page.locator(".popover:popover-open")
        await expect(popover).to_contain_text("100 % used")
        await expect(popover).to_contain_text("resets")
        await on.shot("quota")
        await page.keyboard.press("Escape")
        await editor(on).get_by_label("Display name").fill("Changed")
        await expect(editor(on).locator(".savebar")).to_contain_text("used up")
        await expect(editor(on).get_by_role("button", name="Save")).to_be_disabled()
        state["state"] = "available"
        await badge.click()
        await popover.get_by_role("button", name="Ask again").click()
        await expect(editor(on).get_by_role("button", name="Save")).to_be_enabled()


async def test_a_quota_that_ceases_to_hold_is_asked_for_again(tmp_path: Path, confdir: Path) -> None:
    async with scene(tmp_path, confdir) as on:
        asked: list[str] = []

        async def answer(route: Any) -> None:
            now = await on.page.evaluate("Date.now()")
            asked.append(route.request.url)
            badge = {"state": "exhausted", "updatedAt": now - 60_000, "validUntil": now + 2_000}
            quota = {"weeklyPercent": 100, "updatedAt": now - 60_000}
            report = {"label": "Plan", "source": "test", "updatedAt": now - 60_000, "quota": quota}
            rows = [{**report, "provider": "alpha", "routingQuota": badge}] if len(asked) == 1 else []
            await route.fulfill(json={"generatedAt": now, "reports": rows, "combos": []})

        await on.page.route("**/api/provider-quotas*", answer)
        await on.open("combos", "main", "live")
        first = on.page.locator(".target-live").first
        await expect(first).to_contain_text("Out of quota")
        await expect(first).to_contain_text("Quota unknown")
        assert len(asked) >= 2
