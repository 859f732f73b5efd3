"""What the model is given besides the conversation: sizes, states, and the three views."""

from __future__ import annotations

import msgspec
import pytest

from openclaw.domain.promptreport import (
    EXPLANATION,
    InjectedFile,
    PartSize,
    PromptReport,
    detail_text,
    json_text,
    list_text,
    report_from_stored,
    tokens_of,
)

REPORT = PromptReport(
    system_chars=4000,
    files=(
        InjectedFile("AGENTS.md", 1000, 1000),
        InjectedFile("SOUL.md", 20_000, 12_000),
        InjectedFile("USER.md", 0, 0, missing=True),
    ),
    tools=(PartSize("small", 10), PartSize("large", 900), PartSize("also", 10)),
    skills=(PartSize("writing", 120), PartSize("reading", 240)),
    session_tokens=5000,
    context_tokens=20_000,
)


@pytest.mark.spec("CMD-4")
@pytest.mark.parametrize(("chars", "tokens"), [(0, 0), (1, 1), (4, 1), (5, 2), (8, 2), (4001, 1001)])
def test_tokens_are_a_quarter_of_the_characters_rounded_up(chars: int, tokens: int) -> None:
    assert tokens_of(chars) == tokens


@pytest.mark.spec("CMD-3", "CMD-4")
def test_the_list_names_each_file_with_its_state() -> None:
    assert list_text(REPORT).splitlines() == [
        "Context (measured by the last run)",
        "System prompt: 4,000 chars (~1,000 tokens)",
        "Workspace files: 3",
        "- AGENTS.md: OK, raw 1,000 chars (~250 tokens), injected 1,000 chars (~250 tokens)",
        "- SOUL.md: TRUNCATED, raw 20,000 chars (~5,000 tokens), injected 12,000 chars (~3,000 tokens)",
        "- USER.md: MISSING",
        "Skills: 2, 360 chars (~90 tokens)",
        "Tool schemas: 3, 920 chars (~230 tokens)",
        "Session: 5,000 of 20,000 tokens (25 %)",
    ]


@pytest.mark.spec("CMD-3", "CMD-4")
def test_the_details_are_sorted_by_size() -> None:
    lines = detail_text(REPORT).splitlines()
    assert lines[:9] == list_text(REPORT).splitlines()
    assert lines[9:] == [
        "",
        "Tools, the largest first:",
        "- large: 900 chars (~225 tokens)",
        "- also: 10 chars (~3 tokens)",
        "- small: 10 chars (~3 tokens)",
        "",
        "Skills, the largest first:",
        "- reading: 240 chars (~60 tokens)",
        "- writing: 120 chars (~30 tokens)",
    ]


@pytest.mark.spec("CMD-4")
def test_an_estimate_says_so_and_nothing_is_invented() -> None:
    bare = PromptReport(system_chars=7, source="estimate")
    assert detail_text(bare).splitlines() == [
        "Context (estimated; no run has measured it yet)",
        "System prompt: 7 chars (~2 tokens)",
        "Workspace files: none",
        "Skills: none, 0 chars (~0 tokens)",
        "Tool schemas: none, 0 chars (~0 tokens)",
        "Session: tokens not known yet",
    ]
    known = msgspec.structs.replace(bare, session_tokens=1234)
    assert "Session: 1,234 tokens" in list_text(known).splitlines()
    assert "Session: 1,234 tokens" in list_text(msgspec.structs.replace(known, context_tokens=0)).splitlines()


@pytest.mark.spec("CMD-4")
def test_long_lists_are_cut() -> None:
    files = tuple(InjectedFile(f"{number}.md", 1, 1) for number in range(31))
    tools = tuple(PartSize(f"tool{number:02}", 100 - number) for number in range(32))
    report = PromptReport(system_chars=1, files=files, tools=tools)
    text = detail_text(report)
    assert "- 29.md: OK" in text and "- 30.md" not in text
    assert "- tool29" in text and "- tool30" not in text
    assert [line for line in text.splitlines() if "more" in line] == ["- and 1 more", "- and 2 more"]
    fits = PromptReport(system_chars=1, files=files[:30], tools=tools[:30])
    assert "more" not in detail_text(fits)


@pytest.mark.spec("CMD-4")
def test_the_machine_view_has_every_number() -> None:
    shown = msgspec.json.decode(json_text(REPORT))
    assert shown["systemChars"] == 4000
    assert shown["source"] == "run"
    assert shown["files"][1] == {
        "name": "SOUL.md",
        "rawChars": 20_000,
        "injectedChars": 12_000,
        "missing": False,
        "state": "TRUNCATED",
    }
    assert shown["tools"][1] == {"name": "large", "chars": 900}
    assert "\n  " in json_text(REPORT)


@pytest.mark.spec("CMD-4", "ENT-11")
def test_a_stored_report_is_read_or_counts_as_none() -> None:
    stored = msgspec.to_builtins(REPORT)
    assert report_from_stored(stored) == REPORT
    assert report_from_stored(None) is None
    assert report_from_stored({}) is None
    assert report_from_stored(stored | {"source": "guess"}) is None
    assert report_from_stored(stored | {"later": 1}) == REPORT


@pytest.mark.spec("CMD-4")
def test_the_explanation_names_the_views() -> None:
    for view in ("list", "detail", "json"):
        assert f"/context {view} - " in EXPLANATION
