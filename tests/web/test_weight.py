"""What the page costs: its bytes, and to whom it speaks."""

from __future__ import annotations

from urllib.parse import urlsplit

from playwright.sync_api import Response, expect

from openclaw.gateway.http.files import read_pages
from tests.web.desk import Desk

MOST_BYTES = 150_000


def test_all_files_together_are_light() -> None:
    sizes = {name: len(page.data) for name, page in read_pages().by_path.items()}
    assert sum(sizes.values()) <= MOST_BYTES, sorted(sizes.items(), key=lambda one: one[1])


def test_the_page_speaks_to_its_gateway_alone(desk: Desk) -> None:
    """Whatever is asked for comes from this origin, once, and the policy would let nothing else in."""
    desk.talk("Show me", "![far](https://far.test/a.png) <img src=https://far.test/b.png> https://far.test/c")
    answers: list[Response] = []
    desk.context.on("response", lambda answer: answers.append(answer))
    page = desk.sign_in()
    expect(desk.thread).to_contain_text("far.test/b.png")
    desk.send("Go on")
    expect(desk.thread).to_contain_text("Understood.")
    hosts = {urlsplit(url).netloc for url in desk.requests}
    assert hosts == {urlsplit(desk.origin).netloc}
    paths = [urlsplit(url).path for url in desk.requests if "signin" not in url and "icon" not in url]
    assert len(paths) == len(set(paths)), paths
    top = next(one for one in answers if urlsplit(one.url).path == "/" and one.status == 200)
    policy = top.headers["content-security-policy"]
    assert "default-src 'self'" in policy
    assert "unsafe" not in policy
    assert page.evaluate(
        "performance.getEntriesByType('resource').every((one) => one.name.startsWith(location.origin))"
    )
