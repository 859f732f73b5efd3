"""What the page shows is what its gateway says: the main session with all its channels, and every number."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from playwright.sync_api import expect

from tests.fakes.openai_server import FakeReply
from tests.web.desk import MAIN, Desk, in_thread
from tests.web.families import set_price, words
from tests.web.test_panels import bird, fly, patch_config

TWO_AGENTS = """{agents: {list: [{id: "main"}, {id: "bob", name: "Bob", default: true}]},
  channels: {pigeon: {allowFrom: ["1001"]}}}"""
BOB = "agent:bob:main"

# Answers of the gateway as another gateway might give them.
BEND = """(bent) => import("/wire.js").then(({ wire }) => {
  window.asked = [];
  const call = wire.call.bind(wire);
  wire.call = async (method, params) => {
    window.asked.push(method);
    const answer = await call(method, params);
    const rows = [...(answer.sessions ?? []), answer.session, answer.sessionInfo].filter(Boolean);
    for (const row of rows) Object.assign(row, bent[row.key] ?? {});
    return answer;
  };
  wire._tell("resync", { reason: "bent" });
})"""


def address(desk: Desk, key: str) -> str:
    return f"{desk.origin}/#/s/{key.replace(':', '%3A')}"


@pytest.mark.spec("ROUTE-5")
def test_the_page_opens_the_main_session_with_what_every_channel_said(desk: Desk) -> None:
    patch_config(desk, TWO_AGENTS)
    desk.model.script(FakeReply(texts=("Coo yourself, Ann.",)))
    in_thread(fly(desk, bird(1, "1001", "Ann")))
    page = desk.sign_in()
    # The agent that everybody begins with, not the first of the list.
    expect(page).to_have_url(address(desk, BOB))
    expect(desk.thread.locator(".user .plaintext")).to_have_text("coo")
    expect(desk.thread.locator(".user .who")).to_have_text("pigeon")
    expect(desk.thread.locator(".assistant")).to_contain_text("Coo yourself, Ann.")
    desk.model.script(FakeReply(texts=("She said coo.",)))
    desk.send("What did the pigeon say?")
    expect(desk.thread).to_contain_text("She said coo.")
    expect(desk.thread.locator(".user .who").last).to_have_text("You")
    asked = json.dumps(desk.model.requests[-1].body["messages"])
    assert "coo" in asked and "Coo yourself, Ann." in asked
    assert [role for role, _ in desk.said(BOB)] == ["user", "assistant"] * 2
    # Another agent is chosen: its own main session, which knows nothing of all this.
    page.keyboard.press("Control+k")
    page.keyboard.type("talk to main")
    expect(page.get_by_role("option", name="Talk to main")).to_have_attribute("aria-selected", "true")
    page.keyboard.press("Enter")
    expect(page).to_have_url(address(desk, MAIN))
    expect(desk.thread).to_have_attribute("data-empty", re.compile("Nothing was said"))
    desk.send("Who are you?")
    expect(desk.thread).to_contain_text("Understood.")
    expect(page.locator(".headtext p")).to_contain_text("main")
    assert "Ann" not in json.dumps(desk.model.requests[-1].body["messages"])
    assert desk.said(MAIN)[0] == ("user", "Who are you?")
    assert len(desk.said(BOB)) == 4


@pytest.mark.spec("OWN-1")
def test_lists_and_counts_are_the_gateways_and_nothing_is_counted_here(desk: Desk) -> None:
    set_price(desk)
    desk.model.script(words(3))
    run = desk.call("chat.send", sessionKey=MAIN, message="Hello", idempotencyKey="one")
    desk.call("agent.wait", runId=run["runId"], timeoutMs=60_000)
    page = desk.sign_in()
    head = page.locator(".headtext p")
    row: dict[str, Any] = desk.call("sessions.describe", key=MAIN)["session"]
    assert (row["totalTokens"], row["contextTokens"]) == (1200, 32_000)
    expect(head).to_contain_text("1.2k of 32k tokens, 4 %")
    # Whatever the gateway says is shown, however long the conversation is that the page can see.
    page.evaluate(BEND, {MAIN: {"totalTokens": 24_000, "label": "Named elsewhere"}})
    expect(head).to_contain_text("24k of 32k tokens, 75 %")
    expect(page.locator("a.session .title")).to_have_text("Named elsewhere")
    assert "sessions.list" in page.evaluate("window.asked")
    # Without the gateway there is nothing to show: the browser keeps no list, no words and no numbers.
    kept = page.evaluate("JSON.stringify([{...localStorage}, {...sessionStorage}])")
    assert "word word" not in kept and "1200" not in kept and "Named" not in kept
    assert page.evaluate("indexedDB.databases().then((all) => all.length)") == 0
    desk.gateway.kill()
    expect(page.locator(".app")).to_have_attribute("data-wire", "offline")
    page.get_by_role("button", name="Archived").click()
    page.get_by_role("button", name="All", exact=True).click()
    expect(page.locator(".banner")).to_contain_text("not reachable")
    desk.start()
    expect(page.locator(".app")).to_have_attribute("data-wire", "open")
    expect(page.locator("a.session")).to_have_count(1)
    desk.problems.clear()
