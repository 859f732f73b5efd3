"""The gateway is killed, the network goes, tabs close: the page comes back by itself and tells the truth."""

from __future__ import annotations

import time

from playwright.sync_api import expect

from tests.fakes.openai_server import FakeReply
from tests.web.desk import MAIN, WAIT_MS, Desk


def shown(desk: Desk) -> list[tuple[str, str]]:
    """What the page shows of the conversation, oldest first."""
    script = """() => [...document.querySelectorAll(".thread .msg:not(.live)")].map((node) =>
      [node.classList.contains("user") ? "user" : "assistant",
       node.querySelector(".plaintext, .md")?.innerText.trim() ?? ""])"""
    return [(role, text) for role, text in desk.page.evaluate(script)]


def same(desk: Desk) -> list[tuple[str, str]]:
    """Wait until the page shows the conversation as the gateway has it; returns that."""
    deadline = time.monotonic() + WAIT_MS / 1000
    while True:
        truth = [(role, text) for role, text in desk.said() if role in ("user", "assistant")]
        seen = shown(desk)
        if seen == truth:
            return truth
        assert time.monotonic() < deadline, (seen, truth)
        desk.page.wait_for_timeout(100)


def wire(desk: Desk, status: str) -> None:
    expect(desk.page.locator(".app")).to_have_attribute("data-wire", status)


def test_killed_while_a_reply_streams(desk: Desk) -> None:
    desk.talk("Before", "An earlier answer")
    page = desk.sign_in()
    expect(desk.thread).to_contain_text("An earlier answer")
    page.evaluate("window.notReloaded = true")
    desk.model.script(
        FakeReply(texts=("Half a reply ", "and its end"), hang_after=2), FakeReply(texts=("The whole reply",))
    )
    desk.send("Tell me everything")
    expect(desk.thread.locator(".live")).to_contain_text("Half a reply")
    desk.gateway.kill()
    wire(desk, "offline")
    expect(page.locator(".banner")).to_contain_text("not reachable")
    desk.send("Typed while it was away")
    expect(page.locator(".queued")).to_contain_text("waits for the connection")
    desk.start()
    wire(desk, "open")
    expect(desk.thread).to_contain_text("Typed while it was away")
    expect(desk.thread.locator(".live")).to_have_count(0)
    expect(page.locator(".queued")).to_have_count(0)
    page.wait_for_function("!document.querySelector('.thread .sent')")
    assert page.evaluate("window.notReloaded") is True
    texts = [text for role, text in same(desk) if role == "user"]
    assert [texts.count(text) for text in ("Before", "Tell me everything", "Typed while it was away")] == [
        1,
        1,
        1,
    ]
    desk.problems.clear()


def test_what_was_typed_offline_survives_a_closed_tab(desk: Desk) -> None:
    page = desk.sign_in()
    desk.gateway.kill()
    wire(desk, "offline")
    for text in ("first", "second", "third"):
        desk.send(text)
    expect(page.locator(".queued")).to_have_count(3)
    page.get_by_role("button", name="Cancel: second").click()
    expect(page.locator(".queued")).to_have_count(2)
    page.close()
    desk.problems.clear()
    desk.start()
    page = desk.context.new_page()
    desk.page = page
    page.goto(f"{desk.origin}/#/s/{MAIN}")
    expect(desk.thread.locator(".user")).to_have_count(2)
    expect(page.locator(".queued")).to_have_count(0)
    assert [text for role, text in desk.said() if role == "user"] == ["first", "third"]


def test_a_message_whose_acknowledgement_was_lost_is_sent_once(desk: Desk) -> None:
    page = desk.sign_in()
    page.evaluate("""() => {
      const send = WebSocket.prototype.send;
      WebSocket.prototype.send = function (data) {
        send.call(this, data);
        if (data.includes("chat.send") && !window.cut) {
          window.cut = true;
          this.onmessage = null;
          setTimeout(() => this.close(), 50);
        }
      };
    }""")
    desk.send("Only once, please")
    expect(desk.thread).to_contain_text("Understood.")
    wire(desk, "open")
    assert page.evaluate("window.cut") is True
    expect(desk.thread.locator(".user")).to_have_count(1)
    expect(page.locator(".queued")).to_have_count(0)
    assert desk.said() == [("user", "Only once, please"), ("assistant", "Understood.")]


def test_what_happened_while_away_is_read_anew(desk: Desk) -> None:
    desk.talk("One", "First answer")
    page = desk.sign_in()
    expect(desk.thread).to_contain_text("First answer")
    desk.context.set_offline(True)
    page.evaluate("import('/wire.js').then(({ wire }) => { wire._heardAt = 0; wire._checkSilence(); })")
    wire(desk, "offline")
    desk.talk("Two", "Second answer")
    desk.talk("Elsewhere", "Another session", "agent:main:other")
    desk.context.set_offline(False)
    wire(desk, "open")
    expect(desk.thread).to_contain_text("Second answer")
    expect(page.locator("a.session", has_text="Elsewhere")).to_be_visible()
    same(desk)
    desk.problems.clear()


def test_a_gap_in_the_numbers_is_noticed(desk: Desk) -> None:
    page = desk.sign_in()
    page.evaluate("""() => import("/wire.js").then(({ wire }) => {
      const receive = wire._receive.bind(wire);
      wire._receive = (text) => (text.includes('"session.message"') ? undefined : receive(text));
    })""")
    desk.talk("Unheard", "Not told by an event")
    expect(desk.thread.locator(".msg:not(.live)")).to_have_count(2)
    expect(desk.thread.locator(".live")).to_have_count(0)
    same(desk)
