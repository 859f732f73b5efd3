"""The live tree of the page: helpers appear, run and end; steer, stop, keys; a thousand lines."""

from __future__ import annotations

import re

from playwright.sync_api import Locator, expect

from tests.web.desk import MAIN, Desk
from tests.web.families import ask_helpers, set_price, words


def line(desk: Desk, name: str) -> Locator:
    return desk.page.get_by_role("treeitem", name=re.compile(f"^{name}, "))


def test_helpers_appear_run_end_and_are_stopped(desk: Desk) -> None:
    set_price(desk)
    page = desk.sign_in("#/tree")
    expect(page.get_by_text("No session has helpers yet.")).to_be_visible()
    ask_helpers(desk, short=words(40), long=words(600))
    expect(line(desk, "short")).to_have_attribute("data-state", "running")
    expect(line(desk, "long")).to_have_attribute("data-state", "running")
    expect(line(desk, "short")).to_have_attribute("aria-level", "2")
    parent = page.get_by_role("treeitem", level=1)
    expect(parent).to_have_attribute("aria-expanded", "true")
    page.screenshot(path="/tmp/shots/tree_live.png")
    first = line(desk, "long").locator(".time").inner_text()
    expect(line(desk, "long").locator(".time")).not_to_have_text(first)
    expect(line(desk, "short")).to_have_attribute("data-state", "done")
    expect(line(desk, "short").locator(".cost")).to_have_text("$0.0013")
    expect(line(desk, "short").locator(".context")).to_contain_text("1.2k")
    line(desk, "long").hover()
    line(desk, "long").get_by_role("button", name="Stop").click()
    dialog = page.get_by_role("dialog", name="Stop long?")
    expect(dialog).to_be_visible()
    dialog.get_by_role("button", name="Stop").click()
    expect(line(desk, "long")).to_have_attribute("data-state", "killed")
    nodes = {node.get("displayName"): node for node in desk.call("sessions.tree")["nodes"]}
    assert (nodes["long"]["hasActiveRun"], nodes["long"]["status"]) == (False, "killed")
    page.screenshot(path="/tmp/shots/tree_end.png")
