"""The skills of a workspace: found, masked, read once, and never a reason to fail."""

from __future__ import annotations

import logging
import os
from pathlib import Path

import pytest

from openclaw.engine.skills import MAX_HEAD_BYTES, MAX_LOOKED_AT, WorkspaceSkills

SECRET = "correct-horse-battery-staple"


def put(workspace: Path, folder: str, text: str) -> Path:
    path = workspace / "skills" / folder / "SKILL.md"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


def skill(name: str, description: str) -> str:
    return f"---\nname: {name}\ndescription: {description}\n---\nBody"


async def lines(loader: WorkspaceSkills, workspace: Path) -> list[str]:
    return [line for _, line in (await loader.load(str(workspace))).shown]


@pytest.mark.spec("LOOP-2")
class TestFinding:
    async def test_folders_in_their_order(self, tmp_path: Path) -> None:
        put(tmp_path, "b", skill("brew", "Brew coffee"))
        put(tmp_path, "a", skill("tea", "Make tea"))
        (tmp_path / "skills" / "notes.md").write_text("no folder")
        (tmp_path / "skills" / "empty").mkdir()
        assert await lines(WorkspaceSkills(), tmp_path) == [
            "- tea: Make tea (skills/a/SKILL.md)",
            "- brew: Brew coffee (skills/b/SKILL.md)",
        ]

    async def test_without_any_there_is_no_list(self, tmp_path: Path) -> None:
        loader = WorkspaceSkills()
        for place in (tmp_path, tmp_path / "missing"):
            assert (await loader.load(str(place))).text == ""
        (tmp_path / "skills").write_text("a file")
        assert (await loader.load(str(tmp_path))).text == ""

    async def test_a_change_counts_and_what_is_the_same_is_the_same_value(self, tmp_path: Path) -> None:
        path, loader = put(tmp_path, "a", skill("tea", "Make tea")), WorkspaceSkills()
        first = await loader.load(str(tmp_path))
        assert await loader.load(str(tmp_path)) is first
        path.write_text(skill("tea", "Make better tea"))
        assert await lines(loader, tmp_path) == ["- tea: Make better tea (skills/a/SKILL.md)"]
        path.unlink()
        assert await lines(loader, tmp_path) == []

    async def test_secrets_and_odd_characters_do_not_reach_the_prompt(self, tmp_path: Path) -> None:
        put(tmp_path, "a", skill("te\x07a", f"Use {SECRET} here"))
        known: set[str] = set()
        loader = WorkspaceSkills(lambda: frozenset(known))
        assert SECRET in (await loader.load(str(tmp_path))).text
        known.add(SECRET)
        text = (await loader.load(str(tmp_path))).text
        assert SECRET not in text and "\x07" not in text
        assert text.splitlines()[-1].startswith("- tea: Use ")

    async def test_a_link_that_leads_out_is_not_followed(self, tmp_path: Path) -> None:
        outside = tmp_path / "outside"
        put(outside, "x", skill("spy", "Look outside"))
        workspace = tmp_path / "workspace"
        put(workspace, "a", skill("tea", "Make tea"))
        os.symlink(outside / "skills" / "x", workspace / "skills" / "out")
        os.symlink(workspace / "skills" / "a", workspace / "skills" / "in")
        os.symlink("a", workspace / "skills" / "near")
        assert await lines(WorkspaceSkills(), workspace) == [
            "- tea: Make tea (skills/a/SKILL.md)",
            "- tea: Make tea (skills/in/SKILL.md)",
            "- tea: Make tea (skills/near/SKILL.md)",
        ]

    async def test_hundreds_of_folders_and_endless_heads_cost_little(self, tmp_path: Path) -> None:
        for number in range(MAX_LOOKED_AT + 5):
            put(tmp_path, f"s{number:04d}", skill(f"n{number}", "x"))
        put(tmp_path, "a", "---\nname: tea\n" + "note: x\n" * MAX_HEAD_BYTES)
        made = await WorkspaceSkills().load(str(tmp_path))
        assert len(made.shown) == 100
        assert f"and {MAX_LOOKED_AT - 1 - 100} more" in made.text


@pytest.mark.spec("LOOP-2")
async def test_a_broken_head_is_left_out_and_noted_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    put(tmp_path, "good", skill("tea", "Make tea"))
    bad, loader = put(tmp_path, "bad", "no head at all"), WorkspaceSkills()
    with caplog.at_level(logging.WARNING, "openclaw.skills"):
        for _ in range(3):
            assert await lines(loader, tmp_path) == ["- tea: Make tea (skills/good/SKILL.md)"]
        put(tmp_path, "other", skill("more", "x"))
        await loader.load(str(tmp_path))
        (told,) = [record.getMessage() for record in caplog.records]
        assert told.startswith("the skill skills/bad/SKILL.md in ") and "three dashes" in told
        bad.write_text("---\nname: x\n---\n still broken")
        await loader.load(str(tmp_path))
    assert len(caplog.records) == 2 and "it has no description" in caplog.records[1].getMessage()
