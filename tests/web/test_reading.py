"""Long conversations: the last page at once, reading back without losing the place, bounded memory."""

from __future__ import annotations

import asyncio
import re
import time

import pytest
from playwright.sync_api import Page, expect

from tests.fakes.openai_server import FakeReply
from tests.web.desk import WAIT_MS, Desk, in_thread

KEY = "agent:main:long"
FIRST_PAINT_MS = 300
MOST_IN_PAGE = 260

# From the answer of chat.history to the frame after it was drawn.
OPENING = """(key) => new Promise((done) => {
  let at = 0;
  import("/wire.js").then(({ wire }) => {
    const call = wire.call.bind(wire);
    wire.call = async (method, params) => {
      const answer = await call(method, params);
      if (method === "chat.history" && !at) at = performance.now();
      return answer;
    };
    const look = () => {
      if (at && document.querySelectorAll(".thread .msg").length > 20) {
        requestAnimationFrame(() => setTimeout(() => { wire.call = call; done(performance.now() - at); }));
      } else requestAnimationFrame(look);
    };
    location.hash = `#/s/${key}`;
    look();
  });
})"""

TOP = """() => {
  const top = document.querySelector(".scroller").getBoundingClientRect().top;
  const nodes = [...document.querySelectorAll(".thread .msg")];
  const node = nodes.find((one) => one.getBoundingClientRect().bottom > top + 1);
  return [node.innerText, Math.round(node.getBoundingClientRect().top - top)];
}"""


def fill(desk: Desk, count: int) -> None:
    async def write() -> None:
        async with desk.gateway.client() as client:
            await client.call("sessions.create", {"key": KEY, "label": "Long"})
            for start in range(0, count, 50):
                asked = [
                    {"sessionKey": KEY, "message": f"Message {n} " + "and more words " * 12}
                    for n in range(start, min(start + 50, count))
                ]
                await asyncio.gather(*(client.call("chat.inject", one) for one in asked))

    in_thread(write())


def scroll_to(page: Page, top: int) -> None:
    page.evaluate("(top) => { document.querySelector('.scroller').scrollTop = top; }", top)


def read_back_until(desk: Desk, text: str) -> None:
    """Scroll up as often as it takes: a page comes when the gateway has sent it."""
    deadline = time.monotonic() + WAIT_MS / 1000
    while text not in desk.thread.inner_text():
        assert time.monotonic() < deadline, f"{text} was not reached"
        scroll_to(desk.page, 0)
        desk.page.wait_for_timeout(50)


@pytest.mark.long
def test_ten_thousand_messages(desk: Desk) -> None:
    fill(desk, 10_000)
    page = desk.sign_in()
    times = []
    for _ in range(3):
        times.append(page.evaluate(OPENING, KEY))
        desk.open("#/s/agent:main:main")
        expect(desk.thread).to_have_attribute("data-empty", re.compile("Nothing was said"))
    assert min(times) <= FIRST_PAINT_MS, times
    desk.open(f"#/s/{KEY}")
    expect(desk.thread).to_contain_text("Message 99")
    page.evaluate("window.most = 0")
    cdp = desk.context.new_cdp_session(page)

    def heap() -> int:
        cdp.send("HeapProfiler.collectGarbage")
        return int(page.evaluate("performance.memory.usedJSHeapSize"))

    before = heap()
    for step in range(40):
        scroll_to(page, 0)
        page.wait_for_timeout(120)
        count = page.locator(".thread > *").count()
        assert count <= MOST_IN_PAGE, (step, count)
    assert heap() - before < 20_000_000
    seen = page.locator(".thread .msg").first.inner_text()
    assert "Message 99" not in seen
    for _ in range(60):
        scroll_to(page, 10**7)
        page.wait_for_timeout(60)
    page.get_by_role("button", name="Latest").click() if page.get_by_role(
        "button", name="Latest"
    ).is_visible() else None
    expect(desk.thread).to_contain_text("Message 9999")
    assert heap() - before < 20_000_000


def test_reading_back_keeps_the_place_while_messages_come(desk: Desk) -> None:
    fill(desk, 300)
    page = desk.sign_in(f"#/s/{KEY}")
    expect(desk.thread).to_contain_text("Message 299")
    scroll_to(page, 1200)
    page.wait_for_timeout(300)
    place = page.evaluate(TOP)
    for number in range(3):
        desk.talk(f"Interruption {number}", "Noted", KEY)
    page.wait_for_timeout(300)
    assert page.evaluate(TOP) == place
    expect(page.get_by_role("button", name="Latest")).to_be_visible()
    read_back_until(desk, "Message 0 ")
    order = page.evaluate("[...document.querySelectorAll('.thread .msg')].map((one) => one.innerText)")
    assert len(order) == len(set(order))
    page.get_by_role("button", name="Latest").click()
    expect(desk.thread).to_contain_text("Interruption 2")
    assert page.evaluate("(() => { const box = document.querySelector('.scroller');"
                         "return box.scrollHeight - box.scrollTop - box.clientHeight; })()") < 60  # fmt: skip


@pytest.mark.spec("COMP-3")
def test_compactions_are_drawn_where_they_happened(desk: Desk) -> None:
    for number in range(4):
        desk.talk(f"Question {number}", f"Answer {number}: " + "lorem ipsum dolor sit amet " * 900, KEY)
    desk.model.script(FakeReply(texts=("They spoke about lorem ipsum and want to go on with it. " * 4,)))
    page = desk.sign_in(f"#/s/{KEY}")
    expect(desk.thread).to_contain_text("Answer 3")
    page.get_by_role("button", name="Actions for this session").click()
    page.get_by_role("menuitem", name="Compact").click()
    line = page.get_by_role("separator", name="Compacted")
    expect(line).to_be_visible()
    desk.send("And now?")
    expect(desk.thread).to_contain_text("Understood.")
    expect(desk.thread.locator(".live")).to_have_count(0)
    order = page.evaluate(
        "[...document.querySelectorAll('.thread > *')].map((one) => one.className.split(' ')[0])"
    )
    assert order.index("boundary") == len(order) - 3
    page.reload()
    expect(line).to_be_visible()
