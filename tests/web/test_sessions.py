"""Signing in, and the list of sessions: what it shows, how it is searched, what can be done and undone."""

from __future__ import annotations

from typing import Any

import pytest
from playwright.sync_api import Locator, expect

from tests.fakes.openai_server import FakeReply
from tests.web.desk import MAIN, Desk

FRUIT = "agent:main:fruit"
TOOLS = "agent:main:tools"


def row(desk: Desk, title: str) -> Locator:
    return desk.page.locator("a.session", has_text=title)


def choose(desk: Desk, title: str, action: str) -> None:
    """An entry of a row's menu, as a person with a mouse does it."""
    row(desk, title).hover()
    desk.page.get_by_role("button", name=f"Actions for {title}").click()
    desk.page.get_by_role("menuitem", name=action).click()


def session(desk: Desk, key: str) -> dict[str, Any] | None:
    found: dict[str, Any] | None = desk.call("sessions.describe", key=key)["session"]
    return found


# -- signing in ----------------------------------------------------------------------------------


def test_the_link_works_once_and_shows_no_secret(desk: Desk) -> None:
    page = desk.sign_in()
    assert "signin" not in page.url
    kept = page.evaluate("JSON.stringify([document.cookie, {...localStorage}, {...sessionStorage}])")
    assert "e2e-token" not in kept
    link = desk.call("dashboard.link")["path"]
    assert page.request.get(desk.origin + link, max_redirects=0).status == 303
    assert page.request.get(desk.origin + link, max_redirects=0).status == 410


def test_without_a_sign_in_nothing_is_shown(desk: Desk) -> None:
    desk.talk("A secret plan", "Noted")
    page = desk.context.new_page()
    page.goto(f"{desk.origin}/#/s/{MAIN}")
    expect(page.get_by_role("heading", name="Sign this browser in")).to_be_visible()
    expect(page.locator(".banner pre")).to_have_text("openclaw dashboard")
    assert "secret plan" not in page.content()


def test_signing_out_ends_the_page(desk: Desk) -> None:
    page = desk.sign_in()
    desk.field.fill("a private draft")
    other = desk.context.new_page()
    other.goto(desk.origin)
    expect(other.locator(".app")).to_have_attribute("data-wire", "open")
    page.get_by_role("button", name="Sign out").click()
    expect(page.get_by_role("heading", name="Sign this browser in")).to_be_visible()
    expect(other.get_by_role("heading", name="Sign this browser in")).to_be_visible()
    page.wait_for_function("!JSON.stringify({...localStorage}).includes('private')")


# -- the list ------------------------------------------------------------------------------------


@pytest.mark.spec("OWN-1", "ROUTE-5")
def test_unread_and_running_are_shown_as_the_gateway_has_them(desk: Desk) -> None:
    desk.talk("About apples", "Sweet", FRUIT)
    page = desk.sign_in()
    expect(page).to_have_url(f"{desk.origin}/#/s/{MAIN.replace(':', '%3A')}")
    fruit = row(desk, "About apples")
    expect(fruit).to_have_attribute("data-marks", "unread")
    desk.talk("And pears?", "Sweet too", FRUIT)
    expect(fruit).to_contain_text("Sweet too")
    fruit.click()
    expect(desk.thread).to_contain_text("Sweet too")
    expect(fruit).to_have_attribute("data-marks", "")
    seen = session(desk, FRUIT)
    assert seen is not None
    assert seen["unread"] is False
    desk.model.script(FakeReply(texts=("slow", " reply"), hang_after=2))
    desk.send("Take your time")
    expect(fruit).to_have_attribute("data-marks", "running")
    desk.model.release()
    expect(fruit).to_have_attribute("data-marks", "")


def test_titles_and_last_words_are_looked_up_for_every_row_that_changed(desk: Desk) -> None:
    keys = [f"agent:main:s{n}" for n in range(25)]
    desk.calls(*(("sessions.create", {"key": key}) for key in keys))
    page = desk.sign_in()
    expect(page.locator("a.session")).to_have_count(25)
    # What was said last is the gateway's to say, also after it was taken back.
    desk.talk("About apples", "Sweet", keys[0])
    expect(row(desk, "About apples")).to_contain_text("Sweet")
    desk.call("sessions.reset", key=keys[0])
    desk.talk("About hammers", "Heavy", keys[0])
    expect(row(desk, "About hammers")).to_contain_text("Heavy")
    desk.call("sessions.restore", key=keys[0])
    expect(row(desk, "About apples")).to_contain_text("Sweet")
    # Many at once: none is forgotten.
    for key in keys:
        desk.call("chat.inject", sessionKey=key, message=f"Words for {key[-3:]}")
    for key in keys:
        expect(page.locator(f'a.session[data-id="{key}"]')).to_contain_text(f"Words for {key[-3:]}")


