"""A conversation in the page: what streams, what is folded, what waits, and how it is read back."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest
from playwright.sync_api import expect

from tests.fakes.openai_server import FakeCall, FakeReply
from tests.web.desk import MAIN, Desk

PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8BQDwAEhQGAhKmMIQAAAABJRU5ErkJggg=="
MARKDOWN = """# Plan

Here is **bold**, *slanted*, `code`, ~~gone~~ and a [link](https://example.org/a_b).

1. One
2. Two
   - nested

> quoted

| name | count |
|------|------:|
| a    | 1     |

```python
def double(x):
    return x * 2
```
"""


GARDEN = """## The beds in spring

Start with the **two beds by the wall**; they are warm enough in March.

1. Peas and spinach, as soon as the ground is dry
2. Potatoes in April, onions between the rows
   - leave a hand's width to the path

| bed | sown | harvest |
|-----|------|--------:|
| wall, left | peas, spinach | June |
| wall, right | potatoes | August |

```sh
openclaw cron add --name beds --every 7d --message "What is to be sown this week?"
```
"""


def test_a_reply_streams_and_ends_as_the_gateway_stored_it(desk: Desk) -> None:
    desk.sign_in()
    desk.model.script(FakeReply(texts=("The first part, ", "the second part."), hang_after=2))
    desk.send("Tell me two things")
    live = desk.thread.locator(".live")
    expect(live).to_contain_text("The first part,")
    expect(live).not_to_contain_text("second")
    desk.model.release()
    expect(live).to_have_count(0)
    expect(desk.thread.locator(".assistant .md")).to_have_text("The first part, the second part.")
    expect(desk.thread.locator(".user")).to_have_count(1)
    assert desk.said() == [("user", "Tell me two things"), ("assistant", "The first part, the second part.")]


def test_markdown_becomes_elements(desk: Desk) -> None:
    desk.talk("Make a plan", MARKDOWN)
    page = desk.sign_in()
    body = desk.thread.locator(".md")
    expect(body.get_by_role("heading", name="Plan")).to_be_visible()
    expect(body.locator("strong")).to_have_text("bold")
    expect(body.locator("em")).to_have_text("slanted")
    expect(body.locator("del")).to_have_text("gone")
    expect(body.locator("ol > li")).to_have_count(2)
    expect(body.locator("ol ul > li")).to_have_text("nested")
    expect(body.locator("blockquote")).to_have_text("quoted")
    expect(body.get_by_role("columnheader", name="count")).to_be_visible()
    expect(body.locator("pre")).to_have_text("def double(x):\n    return x * 2")
    link = body.get_by_role("link", name="link")
    expect(link).to_have_attribute("href", "https://example.org/a_b")
    expect(link).to_have_attribute("rel", "noopener noreferrer nofollow")
    assert page.locator(".md [style]").count() == 0


@pytest.mark.spec("TRX-10")
def test_thinking_and_tools_are_folded(desk: Desk) -> None:
    page = desk.sign_in()
    look = FakeCall("sessions_list", ('{"limit": 5}',))
    desk.model.script(
        FakeReply(thinking=("I should ", "look around"), calls=(look,)), FakeReply(texts=("One session.",))
    )
    desk.send("What is there?")
    expect(desk.thread).to_contain_text("One session.")
    tool = desk.thread.locator("details", has_text="sessions_list")
    expect(tool.locator(".state")).to_have_text("done")
    assert tool.evaluate("(node) => node.open") is False
    tool.locator("summary").click()
    expect(tool.locator("pre").first).to_contain_text('"limit": 5')
    expect(tool.locator("pre").last).to_contain_text('"kind": "main"')
    thinking = desk.thread.locator("summary", has_text="Thinking")
    expect(page.get_by_text("I should look around")).to_have_count(0)
    thinking.click()
    expect(page.get_by_text("I should look around")).to_be_visible()


@pytest.mark.spec("RPC-13")
def test_stop_ends_the_run_and_keeps_what_was_said(desk: Desk) -> None:
    page = desk.sign_in()
    stop = page.get_by_role("button", name="Stop")
    expect(stop).to_be_hidden()
    desk.model.script(FakeReply(texts=("Half a thought ", "and the rest"), hang_after=2))
    desk.send("Think long")
    expect(desk.thread.locator(".live")).to_contain_text("Half a thought")
    stop.click()
    expect(desk.thread.locator(".live")).to_have_count(0)
    expect(stop).to_be_hidden()
    row = desk.call("sessions.describe", key=MAIN)["session"]
    assert (row["hasActiveRun"], row["abortedLastRun"]) == (False, True)
    assert "and the rest" not in json.dumps(desk.said())


@pytest.mark.spec("QUE-4")
def test_a_message_steers_the_reply_that_is_written(desk: Desk) -> None:
    page = desk.sign_in()
    call = FakeCall("sessions_list")
    desk.model.script(
        FakeReply(texts=("Looking",), calls=(call,), hang_after=2), FakeReply(texts=("Pears it is.",))
    )
    desk.send("Choose a fruit")
    expect(desk.thread.locator(".live")).to_contain_text("Looking")
    expect(page.get_by_text("Enter steers")).to_be_visible()
    desk.send("Not an apple")
    expect(page.locator(".queued")).to_contain_text("Not an apple")
    desk.model.release()
    expect(desk.thread).to_contain_text("Pears it is.")
    expect(page.locator(".queued")).to_have_count(0)
    expect(desk.thread.locator(".user")).to_have_count(2)
    assert [role for role, _ in desk.said()].count("user") == 2
    assert len(desk.model.requests) == 2


def test_the_queue_is_seen_and_can_be_cut(desk: Desk) -> None:
    page = desk.sign_in()
    desk.model.script(FakeReply(texts=("Working",), hang_after=2), FakeReply(texts=("The second answer",)))
    desk.send("First")
    expect(desk.thread.locator(".live")).to_contain_text("Working")
    for text in ("Second", "Third"):
        desk.field.fill(text)
        desk.field.press("Alt+Enter")
        expect(page.locator(".queued", has_text=text)).to_contain_text("queued")
    page.get_by_role("button", name="Cancel: Third").click()
    expect(page.locator(".queued")).to_have_count(1)
    desk.model.release()
    expect(desk.thread).to_contain_text("The second answer")
    expect(page.locator(".queued")).to_have_count(0)
    assert [text for role, text in desk.said() if role == "user"] == ["First", "Second"]


def test_slash_commands_are_completed_and_answered(desk: Desk) -> None:
    page = desk.sign_in()
    desk.field.press_sequentially("/sta")
    options = page.get_by_role("listbox", name="Commands").get_by_role("option")
    expect(options.first).to_contain_text("/status")
    expect(desk.field).to_have_attribute("aria-expanded", "true")
    desk.field.press("Tab")
    expect(desk.field).to_have_value("/status ")
    desk.field.press("Enter")
    expect(desk.thread.locator(".assistant")).to_contain_text("main")
    expect(desk.thread.locator(".user .plaintext")).to_have_text("/status")
    assert desk.model.requests == []
    desk.field.press_sequentially("/think ")
    expect(options.first).to_contain_text("/think ")


def drop(desk: Desk, event: str, name: str, kind: str, content: bytes) -> None:
    """Files as a drop or a paste brings them."""
    script = """([event, name, kind, data]) => {
      const bytes = Uint8Array.from(atob(data), (char) => char.charCodeAt(0));
      const transfer = new DataTransfer();
      transfer.items.add(new File([bytes], name, { type: kind }));
      const target = document.querySelector(event === "paste" ? "oc-chat textarea" : "oc-chat");
      const shared = { bubbles: true, cancelable: true };
      const made = event === "paste" ? new ClipboardEvent("paste", { clipboardData: transfer, ...shared })
        : new DragEvent(event, { dataTransfer: transfer, ...shared });
      target.dispatchEvent(made);
    }"""
    desk.page.evaluate(script, [event, name, kind, base64.b64encode(content).decode()])


@pytest.mark.spec("RPC-12")
def test_files_are_attached_by_drop_and_paste(desk: Desk) -> None:
    page = desk.sign_in()
    drop(desk, "drop", "list.txt", "text/plain", b"apples\npears\n")
    drop(desk, "paste", "dot.png", "image/png", base64.b64decode(PIXEL))
    drop(desk, "drop", "unwanted.txt", "text/plain", b"no")
    chips = page.locator(".chips .chip")
    expect(chips).to_have_count(3)
    page.get_by_role("button", name="Remove unwanted.txt").click()
    desk.send("See these")
    expect(desk.thread).to_contain_text("Understood.")
    expect(chips).to_have_count(0)
    expect(desk.thread.get_by_role("img", name="Attached picture")).to_be_visible()
    file = desk.thread.locator("details", has_text="list.txt")
    file.locator("summary").click()
    expect(file).to_contain_text("pears")
    asked: dict[str, Any] = desk.model.requests[0].body
    assert "apples" in json.dumps(asked["messages"][-1])
    assert "an image is here" in json.dumps(asked["messages"][-1])
    page.reload()
    expect(desk.thread.locator(".chip")).to_contain_text("Picture")


def test_a_draft_belongs_to_its_session_and_survives(desk: Desk) -> None:
    desk.talk("About apples", "Sweet", "agent:main:fruit")
    page = desk.sign_in()
    desk.field.fill("half a sentence")
    page.locator("a.session", has_text="About apples").click()
    expect(desk.field).to_have_value("")
    page.reload()
    page.goto(f"{desk.origin}/#/s/{MAIN}")
    expect(desk.field).to_have_value("half a sentence")


def test_a_failed_turn_says_why(desk: Desk) -> None:
    desk.sign_in()
    desk.model.script(FakeReply(status=401, body={"error": {"message": "that key is not known"}}))
    desk.send("Hello")
    expect(desk.thread.locator(".failed")).to_contain_text("that key is not known")
    expect(desk.thread.locator(".failed")).to_have_count(1)
    expect(desk.thread.locator(".live")).to_have_count(0)
    desk.send("Again")
    expect(desk.thread).to_contain_text("Understood.")


def test_pictures_for_the_documentation(desk: Desk) -> None:
    """A day at the desk, in light and dark."""
    titles = ("Trip to Lisbon", "Invoice draft", "Weekly report", "A bug in the importer", "Birthday ideas")
    for number, title in enumerate(titles):
        desk.talk(title, "Here is a first version of it.", f"agent:main:s{number}")
    desk.talk("Make a plan for the garden", GARDEN)
    page = desk.sign_in()
    expect(desk.thread).to_contain_text("The beds")
    desk.model.script(
        FakeReply(
            thinking=("What do the others say?",), calls=(FakeCall("sessions_list", ('{"limit": 5}',)),)
        ),
        FakeReply(texts=("There are six sessions. The newest ", "is about the garden."), hang_after=2),
    )
    desk.send("Look around and tell me what the others are about")
    expect(desk.thread.locator(".live")).to_contain_text("The newest")
    desk.field.fill("And then write a summary")
    desk.field.press("Alt+Enter")
    expect(page.locator(".queued")).to_contain_text("queued")
    page.locator("a.session", has_text="main").first.wait_for(state="detached")
    desk.picture("chat-light")
    page.emulate_media(color_scheme="dark")
    page.keyboard.press("Escape")
    page.keyboard.press("/")
    page.keyboard.type("version")
    expect(page.locator("a.hit")).to_have_count(5)
    desk.picture("chat-dark")
    desk.model.release()
    expect(desk.thread.locator(".live")).to_have_count(0)
