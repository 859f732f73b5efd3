"""Installed hooks in a whole gateway: what they are told of everything that happens (AUTO-10)."""

from __future__ import annotations

import asyncio
import json
import logging
import re
from collections.abc import Callable
from importlib import metadata
from pathlib import Path
from typing import Any

import pytest

from openclaw.channels import registry
from openclaw.config.load import load
from tests.fakes.openai_server import FakeReply
from tests.fakes.pigeon import Loft
from tests.integration.conftest import House, client_of

Json = dict[str, Any]
PAGE = Path(__file__).parents[2] / "docs" / "howto" / "hooks.md"
MAIN = "agent:main:main"
LONG = "lorem ipsum dolor sit amet " * 900
SUMMARY = "They spoke about lorem ipsum; the goal is to go on with it. " * 4
OK = FakeReply(texts=("fine",))


def example() -> str:
    """The hook that the how-to shows."""
    found = re.search(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    assert found is not None
    return found[1]


class Journal:
    """A house with the how-to's hook in it, and what the hook wrote."""

    def __init__(self, house: House, code: str, **entry: Any) -> None:
        self.folder = house.home / "state" / "hooks"
        self.folder.mkdir(parents=True)
        (self.folder / "journal.py").write_text(code, encoding="utf-8")
        self.file = self.folder / "journal.jsonl"
        house.config["hooks"] = {"internal": {"enabled": True, "entries": {"journal": entry}}}

    @property
    def lines(self) -> list[Json]:
        text = self.file.read_text(encoding="utf-8") if self.file.exists() else ""
        return [json.loads(line) for line in text.splitlines()]

    def of(self, *names: str) -> list[Json]:
        return [line for line in self.lines if line["name"] in names]

    async def has(self, name: str, count: int = 1) -> list[Json]:
        await until(lambda: len(self.of(name)) >= count)
        return self.of(name)


async def until(true: Callable[[], bool]) -> None:
    for _ in range(6000):
        if true():
            return
        await asyncio.sleep(0.01)
    pytest.fail("it did not come to that")


@pytest.fixture
def journal(house: House) -> Journal:
    return Journal(house, example())


@pytest.mark.spec("AUTO-10")
class TestWhatIsTold:
    async def test_the_life_of_a_gateway_and_of_a_session(self, house: House, journal: Journal) -> None:
        house.model.script(*[OK] * 3)
        async with house.gateway() as gateway, client_of(gateway) as client:
            await journal.has("gateway:startup")
            await client.say("main", "hello there", "run-1")
            sent = await journal.has("message:sent")
            (received,) = journal.of("message:received")
            (began,) = journal.of("session_start")
            first = began["sessionId"]
            assert received["sessionKey"] == began["sessionKey"] == MAIN
            assert (received["text"], received["runId"], received["source"]) == (
                "hello there",
                "run-1",
                "cli",
            )
            assert (received["channel"], received["agentId"]) == ("internal", "main")
            assert [(one["text"], one["runId"], one["sessionKey"]) for one in sent] == [
                ("fine", "run-1", MAIN)
            ]
            assert "previousSessionId" not in began

            await client.say("main", "/new", "run-2")
            (new,) = await journal.has("command:new")
            ended = journal.of("session_end")
            assert [(one["sessionId"], one["reason"]) for one in ended] == [(first, "new")]
            second = ended[0]["nextSessionId"]
            assert new["previousSessionId"] == first and new["sessionId"] == second != first
            assert journal.of("session_start")[1]["previousSessionId"] == first

            await client.say("main", "/reset", "run-3")
            assert (await journal.has("command:reset"))[0]["previousSessionId"] == second
            await client.call("sessions.reset", {"key": "main", "reason": "new"})
            assert len(await journal.has("command:new", 2)) == 2
            await client.call("sessions.patch", {"key": "main", "label": "Tea", "pinned": True})
            (patched,) = await journal.has("session:patch")
            assert (patched["sessionKey"], patched["fields"]) == (MAIN, ["label", "pinned"])
            await client.say("main", "/stop", "run-4")
            (stopped,) = await journal.has("command:stop")
            assert (stopped["runId"], stopped["text"]) == ("run-4", "Nothing was running.")
            await client.call("sessions.delete", {"key": "agent:main:main2"})
        assert [line["name"] for line in journal.lines][-1] == "gateway:shutdown"
        assert journal.lines[0]["name"] == "gateway:startup"
        assert all(line["atMs"] > 0 for line in journal.lines)

    async def test_around_a_compaction(self, house: House, journal: Journal) -> None:
        house.model.script(*[FakeReply(texts=(LONG,))] * 4, FakeReply(texts=(SUMMARY,)))
        async with house.gateway() as gateway, client_of(gateway) as client:
            for number in range(4):
                await client.say("proj", f"question {number}", f"run-{number}")
            assert (await client.call("sessions.compact", {"key": "proj"}))["compacted"]
            (after,) = await journal.has("session:compact:after")
            (before,) = journal.of("session:compact:before")
            assert before["sessionKey"] == after["sessionKey"] == "agent:main:proj"
            assert after["compacted"] is True and "compacted" not in before
            assert before["reason"] == after["reason"] == "manual"
            names = [line["name"] for line in journal.lines]
            assert names.index("session:compact:before") < names.index("session:compact:after")

    async def test_what_goes_over_a_platform(
        self, house: House, journal: Journal, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(registry, "BUILT_IN", {"pigeon": "tests.fakes.pigeon:build"})
        house.model.script(OK, OK)
        loft = Loft("hooks")
        house.config["channels"] = {"pigeon": {**loft.options, "dmPolicy": "open", "allowFrom": ["*"]}}
        try:
            async with house.gateway():
                await loft.says(loft.ann, loft.direct(loft.ann), "is it raining?")
                (sent,) = await journal.has("message:sent")
                (received,) = journal.of("message:received")
        finally:
            Loft.lofts.clear()
        assert (received["channel"], received["source"], received["text"]) == (
            "pigeon",
            "channel",
            "is it raining?",
        )
        assert (sent["channel"], sent["text"], sent["runId"]) == ("pigeon", "fine", received["runId"])
        assert sent["to"] == received["to"] and sent["sessionKey"] == received["sessionKey"]


@pytest.mark.spec("AUTO-10")
class TestWhatIsInstalled:
    async def test_nothing_unless_it_is_asked_for(self, house: House, journal: Journal) -> None:
        house.model.script(OK)
        for wish in ({"enabled": False}, {"entries": {"journal": {"enabled": False}}}):
            house.config["hooks"]["internal"] |= wish
            async with house.gateway() as gateway, client_of(gateway) as client:
                await client.call("sessions.patch", {"key": "main", "label": "x"})
            assert journal.lines == []
            house.config["hooks"]["internal"]["enabled"] = True

    async def test_only_the_events_that_it_names_and_a_change_counts_at_once(self, house: House) -> None:
        journal = Journal(house, example(), events=["session:patch"])
        async with house.gateway() as gateway, client_of(gateway) as client:
            await client.call("sessions.patch", {"key": "main", "label": "one"})
            await journal.has("session:patch")
            code = example().replace("encode(event)", 'encode({"name": "again"})')
            (journal.folder / "journal.py").write_text(code, encoding="utf-8")
            entries = {"journal": {"events": ["session:patch", "session_start"]}}
            patch = {"hooks": {"internal": {"entries": entries}}}
            base = (await client.call("config.get"))["hash"]
            await client.call("config.patch", {"raw": json.dumps(patch), "baseHash": base})

            for _ in range(6000):  # the new hook is read beside the answer
                await client.call("sessions.patch", {"key": "main", "label": "two"})
                if journal.of("again"):
                    break
        assert {line["name"] for line in journal.lines} == {"session:patch", "again"}

    async def test_from_an_installed_package(self, house: House, monkeypatch: pytest.MonkeyPatch) -> None:
        point = metadata.EntryPoint("heard", "tests.integration.test_hooks:note", "openclaw.hooks")
        monkeypatch.setattr("openclaw.app.hooks.entry_points", lambda group: metadata.EntryPoints([point]))
        house.config["hooks"] = {"internal": {"enabled": True, "entries": {"heard": {}}}}
        HEARD.clear()
        async with house.gateway() as gateway, client_of(gateway) as client:
            await client.call("sessions.patch", {"key": "main", "label": "one"})
            await until(lambda: "session:patch" in HEARD)

    @pytest.mark.parametrize(
        ("code", "mode", "told"),
        [
            ("def handle(event", 0o600, "was never closed"),
            ("raise SystemError('no luck')", 0o600, "no luck"),
            ("handle = 7", 0o600, "has no function `handle(event)`"),
            (None, 0o600, "there is neither"),
            ("def handle(event): pass", 0o622, "chmod go-w"),
        ],
        ids=["syntax", "raises", "no-function", "missing", "writable"],
    )
    async def test_one_that_cannot_be_had_is_left_out_and_the_gateway_starts(
        self, house: House, code: str | None, mode: int, told: str, caplog: pytest.LogCaptureFixture
    ) -> None:
        journal = Journal(house, example())
        house.config["hooks"]["internal"]["entries"]["other"] = {}
        if code is not None:
            (journal.folder / "other.py").write_text(code, encoding="utf-8")
            (journal.folder / "other.py").chmod(mode)
        with caplog.at_level(logging.ERROR, "openclaw.hooks"):
            async with house.gateway():
                await journal.has("gateway:startup")
        (line,) = [record.getMessage() for record in caplog.records if "left out" in record.getMessage()]
        assert line.startswith("hooks.internal.entries.other is left out: ") and told in line

    async def test_one_that_fails_disturbs_no_turn(
        self, house: House, caplog: pytest.LogCaptureFixture
    ) -> None:
        Journal(house, "async def handle(event):\n    raise RuntimeError('broken lamp')\n")
        house.model.script(OK)
        with caplog.at_level(logging.ERROR, "openclaw.hooks"):
            async with house.gateway() as gateway, client_of(gateway) as client:
                assert (await client.say("main", "hello", "run-1"))["state"] == "final"
        assert "hook journal failed on message:received" in caplog.text and "broken lamp" in caplog.text


@pytest.mark.spec("AUTO-10")
@pytest.mark.parametrize(
    ("internal", "told"),
    [
        ({"enabled": "yes"}, "hooks.internal.enabled"),
        ({"entries": {"a/b": {}}}, "a hook's name is made of lower-case letters"),
        ({"entries": {"a": {"events": ["message:eaten"]}}}, "message:received"),
        ({"entries": {"a": {"evnts": []}}}, "evnts"),
    ],
    ids=range(4),
)
def test_the_configuration_is_checked(tmp_path: Path, internal: Json, told: str) -> None:
    path = tmp_path / "openclaw.json"
    path.write_text(json.dumps({"hooks": {"internal": internal}}), encoding="utf-8")
    problems = [str(problem) for problem in load(path, {}).problems]
    assert len(problems) == 1 and told in problems[0]


@pytest.mark.spec("AUTO-10")
def test_a_file_of_another_implementation_still_loads(tmp_path: Path) -> None:
    path = tmp_path / "openclaw.json"
    entries = {"session-memory": {"enabled": True, "env": {"A": "b"}}, "command-logger": {"enabled": False}}
    config = {"hooks": {"internal": {"enabled": True, "entries": entries, "load": {"extraDirs": []}}}}
    path.write_text(json.dumps(config), encoding="utf-8")
    loaded = load(path, {})
    assert loaded.problems == () and len(loaded.warnings) == 2
    assert list(loaded.config.hooks.internal.entries) == ["session-memory", "command-logger"]


HEARD: list[str] = []


def note(event: Any) -> None:
    HEARD.append(event.name)
