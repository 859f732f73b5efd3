"""The other panels: real data, what stands there when there is none, and what their buttons do."""

from __future__ import annotations

import json
from typing import Any

import pytest
from playwright.sync_api import expect

from tests.e2e.gateway_process import TOKEN
from tests.fakes.device import TestDevice
from tests.fakes.device_client import FROM_AFAR, DeviceClient
from tests.fakes.openai_server import FakeReply
from tests.fakes.wire_client import RefusedError
from tests.web.desk import Desk, in_thread
from tests.web.families import ask_helpers, set_price, words
from tests.web.test_accessibility import findings

PIGEONS = """{channels: {pigeon: {allowFrom: ["1001"]}}}"""


def patch_config(desk: Desk, raw: str) -> None:
    desk.call("config.patch", raw=raw, baseHash=desk.call("config.get")["hash"])


def press(desk: Desk, name: str) -> None:
    desk.page.get_by_role("main").get_by_role("button", name=name, exact=True).click()


def agree(desk: Desk, name: str) -> None:
    desk.page.get_by_role("dialog").get_by_role("button", name=name, exact=True).click()


def bird(number: int, sender: str, name: str) -> dict[str, Any]:
    return {
        "channel": "pigeon", "peer": {"kind": "direct", "id": sender}, "messageId": f"m{number}",
        "text": "coo", "senderId": sender, "senderName": name,
    }  # fmt: skip


async def fly(desk: Desk, message: dict[str, Any], error: str | None = None) -> None:
    """A connector that hands a message in and carries the answer, or says why it could not."""
    async with desk.gateway.client() as client:
        await client.call("channels.attach", {"channel": "pigeon", "acknowledges": True})
        await client.call("channels.inbound", message)
        told = await client.wait_for(
            lambda event: event["event"] == "channels.outbound" and event["payload"]["kind"] == "message"
        )
        settled = {"channel": "pigeon", "key": told["payload"]["key"]}
        await client.call("channels.settle", settled | ({"error": error} if error else {}))


def test_status_shows_the_gateway_and_what_could_not_be_delivered(desk: Desk) -> None:
    page = desk.sign_in("#/status")
    panel = page.locator("oc-status")
    status = desk.call("status")
    expect(panel).to_contain_text(f"Version{status['runtimeVersion']}")
    expect(panel).to_contain_text("fake/one")
    expect(panel.get_by_text("No channel is connected.")).to_be_visible()
    expect(panel.get_by_text("Nothing failed, and nothing is uncertain.")).to_be_visible()
    expect(panel.get_by_role("table", name="Connected clients")).to_contain_text("webchat")
    audit = desk.call("security.audit")
    expect(
        panel.get_by_role("table", name="Findings of the security audit").get_by_role("row")
    ).to_have_count(len(audit["findings"]) + 1)


def test_a_delivery_that_failed_is_sent_again_or_dropped_by_a_person(desk: Desk) -> None:
    patch_config(desk, PIGEONS)
    desk.model.script(FakeReply(texts=("Coo yourself.",)))
    in_thread(fly(desk, bird(1, "1001", "Ann"), "the wind"))
    desk.sign_in("#/status")
    panel = desk.page.locator("oc-status")
    deliveries = panel.get_by_role("table", name="Deliveries that need somebody")
    row = deliveries.get_by_role("row", name="failed")
    expect(row).to_contain_text("the wind")
    expect(row).to_contain_text("pigeon: 1001")
    expect(row).to_contain_text("Coo yourself.")
    row.get_by_role("button", name="Drop").click()
    agree(desk, "Cancel")
    assert len(desk.call("outbox.list", state="failed")["deliveries"]) == 1
    row.get_by_role("button", name="Drop").click()
    agree(desk, "Drop")
    expect(panel.get_by_text("Nothing failed, and nothing is uncertain.")).to_be_visible()
    assert desk.call("outbox.list", state="failed")["deliveries"] == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_no_serious_findings_for_those_who_cannot_see_or_point(desk: Desk, scheme: str) -> None:
    set_price(desk)
    patch_config(desk, PIGEONS)
    job = {"kind": "agentTurn", "message": "Brief me"}
    schedule = {"kind": "every", "everyMs": 3_600_000}
    desk.call("cron.add", name="briefing", schedule=schedule, sessionTarget="isolated", payload=job)
    in_thread(fly(desk, bird(1, "66", "Zed")))
    ask_helpers(desk, short=words(2), long=words(600))
    page = desk.sign_in("#/tree")
    page.emulate_media(color_scheme="dark" if scheme == "dark" else "light", reduced_motion="reduce")
    expect(page.get_by_role("treeitem", name="short, done")).to_be_visible()
    found = {}
    for name in ("tree", "usage", "status", "cron", "people", "devices", "logs", "settings"):
        desk.open(f"#/{name}")
        expect(page.locator(f"oc-{name} .panelbody > *").first).to_be_visible()
        found[name] = findings(page)
    assert {name: one for name, one in found.items() if one} == {}


