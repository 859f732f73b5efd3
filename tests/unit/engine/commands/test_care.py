"""The conversation as a whole: compact, take back, renew, ask aside, export."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from openclaw.domain.commands import CommandCaller
from openclaw.domain.directives import Asked
from openclaw.engine.commands import stopping
from openclaw.engine.commands.care import soften
from openclaw.engine.commands.exporting import workspace_export
from openclaw.engine.commands.ports import CompactionReport, Ignored, PassOn
from openclaw.errors import InvalidRequest
from openclaw.store.export import Export
from openclaw.store.sqlite import SqliteDatabase
from tests.conformance.making import MAIN, NOON, begin, create, present, queue, say, turn
from tests.unit.engine.commands.house import KEY, House, settings_of


@pytest.mark.spec("COMP-1", "COMP-9", "CMD-7")
async def test_compact_hands_over_the_instructions_and_tells_the_outcome(house: House) -> None:
    assert await house.ask("/compact") == "/compact is not available in this gateway yet."
    asked: list[tuple[str, str | None]] = []

    async def compact(session_key: str, instructions: str | None) -> CompactionReport:
        asked.append((session_key, instructions))
        return CompactionReport(True, "12,000 -> 3,000 tokens (15 % of the window)")

    house.give(compact=compact)
    assert await house.ask("/compact") == "12,000 -> 3,000 tokens (15 % of the window)"
    await house.ask("/compact: keep the names")
    assert asked == [(KEY, None), (KEY, "keep the names")]


@pytest.mark.spec("COMP-9")
async def test_compact_aborts_the_turn_in_progress_first(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[object] = []

    async def compact(session_key: str, instructions: str | None) -> CompactionReport:
        seen.append(await house.store.active_run(session_key))
        return CompactionReport(False, "too short")

    house.give(compact=compact)
    await begin(house.store, "r1")
    assert await house.ask("/compact") == "too short"
    assert seen == [None]
    assert house.aborted == [(KEY, "r1", "compact")]

    async def never(*_args: object) -> int:
        return 0

    await begin(house.store, "r2")
    monkeypatch.setattr("openclaw.engine.commands.care.end_runs", never)
    assert (await house.ask("/compact")).startswith(
        "The turn in progress did not end, so nothing was compacted."
    )
    assert len(seen) == 1
    assert stopping.end_runs is not never


async def test_a_compaction_is_taken_back(house: House) -> None:
    assert await house.ask("/compact undo") == "/compact undo is not available in this gateway yet."

    async def undo(session_key: str) -> CompactionReport:
        return CompactionReport(True, f"undone in {session_key}")

    house.give(undo_compaction=undo)
    for text in ("/compact undo", "/compact UNDO", "/undo compact", "/undo Compaction"):
        assert await house.ask(text) == f"undone in {KEY}"


async def test_a_reset_is_taken_back(house: House) -> None:
    assert await house.ask("/undo reset") == "There is no earlier conversation to go back to."
    await turn(house.store, "r1", "hello", at=NOON - 3_600_000)
    before = await present(house.store)
    await house.store.reset_session(KEY, "reset", session_id="second", now_ms=NOON)
    assert await house.ask("/undo reset") == "Back in the conversation that started 0 s ago."
    after = await present(house.store)
    assert after.entry.session_id == before.entry.session_id
    assert after.message_count == 2
    assert (await house.ask("/undo")) == "Usage: /undo <reset|compact>"
    assert (await house.ask("/undo everything")) == "Usage: /undo <reset|compact>"


async def test_a_reset_is_not_taken_back_under_a_running_turn(house: House) -> None:
    await turn(house.store, "r1", "hello")
    await house.store.reset_session(KEY, "reset", session_id="second", now_ms=NOON)
    await begin(house.store, "r2")
    assert await house.ask("/undo reset") == "A turn is running here. Send /stop first, then /undo reset."
    assert (await house.entry()).session_id == "second"
    await house.ask("/stop")
    assert (await house.ask("/undo reset")).startswith("Back in the conversation")


async def test_an_undo_that_was_overtaken_is_told(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    await turn(house.store, "r1", "hello")
    await house.store.reset_session(KEY, "reset", session_id="second", now_ms=NOON)
    handle: Any = house.kept.handle

    async def overtaken(*args: Any, **named: Any) -> Any:
        if named.get("undo_reset"):
            raise InvalidRequest("nothing to go back to")
        return await handle(*args, **named)

    monkeypatch.setattr(house.kept, "handle", overtaken)
    assert await house.ask("/undo reset") == "nothing to go back to"
    assert (await house.entry()).session_id == "second"


@pytest.mark.spec("CMD-11")
async def test_a_soft_reset_keeps_the_conversation_and_renews_the_prompt(house: House) -> None:
    await turn(house.store, "r1", "hello")
    before = await create(
        house.store, MAIN, system_prompt_report={"a": 1}, skills_snapshot={"b": 2}, model_override="m",
        provider_override="p", model_override_source="auto", aborted_last_run=True, thinking_level="low",
    )  # fmt: skip
    text = await house.ask("/reset soft")
    assert text == "The conversation stays. The next turn starts with a fresh prompt."
    entry = await house.entry()
    assert entry.session_id == before.entry.session_id
    assert (entry.system_sent, entry.system_prompt_report, entry.skills_snapshot) == (False, None, None)
    assert (entry.model_override, entry.provider_override, entry.model_override_source) == (None, None, None)
    assert (entry.aborted_last_run, entry.thinking_level) == (False, "low")
    chosen = replace(entry, model_override="m", provider_override="p", model_override_source="user")
    assert soften(chosen) == chosen


@pytest.mark.spec("CMD-11")
async def test_a_soft_reset_with_a_message_goes_on_with_it(house: House) -> None:
    await create(house.store, MAIN, system_prompt_report={"a": 1})
    await queue(house.store, "w1", "waits")
    outcome = await house.read(say("r1", "/reset soft now go on"))
    assert isinstance(outcome, PassOn)
    assert (outcome.body.content, outcome.directives) == ("now go on", (Asked("reset", "soft"),))
    assert (await house.entry()).system_prompt_report is None
    assert len(await house.store.queued(KEY)) == 1


@pytest.mark.spec("CMD-16")
async def test_a_side_question_leaves_no_trace_in_the_conversation(house: House) -> None:
    assert await house.ask("/btw") == "Usage: /btw <question>"
    assert await house.ask("/btw why") == "/btw is not available in this gateway yet."
    asked: list[tuple[str, str]] = []

    async def aside(session_key: str, question: str) -> str:
        asked.append((session_key, question))
        return "because"

    house.give(ask_aside=aside)
    await turn(house.store, "r1", "hello")
    before = await present(house.store)
    assert await house.ask("/side why is\nthat") == "because"
    assert asked == [(KEY, "why is\nthat")]
    after = await present(house.store)
    assert (after.last_seq, after.message_count, after.last_text) == (
        before.last_seq,
        before.message_count,
        before.last_text,
    )
    told = house.answers()[-1]
    assert (told.text, told.entries) == ("because", ())


# -- /export-session ---------------------------------------------------------------------------


@pytest.fixture
def workspace(house: House, database: SqliteDatabase, tmp_path: Path) -> Path:
    agents = {
        name: replace(agent, workspace=str(tmp_path / name)) for name, agent in house.settings.agents.items()
    }
    house.settings = settings_of(agents=agents)
    house.give(export=workspace_export(house.store, Export(database), lambda: house.settings))
    (tmp_path / "main").mkdir()
    return tmp_path / "main"


@pytest.mark.spec("CMD-11", "CMD-13")
async def test_a_session_is_exported_into_the_workspace(house: House, workspace: Path) -> None:
    assert await house.read(say("c1", "/export-session"), CommandCaller(authorised=True)) == Ignored()
    await turn(house.store, "r1", "hello")
    text = await house.ask("/export-session notes/a file.jsonl")
    target = workspace / "notes" / "a file.jsonl"
    assert text == f"Exported to {target}"
    lines = target.read_bytes().splitlines()
    assert len(lines) >= 3
    assert b'"hello"' in lines[1]
    again = await house.ask("/export-session notes/a file.jsonl")
    assert again == f"{target} is there already; name another file."
    row = await present(house.store)
    default = await house.ask("/export")
    assert default == f"Exported to {workspace}/exports/{row.entry.session_id}.jsonl"


@pytest.mark.spec("CMD-11")
@pytest.mark.parametrize("path", ["../out.jsonl", "/etc/out.jsonl", ".", "a/../../out", "link/out.jsonl"])
async def test_nothing_is_written_outside_the_workspace(house: House, workspace: Path, path: str) -> None:
    await turn(house.store, "r1", "hello")
    (workspace / "link").symlink_to(workspace.parent)
    text = await house.ask(f"/export-session {path}")
    assert text == f"The file must be inside the workspace {workspace}."
    assert [found.name for found in workspace.parent.iterdir()] == ["main"]


@pytest.mark.spec("CMD-11")
async def test_paths_that_cannot_be_written_are_told(house: House, workspace: Path) -> None:
    await turn(house.store, "r1", "hello")
    (workspace / "file").write_text("x")
    below = await house.ask("/export-session file/below.jsonl")
    assert below == f"{workspace}/file cannot be made: File exists."
    long = await house.ask(f"/export-session {'x' * 300}")
    assert long == f"{workspace}/{'x' * 300} cannot be written: File name too long."
    short = "The path must be a short file name inside the workspace."
    assert await house.ask("/export-session a\0b") == short
    assert await house.ask(f"/export-session {'x' * 1001}") == short
    write = workspace_export(house.store, Export(house.store._database), lambda: house.settings)
    with pytest.raises(InvalidRequest):
        await write("agent:main:nobody", None)
    house.give(export=None)
    assert await house.ask("/export-session") == "/export-session is not available in this gateway yet."
