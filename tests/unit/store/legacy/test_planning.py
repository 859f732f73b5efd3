"""The plan of an import: which file becomes which session."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from openclaw.domain.keys import DEFAULT_KEY_SETTINGS
from openclaw.store.legacy.planning import ImportPlan, LegacyStore, make_plan
from tests.unit.store.legacy.making import write_store


def plan_of(folder: Path, index: Any, *files: str) -> ImportPlan:
    path = write_store(folder, index, dict.fromkeys(files, b""))
    return make_plan(LegacyStore("main", path), DEFAULT_KEY_SETTINGS)


def entry(session_id: str, updated: int = 1, **more: Any) -> dict[str, Any]:
    return {"sessionId": session_id, "updatedAt": updated, **more}


def keys_and_files(plan: ImportPlan) -> dict[str, str | None]:
    return {one.seed.session_key: one.file_name for one in plan.sessions}


@pytest.mark.spec("DB-2", "KEY-12")
def test_keys_become_canonical_and_find_their_files(tmp_path: Path) -> None:
    plan = plan_of(tmp_path, {
        "main": entry("a"),
        "group:-100": entry("b", channel="telegram", chatType="group"),
        "agent:main:telegram:group:-5:topic:7": entry("c", lastThreadId=7),
        "agent:bob:whatsapp:dm:+49": entry("d", sessionFile="/x/other.jsonl", spawnedBy="main"),
        "global": entry("e"),
        "agent:main:cron:job:run:9": entry("f"),
    }, "a.jsonl", "b.jsonl", "c-topic-7.jsonl", "c.jsonl", "other.jsonl")  # fmt: skip
    assert keys_and_files(plan) == {
        "agent:main:main": "a.jsonl",
        "agent:main:telegram:group:-100": "b.jsonl",
        "agent:main:telegram:group:-5:topic:7": "c-topic-7.jsonl",
        "agent:bob:whatsapp:dm:+49": "other.jsonl",
        "global": None,
        "agent:main:cron:job:run:9": None,
        "agent:main:imported:c-2": "c.jsonl",
    }
    seeds = {one.seed.session_key: one.seed for one in plan.sessions}
    topic, run = seeds["agent:main:telegram:group:-5:topic:7"], seeds["agent:main:cron:job:run:9"]
    assert (topic.session_type, topic.kind, topic.channel, run.kind) == (
        "thread",
        "group",
        "telegram",
        "cron-run",
    )
    assert (seeds["global"].kind, seeds["global"].agent_id) == ("global", "main")
    bob = next(one for one in plan.sessions if one.seed.agent_id == "bob")
    assert bob.entry is not None and bob.entry.spawned_by == "agent:main:main" and plan.problems == ()


@pytest.mark.spec("DB-7")
def test_what_cannot_be_a_session_is_reported_and_its_transcript_kept(tmp_path: Path) -> None:
    plan = plan_of(tmp_path, {
        "k" * 10_000: entry("long"),
        "group:1": entry("nochannel"),
        "main": entry("old", 5, label="mine"),
        "agent:main:main": entry("new", 9, label="mine"),
        "agent:main:other": entry("other", 7, label="mine"),
        "agent:main:shared": entry("new", 8),
        "../../etc/passwd": entry("../../../etc/passwd", 2),
    }, "long.jsonl", "nochannel.jsonl", "old.jsonl", "new.jsonl", "lost.jsonl", "new.jsonl.bak")  # fmt: skip
    told = "\n".join(str(problem) for problem in plan.problems)
    assert len(plan.problems) == 6
    for part in (
        "longer than 512",
        "names no channel",
        "lies behind",
        "label 'mine' is taken",
        "starts empty",
    ):
        assert part in told
    by_id = {one.session_id: one for one in plan.sessions}
    assert by_id["old"].seed.session_key == by_id["new"].seed.session_key == "agent:main:main"
    assert by_id["new"].is_current and not by_id["old"].is_current
    assert [one.entry.label for one in (by_id["new"], by_id["other"], by_id["old"]) if one.entry] == [
        "mine", None, None,
    ]  # fmt: skip
    assert by_id["new-2"].file_name is None and by_id["../../../etc/passwd"].file_name is None
    orphans = {one.seed.session_key for one in plan.sessions if one.entry is None}
    assert orphans == {f"agent:main:imported:{name}" for name in ("long", "nochannel", "lost")}
    assert plan.other_files == ("new.jsonl.bak",)
    order = [one.entry.updated_at for one in plan.sessions if one.entry]
    assert order == sorted(order)


def test_transcripts_alone_and_names_that_are_no_text(tmp_path: Path) -> None:
    (tmp_path / "bad\x01name.jsonl").write_bytes(b"")
    (tmp_path / ("n" * 240 + ".jsonl")).write_bytes(b"")
    plan = plan_of(tmp_path, None, "b.jsonl")
    assert plan.index is None and len(plan.problems) == 1 and "rename it" in plan.problems[0].reason
    assert {one.file_name for one in plan.sessions} == {"b.jsonl", "n" * 240 + ".jsonl"}
    assert (
        make_plan(LegacyStore("main", tmp_path / "no" / "sessions.json"), DEFAULT_KEY_SETTINGS).sessions == ()
    )
