"""`openclaw logs`: from the gateway while it runs, from its files otherwise, and across both."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from openclaw.cli.logs import line_for_people
from openclaw.gateway.logtail import CURRENT, old_name
from tests.unit.cli.conftest import Command
from tests.unit.cli.fake_gateway import FakeGateway, HangUp, running

Json = dict[str, Any]


def line(message: str, level: str = "info") -> str:
    fields = {"time": "2026-11-16T04:00:00.000Z", "level": level, "name": "openclaw", "message": message}
    return msgspec.json.encode(fields).decode()


def page(*lines: str, cursor: int = 1, **more: Any) -> Json:
    return {"file": "x", "cursor": cursor, "size": 9, "lines": list(lines)} | more


@pytest.fixture(autouse=True)
def utc() -> Iterator[None]:
    """Lines are shown in local time; here that is UTC."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("TZ", "UTC")
        time.tzset()
        yield
    time.tzset()


@pytest.fixture
def interrupted_after(monkeypatch: pytest.MonkeyPatch) -> Callable[[int], None]:
    """Ctrl-C at the n-th pause."""

    def arrange(pauses: int) -> None:
        left = iter(range(pauses))

        def pause(_seconds: float) -> None:
            if next(left, None) is None:
                raise KeyboardInterrupt

        monkeypatch.setattr("openclaw.cli.logs.sleep", pause)

    return arrange


def test_the_running_gateway_is_asked(command: Command, point_at: Callable[[FakeGateway], Path]) -> None:
    lines = (line("started"), line("odd\x1b[2J", "warning"), line("broken", "error"), "no json")
    with running(FakeGateway({"logs.tail": lambda _params: page(*lines)})) as gateway:
        point_at(gateway)
        plain = command("logs", "--limit", "4")
        assert gateway.called("logs.tail") == [{"limit": 4}]
        assert plain.out.splitlines() == [
            "2026-11-16 04:00:00 info    openclaw: started",
            "2026-11-16 04:00:00 warning openclaw: odd\ufffd[2J",
            "2026-11-16 04:00:00 error   openclaw: broken",
            "no json",
        ]
        loud = command("logs", "--level", "warning").out
        assert "started" not in loud and "odd" in loud and "broken" in loud and "no json" in loud
        as_json = command("logs", "--json").out.splitlines()
        assert [msgspec.json.decode(one)["message"] for one in as_json] == [
            "started", "odd\x1b[2J", "broken", "no json",
        ]  # fmt: skip
    with running(FakeGateway({"logs.tail": lambda _params: page()})) as gateway:
        point_at(gateway)
        assert command("logs").err == "Nothing is logged yet.\n"


@pytest.mark.spec("OWN-4")
def test_without_a_gateway_the_files_are_read(
    command: Command, write_config: Callable[[str], Path], home: Path
) -> None:
    write_config("{ gateway: { port: 1 } }")
    nothing = command("logs")
    assert nothing.code == 1 and "has no log" in nothing.err
    folder = home / ".openclaw" / "logs"
    folder.mkdir()
    old = line("old") + "\n"
    (folder / old_name(0)).write_text(old)
    (folder / CURRENT).write_text(line("new") + "\n")
    assert [text.split(": ")[1] for text in command("logs").out.splitlines()] == ["old", "new"]
    assert command("logs", "--limit", "1").out.count("\n") == 1
    named = command("logs", "--url", "ws://127.0.0.1:1")
    assert named.code == 1 and "no gateway" in named.err, "a gateway that was named is not passed over"


def test_following_goes_on_through_rotation_and_restart(
    command: Command,
    point_at: Callable[[FakeGateway], Path],
    home: Path,
    interrupted_after: Callable[[int], None],
) -> None:
    """The first lines come from a gateway; then it is gone and its files, rotated meanwhile, are read on."""
    first = line("one") + "\n"
    answers = iter([page(line("one"), cursor=len(first)), HangUp()])
    interrupted_after(1)
    with running(FakeGateway({"logs.tail": lambda _params: next(answers, HangUp())})) as gateway:
        point_at(gateway)
        folder = home / ".openclaw" / "logs"
        folder.mkdir()
        (folder / old_name(0)).write_text(first + line("two") + "\n")
        (folder / CURRENT).write_text(line("three") + "\n")
        done = command("logs", "-f")
    assert done.code == 130
    assert [text.split(": ")[1] for text in done.out.splitlines()] == ["one", "two", "three"]


def test_lost_lines_are_told_and_full_pages_are_read_at_once(
    command: Command, point_at: Callable[[FakeGateway], Path], interrupted_after: Callable[[int], None]
) -> None:
    pages = iter(
        [
            page(line("a"), cursor=5),
            page(line("b"), cursor=6, truncated=True),
            page(line("c"), cursor=7, reset=True),
        ]
    )
    interrupted_after(0)
    with running(FakeGateway({"logs.tail": lambda _params: next(pages)})) as gateway:
        point_at(gateway)
        done = command("logs", "-f")
        assert [params.get("cursor") for params in gateway.called("logs.tail")] == [None, 5, 6]
    assert [text.split(": ")[1] for text in done.out.splitlines()] == ["a", "b", "c"]
    assert done.err.count("Lines were lost") == 1


def test_a_record_of_another_shape_is_still_a_line() -> None:
    assert line_for_people({"time": "soon\n", "message": "x\ny"}) == "soon -       : x\ny"
