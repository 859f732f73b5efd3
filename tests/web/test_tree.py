"""The live tree of the page: helpers appear, run and end; steer, stop, keys; a thousand lines."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Locator, expect

from tests.web.desk import Desk
from tests.web.families import ask_helpers, set_price, words

HELPERS = range(1000)


def line(desk: Desk, name: str) -> Locator:
    return desk.page.get_by_role("treeitem", name=re.compile(f"^{name}, "))


def test_helpers_appear_run_end_and_are_stopped(desk: Desk) -> None:
    set_price(desk)
    page = desk.sign_in("#/tree")
    expect(page.get_by_text("No session has helpers yet.")).to_be_visible()
    ask_helpers(desk, research=words(40), translation=words(600))
    expect(line(desk, "research")).to_have_attribute("data-state", "running")
    expect(line(desk, "translation")).to_have_attribute("data-state", "running")
    expect(line(desk, "research")).to_have_attribute("aria-level", "2")
    parent = page.get_by_role("treeitem", level=1)
    expect(parent).to_have_attribute("aria-expanded", "true")
    first = line(desk, "translation").locator(".time").inner_text()
    expect(line(desk, "translation").locator(".time")).not_to_have_text(first)
    expect(line(desk, "research")).to_have_attribute("data-state", "done")
    expect(line(desk, "research").locator(".cost")).to_have_text("$0.0013")
    expect(line(desk, "research").locator(".context")).to_contain_text("1.2k")
    desk.picture("tree")
    line(desk, "translation").hover()
    line(desk, "translation").get_by_role("button", name="Stop").click()
    dialog = page.get_by_role("dialog", name="Stop translation?")
    expect(dialog).to_be_visible()
    dialog.get_by_role("button", name="Stop").click()
    expect(line(desk, "translation")).to_have_attribute("data-state", "killed")
    nodes = {node.get("displayName"): node for node in desk.call("sessions.tree")["nodes"]}
    assert (nodes["translation"]["hasActiveRun"], nodes["translation"]["status"]) == (False, "killed")


def test_a_family_is_walked_and_steered_with_keys(desk: Desk) -> None:
    page = desk.sign_in("#/tree")
    ask_helpers(desk, one=words(600), two=words(600))
    expect(line(desk, "two")).to_have_attribute("data-state", "running")
    tree = page.get_by_role("tree", name="Sessions and their helpers")
    tree.focus()
    parent = page.get_by_role("treeitem", level=1)
    expect(parent).to_have_attribute("aria-selected", "true")
    page.keyboard.press("ArrowDown")
    expect(line(desk, "one")).to_have_attribute("aria-selected", "true")
    assert tree.get_attribute("aria-activedescendant") == line(desk, "one").get_attribute("id")
    page.keyboard.press("ArrowLeft")
    expect(parent).to_have_attribute("aria-selected", "true")
    page.keyboard.press("ArrowLeft")
    expect(parent).to_have_attribute("aria-expanded", "false")
    expect(page.get_by_role("treeitem")).to_have_count(1)
    expect(parent).to_contain_text("2 running")
    page.keyboard.press("ArrowRight")
    page.keyboard.press("End")
    expect(line(desk, "two")).to_have_attribute("aria-selected", "true")
    page.keyboard.press("s")
    page.get_by_role("dialog", name="Steer two").get_by_label("Message").fill("look again")
    page.keyboard.press("Control+Enter")
    expect(page.locator("#notices")).to_contain_text("Sent.")
    expect(tree).to_be_focused()
    key = line(desk, "two").get_attribute("data-key")
    assert key is not None
    page.keyboard.press("Home")
    page.keyboard.press("x")
    expect(page.get_by_role("dialog")).to_contain_text("so do those of 2 below it")
    # The safe answer has the focus first.
    expect(page.get_by_role("dialog").get_by_role("button", name="Cancel")).to_be_focused()
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    for name in ("one", "two"):
        expect(line(desk, name)).to_have_attribute("data-state", "killed")
    page.keyboard.press("x")
    expect(page.get_by_role("dialog")).to_have_count(0)
    page.get_by_role("group", name="Which sessions").last.get_by_role("button", name="Running").click()
    expect(page.get_by_role("treeitem")).to_have_count(0)
    page.get_by_role("button", name="All", exact=True).last.click()
    tree.focus()
    page.keyboard.press("End")
    page.keyboard.press("Enter")
    expect(page).to_have_url(re.compile(f"#/s/{re.escape(key.replace(':', '%3A'))}$"))


def test_helpers_that_are_archived_or_deleted_leave_and_can_be_shown(desk: Desk) -> None:
    desk.calls(
        ("sessions.create", {"key": "top", "label": "top"}),
        ("sessions.create", {"key": "a", "label": "first", "parentSessionKey": "top"}),
        ("sessions.create", {"key": "b", "label": "second", "parentSessionKey": "top"}),
    )
    page = desk.sign_in("#/tree")
    expect(page.get_by_role("treeitem")).to_have_count(3)
    desk.call("sessions.patch", key="a", archived=True)
    expect(line(desk, "first")).to_have_count(0)
    desk.call("sessions.create", key="c", label="third <i>new</i>", parentSessionKey="b")
    expect(line(desk, "third .i.new.*")).to_have_attribute("aria-level", "3")
    expect(line(desk, "third .*").get_by_role("link")).to_have_text("third <i>new</i>")
    page.get_by_role("button", name="With archived").click()
    expect(line(desk, "first")).to_be_visible()
    desk.call("sessions.delete", key="c")
    expect(line(desk, "third .*")).to_have_count(0)


def test_a_thousand_lines_stay_light(desk: Desk) -> None:
    desk.calls(
        ("sessions.create", {"key": "top", "label": "top"}),
        *(
            ("sessions.create", {"key": f"h{n}", "label": f"h{n}", "parentSessionKey": "top"})
            for n in HELPERS
        ),
    )
    page = desk.sign_in("#/tree")
    expect(page.get_by_text("1001 sessions, 0 running")).to_be_visible()
    tree = page.get_by_role("tree")
    assert page.get_by_role("treeitem").count() < 60
    tree.focus()
    page.keyboard.press("End")
    expect(line(desk, "h999")).to_be_in_viewport()
    assert page.get_by_role("treeitem").count() < 60
    # A burst of changes is painted once per frame, not once per change.
    painted = page.evaluate(
        """async () => {
          const { wire } = await import("/wire.js");
          const tree = document.querySelector("oc-tree");
          let painted = 0;
          const draw = tree.draw.bind(tree);
          tree.draw = (data) => { painted += 1; draw(data); };
          for (const [key, row] of tree.family.rows) {
            const session = { ...row, hasActiveRun: true, startedAt: Date.now() };
            wire._tell("sessions.changed", { sessionKey: key, session });
          }
          await new Promise((done) => requestAnimationFrame(() => setTimeout(done, 300)));
          return [painted, document.querySelectorAll("[role=treeitem]").length];
        }"""
    )
    assert painted[0] <= 2 and painted[1] < 60
    expect(page.get_by_text("1001 sessions, 1001 running")).to_be_visible()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_on_a_narrow_screen_everything_is_within_reach(desk: Desk, scheme: str) -> None:
    set_price(desk)
    page = desk.sign_in("#/tree")
    page.set_viewport_size({"width": 390, "height": 760})
    page.emulate_media(color_scheme="dark" if scheme == "dark" else "light")
    ask_helpers(desk, short=words(5), long=words(600))
    expect(line(desk, "long")).to_have_attribute("data-state", "running")
    expect(line(desk, "long").get_by_role("button", name="Stop")).to_be_in_viewport()
    for name in ("tree", "usage", "status", "cron", "people", "devices", "logs", "settings"):
        desk.open(f"#/{name}")
        expect(page.get_by_role("main").get_by_role("heading", level=1)).to_be_visible()
        page.wait_for_timeout(150)
        main = "document.querySelector('#main')"
        assert page.evaluate(f"{main}.scrollWidth <= {main}.clientWidth"), name


def test_lines_of_a_family_end_and_keep_their_order(desk: Desk) -> None:
    page = desk.sign_in("#/tree")
    rows = [
        {"key": "old", "createdAt": 1},
        {"key": "a", "spawnedBy": "b", "createdAt": 2},
        {"key": "b", "spawnedBy": "a", "createdAt": 3},
        {"key": "self", "spawnedBy": "self", "createdAt": 4},
        {"key": "orphan", "spawnedBy": "gone", "createdAt": 5},
        {"key": "second", "spawnedBy": "old", "createdAt": 9},
        {"key": "first", "parentSessionKey": "old", "spawnedBy": "", "createdAt": 8, "hasActiveRun": True},
        {
            "key": "below",
            "spawnedBy": "first",
            "parentSessionKey": "self",
            "createdAt": 8,
            "hasActiveRun": True,
        },
    ]
    shown = page.evaluate(
        """async (rows) => {
          const { Family } = await import("/family.js");
          const family = new Family();
          rows.forEach((row) => family.put(row));
          const one = ({ row, depth, running }) => "  ".repeat(depth) + `${row.key} ${running}`;
          const told = (lines) => lines.map(one);
          const all = told(family.lines(() => true));
          const running = told(family.lines((row) => row.hasActiveRun));
          family.folded.add("first");
          return [all, running, told(family.lines((row) => row.hasActiveRun)).length];
        }""",
        rows,
    )
    everybody = ["old 2", "  first 1", "    below 0", "  second 0", "orphan 0", "self 0", "b 0", "a 0"]
    assert shown == [everybody, everybody[:3], 2]


def test_how_a_task_ended_stays_when_the_helper_has_announced_it(desk: Desk) -> None:
    page = desk.sign_in("#/tree")
    states = page.evaluate(
        """async () => {
          const { Family, stateOf } = await import("/family.js");
          const family = new Family();
          const row = { key: "k", spawnedBy: "p", derivedTitle: "t" };
          const told = [{ ...row, hasActiveRun: true }, { ...row, status: "failed", runtimeMs: 7 },
            { ...row, status: "done", runtimeMs: 1 }];
          return told.map((one, i) => {
            family.put(one, i === 1);
            const kept = family.rows.get("k");
            return [stateOf(kept), kept.task?.runtimeMs ?? null];
          });
        }"""
    )
    assert states == [["running", None], ["failed", 7], ["failed", 7]]