def test_search_finds_names_and_words_and_opens_the_message(desk: Desk) -> None:
    for number in range(30):
        desk.talk(f"Question {number} about fruit", f"Answer {number}", FRUIT)
    desk.talk("Do you like quinces?", "I do like quinces very much", TOOLS)
    desk.call("sessions.patch", key=FRUIT, label="Orchard")
    page = desk.sign_in()
    page.keyboard.press("/")
    search = page.get_by_role("searchbox", name="Search sessions and messages")
    expect(search).to_be_focused()
    search.fill("orchard")
    expect(row(desk, "Orchard").locator("mark")).to_have_text("Orchard")
    search.fill("quinces")
    hits = page.locator("a.hit")
    expect(hits).to_have_count(2)
    expect(hits.first.locator("mark").first).to_have_text("quinces")
    search.fill("question 3")
    expect(hits.first).to_contain_text("Question 3 about")
    hits.first.click()
    expect(desk.thread.locator(".found")).to_contain_text("Question 3 about fruit")
    expect(desk.thread.locator(".found")).to_be_in_viewport()
    page.get_by_role("button", name="Latest").click()
    expect(desk.thread).to_contain_text("Answer 29")
    search.press("Escape")
    expect(row(desk, "Do you like quinces?")).to_be_visible()


def test_a_hit_in_an_earlier_conversation_opens_there(desk: Desk) -> None:
    desk.talk("Remember the word kumquat", "Remembered", FRUIT)
    desk.call("sessions.reset", key=FRUIT)
    desk.talk("Something else", "Else indeed", FRUIT)
    page = desk.sign_in()
    page.get_by_role("searchbox").fill("kumquat")
    page.locator("a.hit").first.click()
    expect(desk.thread.locator(".found")).to_contain_text("kumquat")
    desk.talk("While you read", "It goes on", FRUIT)
    expect(desk.thread.locator(".found")).to_be_in_viewport()
    page.locator(".scroller").hover()
    page.mouse.wheel(0, 5000)
    expect(desk.thread).to_contain_text("It goes on")
    expect(page.get_by_role("separator", name="New conversation")).to_have_count(1)


@pytest.mark.spec("RPC-7")
def test_rename_pin_and_archive(desk: Desk) -> None:
    desk.talk("About apples", "Sweet", FRUIT)
    desk.talk("About hammers", "Heavy", TOOLS)
    page = desk.sign_in()
    choose(desk, "About apples", "Rename")
    page.get_by_role("textbox", name="Name").fill("Orchard")
    page.get_by_role("button", name="Rename", exact=True).click()
    expect(row(desk, "Orchard")).to_be_visible()
    renamed = session(desk, FRUIT)
    assert renamed is not None
    assert renamed["label"] == "Orchard"
    choose(desk, "Orchard", "Pin")
    expect(page.locator("a.session").first).to_contain_text("Orchard")
    choose(desk, "About hammers", "Archive")
    expect(row(desk, "About hammers")).to_have_count(0)
    page.get_by_role("button", name="Archived").click()
    expect(row(desk, "About hammers")).to_be_visible()
    page.get_by_role("button", name="Undo").click()
    expect(row(desk, "About hammers")).to_have_count(0)
    page.get_by_role("button", name="Chats").click()
    expect(row(desk, "About hammers")).to_be_visible()
    kept = session(desk, TOOLS)
    assert kept is not None
    assert kept["archived"] is False


@pytest.mark.spec("RPC-8")
def test_delete_can_be_undone(desk: Desk) -> None:
    desk.talk("About apples", "Sweet", FRUIT)
    page = desk.sign_in(f"#/s/{FRUIT}")
    expect(desk.thread).to_contain_text("Sweet")
    choose(desk, "About apples", "Delete")
    expect(row(desk, "About apples")).to_have_count(0)
    assert session(desk, FRUIT) is None
    page.get_by_role("button", name="Undo").click()
    expect(row(desk, "About apples")).to_be_visible()
    expect(desk.thread).to_contain_text("Sweet")
    assert [text for _, text in desk.said(FRUIT)] == ["About apples", "Sweet"]


