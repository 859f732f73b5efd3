"""A transcript for people: Markdown and HTML that show the talk, and neither secrets nor markup."""

from __future__ import annotations

from typing import Any

import pytest

from openclaw.domain import transcript_text as view
from tests.unit.store.legacy.making import assistant, header, lines, record, user

SECRET = "sk-ant-REDACTED"


def said(message: Any) -> Any:
    return record(1, None, "message", message=message)


def test_a_piece_gives_its_records_and_nothing_else() -> None:
    piece = lines("garbage", header("s"), "", user(1, "a")) + b"{cut"
    assert [one["type"] for one in view.objects_of(piece)] == ["session", "message"]
    assert list(view.objects_of(view.line_of({"a": 1}))) == [{"a": 1}]


@pytest.mark.spec("TRX-11")
def test_secrets_are_masked_wherever_they_stand() -> None:
    known = "a-known-secret-value-of-the-config"
    value: Any = {
        "text": f"use {SECRET} and {known}", "list": [f"x {known}", 5, None],
        "password": "hunter2", "apiKey": "", "n": {"token": 7},
    }  # fmt: skip
    masked = view.redacted(value, frozenset({known}))
    assert SECRET not in str(masked) and known not in str(masked) and "hunter2" not in str(masked)
    assert masked["list"][1:] == [5, None] and masked["n"] == {"token": 7} and masked["apiKey"] == ""
    assert value["password"] == "hunter2"


def test_markdown_shows_who_said_what_and_when() -> None:
    assert view.markdown_head("agent:main:main", "s1") == "# agent:main:main\n\nSession `s1`\n"
    assert view.markdown_of(user(1, "hello *you*")) == (
        "\n## User · 2026-01-01T00:00:01.000Z\n\nhello *you*\n"
    )
    call = assistant(2, "I look", errorMessage="it broke")
    call["message"]["content"] += [
        {"type": "thinking", "thinking": "private"},
        {"type": "toolCall", "id": "c", "name": "exec", "arguments": {"cmd": "echo ```` x"}},
        "odd",
        {"type": "text", "text": "  "},
    ]
    shown = view.markdown_of(call)
    assert "## Assistant" in shown and "private" not in shown and "Error: it broke" in shown
    assert '\n`````\nexec {"cmd":"echo ```` x"}\n`````\n' in shown
    assert "\n```\nx\n```" in "\n" + view._fenced("x")


@pytest.mark.parametrize(
    ("one", "expected"),
    [
        (record(1, None, "compaction", summary="short"), "Summary"),
        (record(1, None, "custom_message", content="noted"), "Note"),
        (said({"role": "toolResult", "toolName": "ls", "content": "out"}), "Tool result: ls"),
        (said({"role": "other", "content": "x"}), "other"),
        (
            said({"role": "user", "content": [{"type": "image", "mimeType": "image/png"}]}),
            "[image, image/png]",
        ),
    ],
)
def test_other_records_have_their_own_heading(one: Any, expected: str) -> None:
    assert expected in view.markdown_of(one) and expected in view.html_of(one)


@pytest.mark.parametrize(
    "one",
    [
        header("s"),
        record(1, None, "custom", customType="c", data=1),
        record(1, None, "custom_message", content="hidden", display=False),
        record(1, None, "message", message={"role": "user", "content": None}),
        record(1, None, "message", message="text"),
    ],
)
def test_what_says_nothing_to_people_is_not_shown(one: Any) -> None:
    assert view.markdown_of(one) == "" == view.html_of(one)


def test_a_page_runs_nothing_that_somebody_wrote() -> None:
    attack = "<script>alert(1)</script><img src=x onerror=alert(1)>\"'"
    page = view.html_head(attack, attack) + view.html_of(user(1, attack)) + view.HTML_END
    assert "<script" not in page and "<img" not in page and page.count("&lt;script&gt;") == 4
    assert "default-src 'none'" in page and page.startswith("<!doctype html>")
    timeless = {**user(1, "x"), "timestamp": "?"}
    assert "<time>" not in view.html_of(timeless) and "<time>2026" in view.html_of(user(1, "x"))
    assert view.markdown_of(timeless).startswith("\n## User\n")
