"""`openclaw dashboard` against a gateway that answers by script."""

from __future__ import annotations

import time
import webbrowser
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from openclaw.cli.dashboard import page_url
from openclaw.cli.place import place_at
from openclaw.protocol.scopes import ADMIN
from tests.fakes.ports import free_port
from tests.unit.cli.conftest import Command
from tests.unit.cli.fake_gateway import TOKEN, FakeGateway, running

CODE = "c0de" * 10
EXPIRES = (int(time.time()) + 60) * 1000


@pytest.fixture
def gateway(point_at: Callable[[FakeGateway], Path]) -> Iterator[FakeGateway]:
    answers = {
        "dashboard.link": lambda _params: {"path": f"/signin/{CODE}", "expiresAt": EXPIRES},
        "dashboard.signout": lambda _params: {"ok": True, "ended": 2},
    }
    with running(FakeGateway(answers)) as fake:
        point_at(fake)
        yield fake


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What a browser was asked to open, on a machine with a screen."""
    asked: list[str] = []

    def note(url: str, *_more: object) -> bool:
        asked.append(url)
        return True

    monkeypatch.setattr(webbrowser, "open", note)
    monkeypatch.setenv("DISPLAY", ":0")
    return asked


def test_the_link_is_printed_and_opened(gateway: FakeGateway, command: Command, opened: list[str]) -> None:
    outcome = command("dashboard")
    url = f"http://127.0.0.1:{gateway.port}/signin/{CODE}"
    assert outcome.code == 0
    assert url in outcome.out
    assert "works once" in outcome.out
    assert TOKEN not in outcome.out + outcome.err
    assert opened == [url]
    assert gateway.connects[0].scopes == (ADMIN,) or list(gateway.connects[0].scopes) == [ADMIN]


def test_nothing_is_opened_when_nobody_wants_it(
    gateway: FakeGateway, command: Command, opened: list[str]
) -> None:
    assert CODE in command("dashboard", "--no-open").out
    told = command("dashboard", "--json").json()
    assert told == {
        "ok": True,
        "url": f"http://127.0.0.1:{gateway.port}/signin/{CODE}",
        "expiresAt": EXPIRES,
    }
    assert opened == []


def test_a_machine_without_a_screen_says_so(
    gateway: FakeGateway, command: Command, opened: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("DISPLAY")
    monkeypatch.delenv("WAYLAND_DISPLAY", raising=False)
    monkeypatch.setattr("sys.platform", "linux")
    outcome = command("dashboard")
    assert CODE in outcome.out
    assert "No browser" in outcome.out
    assert opened == []


def test_a_browser_that_fails_is_no_failure(
    gateway: FakeGateway, command: Command, opened: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(_url: str) -> bool:
        raise webbrowser.Error("no browser")

    monkeypatch.setattr(webbrowser, "open", fail)
    outcome = command("dashboard")
    assert (outcome.code, "No browser" in outcome.out) == (0, True)


def test_signing_out(gateway: FakeGateway, command: Command, opened: list[str]) -> None:
    assert command("dashboard", "--sign-out").out == "2 browsers signed out.\n"
    assert command("dashboard", "--sign-out", "--json").json() == {"ok": True, "ended": 2}
    assert gateway.called("dashboard.link") == []
    assert opened == []


def test_without_a_gateway_the_fix_is_named(command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENCLAW_GATEWAY_PORT", str(free_port()))
    outcome = command("dashboard")
    assert outcome.code == 1
    assert "openclaw" in outcome.err
    assert outcome.out == ""


@pytest.mark.parametrize(
    ("url", "page"),
    [
        ("ws://127.0.0.1:18789", "http://127.0.0.1:18789"),
        ("wss://gw.example", "https://gw.example:443"),
        ("ws://[::1]:9000/x", "http://[::1]:9000"),
    ],
)
def test_where_the_page_is(url: str, page: str) -> None:
    assert page_url(place_at(url, "test")) == page