@pytest.mark.spec("RPC-8")
def test_a_reset_is_drawn_and_can_be_taken_back(desk: Desk) -> None:
    desk.talk("About apples", "Sweet", FRUIT)
    page = desk.sign_in(f"#/s/{FRUIT}")
    expect(desk.thread).to_contain_text("Sweet")
    choose(desk, "About apples", "Reset: begin anew")
    line = page.get_by_role("separator", name="New conversation")
    expect(line).to_contain_text("a reset")
    desk.send("Begin with pears")
    expect(desk.thread).to_contain_text("Understood.")
    expect(line).to_have_count(1)
    expect(desk.thread).to_contain_text("Sweet")
    assert [text for _, text in desk.said(FRUIT)] == ["Begin with pears", "Understood."]
    line.get_by_role("button", name="Take it back").click()
    expect(desk.thread).not_to_contain_text("Begin with pears")
    expect(desk.thread).to_contain_text("Sweet")
    expect(line).to_have_count(0)
    assert [text for _, text in desk.said(FRUIT)] == ["About apples", "Sweet"]


# -- keys ----------------------------------------------------------------------------------------


def test_everything_can_be_done_with_keys(desk: Desk) -> None:
    desk.talk("About apples", "Sweet", FRUIT)
    desk.talk("About hammers", "Heavy", TOOLS)
    page = desk.sign_in()
    expect(page.locator("a.session")).to_have_count(2)
    page.keyboard.press("j")
    page.keyboard.press("j")
    page.keyboard.press("k")
    expect(row(desk, "About hammers")).to_be_focused()
    page.keyboard.press("Enter")
    expect(desk.thread).to_contain_text("Heavy")
    page.keyboard.press("c")
    expect(desk.field).to_be_focused()
    page.keyboard.type("jk/?")
    expect(desk.field).to_have_value("jk/?")
    page.keyboard.press("Escape")
    expect(desk.field).not_to_be_focused()
    page.keyboard.press("Control+k")
    page.keyboard.type("appl")
    page.keyboard.press("Enter")
    expect(desk.thread).to_contain_text("Sweet")
    page.keyboard.press("?")
    expect(page.get_by_role("dialog", name="Keys")).to_be_visible()
    page.keyboard.press("Escape")
    page.keyboard.press("n")
    expect(page).not_to_have_url(f"{desk.origin}/#/s/{FRUIT.replace(':', '%3A')}")
    expect(desk.field).to_be_focused()
    desk.send("Brand new")
    expect(row(desk, "Brand new")).to_contain_text("Understood.")


def test_one_column_on_a_narrow_screen(desk: Desk) -> None:
    desk.talk("About apples", "Sweet", FRUIT)
    page = desk.sign_in()
    page.set_viewport_size({"width": 390, "height": 760})
    page.goto(f"{desk.origin}/#/")
    expect(row(desk, "About apples")).to_be_visible()
    expect(desk.field).not_to_be_visible()
    desk.picture("narrow-sessions")
    row(desk, "About apples").click()
    expect(desk.thread).to_contain_text("Sweet")
    expect(page.get_by_role("searchbox")).not_to_be_visible()
    assert page.evaluate("document.documentElement.scrollWidth") == 390
    desk.picture("narrow-chat")
    page.get_by_role("button", name="Back to the sessions").click()
    expect(row(desk, "About apples")).to_be_visible()


def test_a_fresh_house_leads_to_the_main_session_on_a_narrow_screen_too(desk: Desk) -> None:
    page = desk.sign_in()
    page.set_viewport_size({"width": 360, "height": 700})
    page.goto(f"{desk.origin}/#/")
    # Everything at the foot of the page is within reach, also how to leave it.
    expect(page.get_by_role("button", name="Sign out")).to_be_in_viewport(ratio=1)
    page.get_by_role("link", name="Begin with the main one.").click()
    expect(page).to_have_url(f"{desk.origin}/#/s/{MAIN.replace(':', '%3A')}")
    desk.send("Hello")
    expect(desk.thread).to_contain_text("Understood.")
    assert desk.said() == [("user", "Hello"), ("assistant", "Understood.")]


def test_the_choice_of_light_or_dark_is_kept(desk: Desk) -> None:
    page = desk.sign_in()
    shade = "getComputedStyle(document.body).backgroundColor"
    before = page.evaluate(shade)
    page.get_by_role("button", name="Light or dark").click()
    after = page.evaluate(shade)
    assert before != after
    page.reload()
    expect(page.locator(".app")).to_have_attribute("data-wire", "open")
    assert page.evaluate(shade) == after
