"""For everybody: the rules of axe-core on every state of the page, and what a screen reader is told."""

from __future__ import annotations

from typing import Any

import pytest
from playwright.sync_api import Page, expect

from scripts.web_tools import AXE
from tests.fakes.openai_server import FakeCall, FakeReply
from tests.web.desk import Desk


def findings(page: Page) -> list[tuple[str, str, str]]:
    """What axe-core calls serious or critical: the rule, how bad, and where."""
    assert AXE.exists(), "axe-core is missing; scripts/test-web fetches it"
    # The page's policy forbids foreign scripts, so it comes through the debugger.
    page.evaluate(AXE.read_text(encoding="utf-8"))
    report: dict[str, Any] = page.evaluate("axe.run(document, { resultTypes: ['violations'] })")
    return [
        (one["id"], one["impact"], str(one["nodes"][0]["target"]))
        for one in report["violations"]
        if one["impact"] in ("serious", "critical")
    ]


@pytest.mark.parametrize("shade", ["light", "dark"])
def test_no_serious_findings(desk: Desk, shade: str) -> None:
    desk.talk("About apples", "Sweet", "agent:main:fruit")
    desk.talk(
        "Show me",
        "# Title\n\n| a | b |\n|---|---|\n| 1 | 2 |\n\n```\ncode\n```\n\n- [x] done\n\n> said\n\n[link](https://example.org)",
    )
    page = desk.sign_in()
    page.emulate_media(color_scheme="dark" if shade == "dark" else "light")
    found = {}
    desk.model.script(
        FakeReply(thinking=("hm",), calls=(FakeCall("sessions_list"),)), FakeReply(texts=("Done.",))
    )
    desk.send("Look around")
    expect(desk.thread).to_contain_text("Done.")
    page.locator("details summary").first.click()
    found["chat"] = findings(page)
    desk.field.press_sequentially("/s")
    expect(page.get_by_role("listbox", name="Commands")).to_be_visible()
    found["completion"] = findings(page)
    desk.field.fill("")
    page.get_by_role("searchbox").fill("apples")
    expect(page.locator("a.hit")).to_have_count(1)
    found["search"] = findings(page)
    page.keyboard.press("Escape")
    page.get_by_role("button", name="Actions for this session").click()
    found["menu"] = findings(page)
    page.keyboard.press("Escape")
    page.keyboard.press("Control+k")
    expect(page.get_by_role("dialog", name="Go to")).to_be_visible()
    found["palette"] = findings(page)
    page.keyboard.press("Escape")
    desk.model.script(FakeReply(texts=("slow",), hang_after=2))
    desk.send("Take your time")
    expect(desk.thread.locator(".live")).to_contain_text("slow")
    desk.field.fill("later")
    desk.field.press("Alt+Enter")
    expect(page.locator(".queued")).to_be_visible()
    found["running"] = findings(page)
    page.set_viewport_size({"width": 390, "height": 760})
    found["narrow"] = findings(page)
    assert {name: one for name, one in found.items() if one} == {}


def test_signed_out_without_findings(desk: Desk) -> None:
    page = desk.context.new_page()
    page.goto(desk.origin)
    expect(page.get_by_role("heading", name="Sign this browser in")).to_be_visible()
    assert findings(page) == []


def test_the_focus_goes_where_it_is_expected(desk: Desk) -> None:
    page = desk.sign_in()
    expect(page.locator(".chathead h1")).to_be_visible()
    page.keyboard.press("Tab")
    expect(page.get_by_role("link", name="Skip to the conversation")).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.get_by_role("main")).to_be_focused()
    actions = page.get_by_role("button", name="Actions for this session")
    desk.send("Hello")
    expect(desk.thread).to_contain_text("Understood.")
    actions.focus()
    page.keyboard.press("Enter")
    expect(page.get_by_role("menuitem").first).to_be_focused()
    page.keyboard.press("ArrowUp")
    expect(page.get_by_role("menuitem").last).to_be_focused()
    page.keyboard.press("Escape")
    expect(actions).to_be_focused()
    expect(page.get_by_role("status").last).to_contain_text("Understood.")
