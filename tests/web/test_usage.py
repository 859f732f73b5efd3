"""Usage as plots: the numbers are those of the gateway, in the marks, the tooltip and the table."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Locator, expect

from tests.web.desk import MAIN, Desk
from tests.web.families import set_price, words


def marks(desk: Desk) -> Locator:
    return desk.page.locator("oc-usage .mark")


def press(desk: Desk, group: str, choice: str) -> None:
    desk.page.get_by_role("group", name=group, exact=True).get_by_role(
        "button", name=choice, exact=True
    ).click()


def talk(desk: Desk, key: str, replies: int) -> None:
    for number in range(replies):
        desk.model.script(words(10 * (number + 1)))
        asked = {"sessionKey": key, "message": f"{number}", "idempotencyKey": f"{key}-{number}"}
        run = desk.call("chat.send", **asked)
        assert desk.call("agent.wait", runId=run["runId"], timeoutMs=60_000)["status"] == "ok"


def test_the_plots_show_what_usage_cost_says(desk: Desk) -> None:
    set_price(desk)
    page = desk.sign_in("#/usage")
    expect(page.get_by_text("No model was called in these 30 days.")).to_be_visible()
    talk(desk, MAIN, 2)
    talk(desk, "agent:main:other", 1)
    # A turn has ended: the page reads again by itself.
    expect(marks(desk)).to_have_count(30)
    cost = desk.call("usage.cost", days=30)
    today, totals = cost["daily"][-1], cost["totals"]
    assert totals["totalCost"] > 0 and totals["input"] == 3600
    expect(page.locator("oc-usage dl.facts")).to_contain_text(f"Cost${totals['totalCost']:.4f}")
    label = f"{today['date']}: ${totals['totalCost']:.4f}, 3.6k tokens"
    expect(marks(desk).last).to_have_attribute("aria-label", label)
    expect(marks(desk).first).to_have_attribute("aria-label", re.compile(r": \$0, 0 tokens$"))
    # The last column is as high as the plot allows for its value, the first has no height.
    heights = [
        float(mark.locator(".s0").get_attribute("height") or -1)
        for mark in (marks(desk).last, marks(desk).first)
    ]
    assert heights[0] > 50 and heights[1] == 0
    marks(desk).first.focus()
    page.keyboard.press("End")
    expect(marks(desk).last).to_be_focused()
    expect(page.locator(".tip")).to_have_text(label)
    page.keyboard.press("ArrowLeft")
    expect(marks(desk).nth(28)).to_be_focused()
    page.get_by_text("The numbers as a table").click()
    row = page.get_by_role("row", name=re.compile(today["date"]))
    expect(row.get_by_role("cell").last).to_have_text(f"${today['totalCost']:.6f}")
    expect(row.get_by_role("cell").nth(5)).to_have_text(f"{today['totalTokens']:,}")


def test_the_same_numbers_by_agent_model_and_session(desk: Desk) -> None:
    set_price(desk)
    talk(desk, MAIN, 2)
    talk(desk, "agent:main:other", 1)
    used = desk.call("sessions.usage", range="7d", limit=100)
    page = desk.sign_in("#/usage")
    press(desk, "Days", "7 days")
    expect(marks(desk)).to_have_count(7)
    press(desk, "By", "Agent")
    total = used["totals"]
    expect(marks(desk)).to_have_count(1)
    expect(marks(desk)).to_have_attribute("aria-label", f"main: ${total['totalCost']:.4f}, 3.6k tokens")
    press(desk, "By", "Model")
    expect(marks(desk)).to_have_attribute("aria-label", re.compile("^fake/one: "))
    press(desk, "By", "Session")
    expect(marks(desk)).to_have_count(2)
    costs = {one["key"]: one["usage"]["totalCost"] for one in used["sessions"]}
    assert costs[MAIN] > costs["agent:main:other"]
    expect(marks(desk).first).to_have_attribute("aria-label", f"main: ${costs[MAIN]:.4f}, 2.4k tokens")
    press(desk, "Measure", "Tokens")
    expect(marks(desk).first.locator("rect[class^=s]")).to_have_count(4)
    expect(page.locator(".legend")).to_have_text("InputOutputCache readCache write")
    gauges = page.get_by_role("meter", name="Context in use")
    expect(gauges).to_have_count(2)
    expect(gauges.first).to_have_attribute("aria-valuetext", "1.2k of 32k tokens, 4 %")
    page.locator("oc-usage").get_by_role("table", name="Context in use").get_by_role("link").first.click()
    expect(page).to_have_url(re.compile(r"#/s/agent"))


def test_models_that_cost_nothing_are_measured_by_their_tokens(desk: Desk) -> None:
    """Until somebody chooses otherwise: a plot of nothing tells nothing."""
    talk(desk, MAIN, 1)
    page = desk.sign_in("#/usage")
    measure = page.get_by_role("group", name="Measure", exact=True)
    expect(measure.get_by_role("button", name="Tokens")).to_have_attribute("aria-pressed", "true")
    expect(measure.get_by_role("button", name="Cost")).to_have_attribute("aria-pressed", "false")
    expect(page.get_by_role("heading", name="Tokens per day, 30 days")).to_be_visible()
    press(desk, "Measure", "Cost")
    expect(page.get_by_role("heading", name="Cost per day, 30 days")).to_be_visible()
    press(desk, "Days", "7 days")
    expect(page.get_by_role("heading", name="Cost per day, 7 days")).to_be_visible()
    expect(measure.get_by_role("button", name="Cost")).to_have_attribute("aria-pressed", "true")


def test_an_axis_ends_at_a_round_number(desk: Desk) -> None:
    page = desk.sign_in("#/usage")
    values = [0, 1, 1.1, 2, 2.5, 5, 6, 10, 0.0061, 3700, 120_000]
    tops = page.evaluate(
        "async (values) => { const { roundUp } = await import('/plot.js'); return values.map(roundUp); }",
        values,
    )
    assert tops == pytest.approx([1, 1, 2, 2, 5, 5, 10, 10, 0.01, 5000, 200_000])
