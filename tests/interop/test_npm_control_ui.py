"""The Control UI of the npm package in headless Chromium, against this gateway."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import Locator, Page, expect, sync_playwright

from tests.e2e.gateway_process import TOKEN
from tests.fakes.in_thread import served
from tests.fakes.openai_server import FakeOpenAIServer, FakeReply
from tests.interop.clients import NpmClient, installed, start_again
from tests.interop.hosting import ControlUiHost

pytestmark = pytest.mark.interop
PATIENCE_MS = 60_000
SAYS = "The walrus answers politely."


@pytest.fixture
def page(client: NpmClient) -> Iterator[Page]:
    folder = installed() / "node_modules/openclaw/dist/control-ui"
    with served(ControlUiHost(folder, client.gateway.url)) as host, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path="/usr/bin/chromium", args=["--no-sandbox"])
        opened = browser.new_page(viewport={"width": 1280, "height": 800})
        opened.set_default_timeout(PATIENCE_MS)
        opened.goto(f"{host.base_url}/#token={TOKEN}")
        yield opened
        shots = installed() / "shots"
        shots.mkdir(exist_ok=True)
        opened.screenshot(path=str(shots / "control-ui.png"))
        browser.close()


def composer(page: Page) -> Locator:
    return page.locator("textarea").first


def reply(page: Page) -> Locator:
    """The reply as people see it; the page keeps another copy for screen readers, a pixel wide."""
    return page.locator(f'p:text-is("{SAYS}")')


def send(page: Page, text: str) -> None:
    box = composer(page)
    expect(box).to_be_enabled(timeout=PATIENCE_MS)
    box.fill(text)
    box.press("Enter")


@pytest.mark.spec("RPC-1", "ROUTE-5")
def test_it_signs_in_chats_and_shows_the_reply_once(page: Page, client: NpmClient) -> None:
    send(page, "hello from the browser")
    expect(reply(page)).to_have_count(1, timeout=PATIENCE_MS)
    page.wait_for_timeout(1500)
    expect(reply(page)).to_have_count(1)
    (row,) = client.call("sessions.list", {})["sessions"]
    assert (row["key"], row["channel"]) == ("agent:main:main", "webchat")


@pytest.mark.spec("RPC-13")
def test_it_stops_a_reply_that_streams(page: Page, model: FakeOpenAIServer, client: NpmClient) -> None:
    model.script(FakeReply(texts=("Let me think", " about it"), hang_after=2))
    send(page, "take your time")
    expect(page.get_by_text("Let me think").first).to_be_visible(timeout=PATIENCE_MS)
    page.get_by_role("button", name="Stop").first.click()
    for _ in range(300):
        if not client.call("sessions.list", {})["sessions"][0]["hasActiveRun"]:
            break
        page.wait_for_timeout(200)
    assert client.call("sessions.list", {})["sessions"][0]["hasActiveRun"] is False


@pytest.mark.spec("RPC-11")
def test_it_shows_history_after_a_restart_of_the_gateway(page: Page, client: NpmClient) -> None:
    send(page, "remember the walrus")
    expect(reply(page)).to_have_count(1, timeout=PATIENCE_MS)
    client.gateway.kill()
    page.wait_for_timeout(1000)
    start_again(client.gateway)
    send(page, "still there?")
    expect(reply(page)).to_have_count(2, timeout=PATIENCE_MS)
    expect(page.get_by_text("remember the walrus").first).to_be_visible()


@pytest.mark.spec("RPC-5", "RPC-7")
def test_the_sidebar_follows_names(page: Page, client: NpmClient) -> None:
    client.call("sessions.create", {"key": "agent:main:dashboard:trip", "label": "Trip to Lisbon"})
    expect(page.get_by_text("Trip to Lisbon").first).to_be_visible(timeout=PATIENCE_MS)
    client.call("sessions.patch", {"key": "agent:main:dashboard:trip", "label": "Trip to Porto"})
    expect(page.get_by_text("Trip to Porto").first).to_be_visible(timeout=PATIENCE_MS)
