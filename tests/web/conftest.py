"""One Chromium for all tests of the page; a fresh gateway, model and browser profile for each test."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect, sync_playwright

from scripts.web_tools import find_chromium
from tests.fakes.in_thread import served
from tests.fakes.openai_server import FakeReply
from tests.web.desk import WAIT_MS, Desk, ScriptedModel


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.web)


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    program = find_chromium()
    assert program is not None, "these tests need Chromium; scripts/test-web gets it"
    expect.set_options(timeout=WAIT_MS)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.fixture
def desk(tmp_path: Path, browser: Browser) -> Iterator[Desk]:
    """A running gateway and a browser that has not signed in yet; `desk.sign_in()` does that."""
    context = browser.new_context(viewport={"width": 1280, "height": 800}, locale="en-GB")
    with served(ScriptedModel(then=FakeReply(texts=("Understood.",)))) as model:
        desk = Desk(tmp_path, model, context)
        desk.start()
        try:
            yield desk
        finally:
            context.close()
            if desk.gateway.is_running:
                desk.gateway.kill()
    assert desk.problems == []