def test_people_wait_are_let_in_and_removed(desk: Desk) -> None:
    patch_config(desk, PIGEONS)
    page = desk.sign_in("#/people")
    expect(page.get_by_text("Nobody waits.")).to_be_visible()
    expect(page.get_by_text("Nobody was let in by a code.")).to_be_visible()
    in_thread(fly(desk, bird(1, "66", "Zed <b>bold</b>")))
    press(desk, "Refresh")
    waiting = page.get_by_role("row", name="Zed <b>bold</b>")
    expect(waiting).to_contain_text(desk.call("pairing.list")["pending"][0]["code"])
    waiting.get_by_role("button", name="Let in").click()
    expect(page.get_by_text("Nobody waits.")).to_be_visible()
    assert [one["senderId"] for one in desk.call("pairing.list")["admitted"]] == ["66"]
    page.get_by_role("row", name="Zed").get_by_role("button", name="Remove").click()
    agree(desk, "Remove")
    expect(page.get_by_text("Nobody was let in by a code.")).to_be_visible()
    assert desk.call("pairing.list")["admitted"] == []


def test_devices_ask_and_are_approved_without_a_reload(desk: Desk) -> None:
    page = desk.sign_in("#/devices")
    expect(page.get_by_text("No device asks.")).to_be_visible()
    expect(page.get_by_text("No device is paired.")).to_be_visible()

    async def ask(number: int) -> None:
        device = TestDevice(number)
        phone = DeviceClient(desk.gateway.url, {"token": TOKEN}, device=device, headers=FROM_AFAR)
        with pytest.raises(RefusedError):
            await phone.__aenter__()

    in_thread(ask(3))
    expect(page.get_by_role("row", name="not-paired")).to_be_visible()
    press(desk, "Approve")
    expect(page.get_by_role("table", name="Paired devices").get_by_role("row")).to_have_count(2)
    assert len(desk.call("device.pair.list")["paired"]) == 1
    in_thread(ask(4))
    press(desk, "Reject")
    expect(page.get_by_text("No device asks.")).to_be_visible()
    press(desk, "Remove")
    agree(desk, "Remove")
    expect(page.get_by_text("No device is paired.")).to_be_visible()
    listed = desk.call("device.pair.list")
    assert (listed["paired"], listed["pending"]) == ([], [])


def test_a_schedule_is_an_interval_five_fields_or_a_time(desk: Desk) -> None:
    page = desk.sign_in("#/cron")
    typed = ["30m", " 2 h ", "1d", "0 7 * * 1-5", "2026-12-31T23:00Z", "", "soon", "30", "30 minutes"]
    understood = page.evaluate(
        "async (typed) => { const { schedule } = await import('/cron.js'); return typed.map(schedule); }",
        typed,
    )
    assert understood == [
        {"kind": "every", "everyMs": 1_800_000},
        {"kind": "every", "everyMs": 7_200_000},
        {"kind": "every", "everyMs": 86_400_000},
        {"kind": "cron", "expr": "0 7 * * 1-5"},
        {"kind": "at", "at": 1_798_758_000_000},
        *[None] * 4,
    ]  # fmt: skip


