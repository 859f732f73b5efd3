"""What a change means, and watching a file through everything that editors do to it (CFG-4)."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest

from openclaw.config.load import load, load_or_raise
from openclaw.config.reload import Refused, Reloaded, ReloadEvent, ReloadMode, diff, file_changes, watch
from tests.unit.config.reading import config_of


def changed_by(new: str, old: str = "{}") -> tuple[tuple[str, ...], tuple[str, ...]]:
    plan = diff(config_of(old), config_of(new))
    assert sorted(plan.changed_paths) == sorted((*plan.hot, *plan.restart_required))
    return plan.hot, plan.restart_required


@pytest.mark.spec("CFG-4")
@pytest.mark.parametrize(
    ("new", "path"),
    [
        ("{session: {reset: {atHour: 5}}}", "session.reset"),
        ("{session: {mainKey: 'x'}}", "session.mainKey"),
        ("{agents: {defaults: {maxConcurrent: 9}}}", "agents.defaults.maxConcurrent"),
        ("{agents: {list: [{id: 'a'}]}}", "agents.list"),
        ("{messages: {queue: {cap: 3}}}", "messages.queue.cap"),
        ("{tools: {sessions: {visibility: 'all'}}}", "tools.sessions.visibility"),
        ("{channels: {telegram: {groupPolicy: 'open'}}}", "channels.telegram"),
        ("{cron: {sessionRetention: '1h'}}", "cron.sessionRetention"),
        ("{hooks: {path: '/in'}}", "hooks.path"),
        ("{bindings: [{agentId: 'main', match: {channel: 'x'}}]}", "bindings"),
        ("{commands: {text: false}}", "commands.text"),
        ("{models: {providers: {p: {api: 'openai-responses'}}}}", "models.providers.p"),
        ("{logging: {level: 'debug'}}", "logging.level"),
        ("{gateway: {reload: {mode: 'hot'}}}", "gateway.reload.mode"),
        ("{gateway: {remote: {token: 'x'}}}", "gateway.remote.token"),
    ],
)
def test_most_changes_need_no_restart(new: str, path: str) -> None:
    assert changed_by(new) == ((path,), ())
    assert changed_by("{}", new) == ((path,), ())


@pytest.mark.spec("CFG-4")
@pytest.mark.parametrize(
    ("new", "path"),
    [
        ("{gateway: {port: 1}}", "gateway.port"),
        ("{gateway: {bind: 'lan', auth: {token: 't'}}}", "gateway.bind"),
        ("{gateway: {auth: {token: 't'}}}", "gateway.auth.token"),
        ("{gateway: {allowedHosts: ['h']}}", "gateway.allowedHosts"),
        ("{store: {url: 'sqlite:///x'}}", "store.url"),
    ],
)
def test_the_listening_side_needs_a_restart(new: str, path: str) -> None:
    hot, restart = changed_by(new)
    assert hot == ()
    assert path in restart


@pytest.mark.spec("CFG-4")
def test_changes_inside_maps_are_named_one_by_one() -> None:
    old = "{channels: {a: {x: 1, y: 2}, b: {}}, session: {resetByChannel: {d: {atHour: 1}}}}"
    new = "{channels: {a: {x: 1, y: 3}, c: {}}, session: {resetByChannel: {d: {atHour: 2}}}}"
    hot, restart = changed_by(new, old)
    assert set(hot) == {"channels.a.extra.y", "channels.b", "channels.c", "session.resetByChannel.d.atHour"}
    assert restart == ()


@pytest.mark.spec("CFG-4")
@pytest.mark.parametrize(
    ("mode", "text", "apply", "restart", "reason"),
    [
        ("hybrid", "{}", False, False, "no setting changed"),
        ("hybrid", "{session: {mainKey: 'x'}}", True, False, "applied to the next turn"),
        ("hybrid", "{gateway: {port: 1}}", True, True, "a restart applies gateway.port"),
        ("hot", "{gateway: {port: 1}}", True, False, "restart the gateway to apply gateway.port"),
        ("hot", "{session: {mainKey: 'x'}}", True, False, "applied to the next turn"),
        ("restart", "{session: {mainKey: 'x'}}", False, True, "gateway.reload.mode is restart"),
        ("restart", "{}", False, False, "no setting changed"),
        (
            "off",
            "{gateway: {port: 1}}",
            False,
            False,
            "gateway.reload.mode is off; restart the gateway to apply",
        ),
    ],
)
def test_reload_mode(mode: ReloadMode, text: str, apply: bool, restart: bool, reason: str) -> None:
    action = diff(config_of("{}"), config_of(text)).decide(mode)
    assert (action.apply, action.restart, action.reason) == (apply, restart, reason)


class Bench:
    """A watched file with scripted events: each step runs, then the watcher is told to look."""

    def __init__(self, path: Path, text: str) -> None:
        self.path = path
        path.write_text(text)
        self.current = load_or_raise(path, {})
        self.events: list[ReloadEvent] = []
        self.slept: list[float] = []
        self.while_asleep: list[Callable[[], None]] = []

    async def on_change(self, event: ReloadEvent) -> None:
        self.events.append(event)

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        if self.while_asleep:
            self.while_asleep.pop(0)()

    async def run(self, *steps: Callable[[], object], debounce_ms: int | None = None) -> None:
        async def changes(path: Path) -> AsyncIterator[object]:
            assert path == self.path
            for step in steps:
                step()
                yield step

        await watch(
            self.current, {}, self.on_change, debounce_ms=debounce_ms, changes=changes, sleep=self.sleep
        )

    def write(self, text: str) -> Callable[[], None]:
        return lambda: self._replace(text)

    def _replace(self, text: str) -> None:
        """As editors do: a new file, renamed over the old one."""
        fresh = self.path.with_name("~edit")
        fresh.write_text(text)
        fresh.replace(self.path)


def _overwrite(path: Path, text: str) -> None:
    path.write_text(text)


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path / "openclaw.json", "{session: {mainKey: 'one'}}")


@pytest.mark.spec("CFG-4")
async def test_a_good_edit_is_reported_with_its_meaning(bench: Bench) -> None:
    await bench.run(bench.write("{session: {mainKey: 'two'}, gateway: {port: 1}}"))
    [event] = bench.events
    assert isinstance(event, Reloaded)
    assert event.loaded.config.session.main_key == "two"
    assert (event.plan.hot, event.plan.restart_required) == (("session.mainKey",), ("gateway.port",))
    assert (event.action.apply, event.action.restart) == (True, True)
    assert bench.slept == [0.3]


@pytest.mark.spec("CFG-4")
async def test_a_bad_edit_is_refused_and_the_next_good_one_is_compared_with_what_runs(bench: Bench) -> None:
    await bench.run(
        bench.write("{session: {mainKey: 5}}"),
        bench.write("{session: {mainKey: 'one'}, logging: {level: 'debug'}}"),
    )
    refused, reloaded = bench.events
    assert isinstance(refused, Refused)
    assert [problem.path for problem in refused.problems] == ["session.mainKey"]
    assert isinstance(reloaded, Reloaded)
    assert reloaded.plan.changed_paths == ("logging.level",)


@pytest.mark.spec("CFG-4")
async def test_the_same_text_is_no_change(bench: Bench) -> None:
    text = bench.path.read_text()
    await bench.run(bench.write(text), lambda: None, bench.write(text), lambda: os.utime(bench.path))
    assert bench.events == []


@pytest.mark.spec("CFG-4")
async def test_an_untouched_file_is_not_read_again(bench: Bench) -> None:
    await bench.run(bench.write("{}"), lambda: None, lambda: None)
    assert len(bench.events) == 1
    assert bench.slept == [0.3]


@pytest.mark.spec("CFG-4")
async def test_waits_until_the_editor_is_done(bench: Bench) -> None:
    """Truncated, half written, gone for a moment, then complete: one event, with the final text."""
    bench.while_asleep = [
        lambda: _overwrite(bench.path, "{session"),
        bench.path.unlink,
        bench.write("{session: {mainKey: 'final'}}"),
    ]
    await bench.run(lambda: bench.path.write_text(""), debounce_ms=50)
    [event] = bench.events
    assert isinstance(event, Reloaded)
    assert event.loaded.config.session.main_key == "final"
    assert bench.slept == [0.05] * 4


@pytest.mark.spec("CFG-4")
async def test_a_restless_file_is_read_in_the_end(bench: Bench) -> None:
    bench.while_asleep = [bench.write(f"{{session: {{mainKey: 'k{turn}'}}}}") for turn in range(50)]
    await bench.run(bench.write("{}"))
    [event] = bench.events
    assert isinstance(event, Reloaded)
    assert event.loaded.config.session.main_key == "k19"


@pytest.mark.spec("CFG-4")
async def test_a_removed_file_keeps_the_settings(bench: Bench) -> None:
    original = bench.path.read_text()
    await bench.run(bench.path.unlink, lambda: None, bench.write(original))
    gone, back = bench.events
    assert isinstance(gone, Refused)
    assert gone.problems[0].reason == "the file is gone; the previous settings stay in force"
    assert isinstance(back, Reloaded)
    assert back.plan.changed_paths == ()
    assert not back.action.apply


@pytest.mark.spec("CFG-4")
async def test_mode_off_goes_on_comparing_with_what_runs(tmp_path: Path) -> None:
    bench = Bench(tmp_path / "openclaw.json", "{gateway: {reload: {mode: 'off', debounceMs: 10}}}")
    off = "gateway: {reload: {mode: 'off', debounceMs: 10}}"
    await bench.run(
        bench.write(f"{{{off}, session: {{mainKey: 'a'}}}}"),
        bench.write(f"{{{off}, session: {{mainKey: 'b'}}}}"),
    )
    assert [isinstance(event, Reloaded) and event.action.apply for event in bench.events] == [False, False]
    last = bench.events[-1]
    assert isinstance(last, Reloaded)
    assert last.plan.changed_paths == ("session.mainKey",)
    assert bench.slept == [0.01, 0.01]


@pytest.mark.spec("CFG-4")
async def test_a_file_that_appears_is_noticed(tmp_path: Path) -> None:
    path = tmp_path / "openclaw.json"
    bench = Bench(path, "{}")
    path.unlink()
    bench.current = load(path, {})
    await bench.run(lambda: None, bench.write("{session: {mainKey: 'new'}}"))
    [event] = bench.events
    assert isinstance(event, Reloaded)
    assert event.loaded.config.session.main_key == "new"


@pytest.mark.spec("CFG-4")
async def test_real_files_are_watched_by_directory(tmp_path: Path) -> None:
    """The real watcher: renames into place are seen, the database beside the file is not."""
    real = tmp_path / "elsewhere" / "claw.json"
    real.parent.mkdir()
    real.write_text("{}")
    link = tmp_path / "state" / "openclaw.json"
    link.parent.mkdir()
    link.symlink_to(real)
    seen: asyncio.Queue[ReloadEvent] = asyncio.Queue()
    async with asyncio.TaskGroup() as tasks:
        watching = tasks.create_task(watch(load(link, {}), {}, seen.put, debounce_ms=20))
        event: ReloadEvent | None = None
        for attempt in range(50):
            (link.parent / "openclaw.sqlite-wal").write_text(str(attempt))
            fresh = real.with_name("~claw")
            fresh.write_text(f"{{session: {{mainKey: 'k{attempt}'}}}}")
            fresh.replace(real)
            try:
                event = await asyncio.wait_for(seen.get(), 0.5)
            except TimeoutError:
                continue
            break
        watching.cancel()
    assert isinstance(event, Reloaded)
    assert event.plan.changed_paths == ("session.mainKey",)


@pytest.mark.spec("CFG-4")
async def test_other_files_beside_the_config_wake_nobody(tmp_path: Path) -> None:
    path = tmp_path / "openclaw.json"
    path.write_text("{}")
    changes = file_changes(path)
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.6):
            (tmp_path / "openclaw.sqlite").write_text("x")
            await anext(changes)
            raise AssertionError("woken by a foreign file")
