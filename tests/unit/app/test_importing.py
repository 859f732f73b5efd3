"""Whose sessions lie in a folder: by the names of folders, or by what a person says."""

from __future__ import annotations

from pathlib import Path

import pytest

from openclaw.app.importing import stores_in
from openclaw.errors import InvalidRequest


def sessions(folder: Path, *, index: bool = True) -> Path:
    folder.mkdir(parents=True)
    if index:
        (folder / "sessions.json").write_text("{}")
    else:
        (folder / "a.jsonl").write_text("")
    return folder


def found(folder: Path, agent_id: str | None = None) -> list[tuple[str, str]]:
    stores = stores_in(folder, agent_id, "main")
    return [(store.agent_id, str(store.index_path.relative_to(folder))) for store in stores]


@pytest.mark.spec("DB-6")
def test_a_state_directory_holds_a_store_for_each_agent(tmp_path: Path) -> None:
    sessions(tmp_path / "agents" / "Work" / "sessions")
    sessions(tmp_path / "agents" / "main" / "sessions", index=False)
    (tmp_path / "agents" / "empty" / "sessions").mkdir(parents=True)
    sessions(tmp_path / "agents" / "not an agent" / "sessions")
    (tmp_path / "agents" / "note.txt").write_text("")
    both = [("work", "agents/Work/sessions/sessions.json"), ("main", "agents/main/sessions/sessions.json")]
    assert found(tmp_path) == both
    assert found(tmp_path, " WORK ") == both[:1]
    assert [owner for owner, _ in found(tmp_path / "agents")] == ["work", "main"]
    with pytest.raises(InvalidRequest, match="of agent 'bob'"):
        found(tmp_path, "bob")


@pytest.mark.spec("DB-6")
def test_one_folder_belongs_to_the_agent_that_its_place_or_a_person_names(tmp_path: Path) -> None:
    inside = sessions(tmp_path / "agents" / "work" / "sessions")
    assert found(inside) == [("work", "sessions.json")]
    assert found(inside, "other") == [("other", "sessions.json")]
    assert found(inside.parent) == [("work", "sessions/sessions.json")]
    assert found(inside.parent, "other") == [("other", "sessions/sessions.json")]
    loose = sessions(tmp_path / "somewhere")
    assert found(loose) == [("main", "sessions.json")]
    odd = sessions(tmp_path / "no agent's" / "sessions").parent
    assert found(odd) == [("main", "sessions/sessions.json")]


@pytest.mark.spec("DB-6")
def test_a_folder_without_sessions_is_refused(tmp_path: Path) -> None:
    for folder, agent_id, word in (
        (tmp_path, None, "no sessions of an earlier layout"),
        (tmp_path / "nowhere", None, "not a folder"),
        (tmp_path, "no such id!", "cannot be an agent id"),
    ):
        with pytest.raises(InvalidRequest, match=word):
            stores_in(folder, agent_id, "main")