def test_jobs_are_added_run_switched_and_removed(desk: Desk) -> None:
    desk.model.script(FakeReply(texts=("The brief.",)))
    page = desk.sign_in("#/cron")
    expect(page.get_by_text("No jobs yet.")).to_be_visible()
    press(desk, "New job")
    dialog = page.get_by_role("dialog", name="New job")
    dialog.get_by_label("Name").fill("briefing")
    dialog.get_by_label("When").fill("now and then")
    dialog.get_by_label("What").fill("Brief me")
    dialog.get_by_role("button", name="Add").click()
    expect(dialog.get_by_role("alert")).to_contain_text("five fields of cron")
    dialog.get_by_label("When").fill("0 7 * * 1-5")
    dialog.get_by_role("button", name="Add").click()
    row = page.get_by_role("row", name="briefing")
    expect(row).to_contain_text("0 7 * * 1-5")
    (job,) = desk.call("cron.list")["jobs"]
    assert job["payload"] == {"kind": "agentTurn", "message": "Brief me"}
    row.get_by_role("button", name="Runs").click()
    expect(page.get_by_text("It has not run yet.")).to_be_visible()
    row.get_by_role("button", name="Run now").click()
    expect(page.get_by_role("table", name="Runs")).to_be_visible()
    row.get_by_role("button", name="Switch off").click()
    expect(row).to_contain_text("off")
    assert desk.call("cron.list")["jobs"][0]["enabled"] is False
    row.get_by_role("button", name="Remove").click()
    agree(desk, "Remove")
    expect(page.get_by_text("No jobs yet.")).to_be_visible()
    assert desk.call("cron.list")["jobs"] == []


def test_the_log_grows_by_itself_and_is_filtered(desk: Desk) -> None:
    page = desk.sign_in("#/logs")
    log = page.get_by_role("log")
    tail = [json.loads(text) for text in desk.call("logs.tail", limit=500)["lines"]]
    expect(log).to_contain_text(next(line["message"] for line in tail if line["level"] == "info"))
    changed = page.locator(".logline", has_text="config changed by a client: channels.pigeon")
    expect(changed).to_have_count(0)
    patch_config(desk, PIGEONS)
    expect(changed).to_have_count(1)
    expect(changed).to_have_attribute("data-level", "info")
    filter_field = page.get_by_label("Filter the log")
    filter_field.fill("PIGEON changed")
    expect(page.locator(".logline")).to_have_count(1)
    filter_field.fill("zz-no-such-word")
    expect(page.get_by_text("No line matches.")).to_be_visible()
    filter_field.fill("")
    expect(changed).to_be_visible()
    levels = page.get_by_role("group", name="Least level")
    levels.get_by_role("button", name="Errors").click()
    expect(changed).to_have_count(0)
    expect(levels.get_by_role("button", name="Errors")).to_have_attribute("aria-pressed", "true")
    expect(levels.get_by_role("button", name="Errors")).to_be_focused()


def test_settings_are_shown_without_their_secrets(desk: Desk) -> None:
    page = desk.sign_in("#/settings")
    panel = page.locator("oc-settings")
    expect(panel).to_contain_text("openclaw.json")
    expect(panel.get_by_text("valid", exact=True)).to_be_visible()
    expect(panel.locator(".masked").first).to_have_text("hidden")
    assert TOKEN not in page.content() and "sk-fake" not in page.content()
    page.get_by_label("Filter the settings").fill("defaults.maxconcurrent")
    expect(panel.locator(".leaf")).to_have_count(1)
    expect(panel.locator(".leaf")).to_contain_text("8")
    page.get_by_label("Filter the settings").fill("zz-nothing")
    expect(panel.get_by_text("No setting matches.")).to_be_visible()
