"""Reading sessions from the command line: one of them, what was said in it, what was said anywhere."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from openclaw.cli.sessions_search import highlight
from openclaw.cli.sessions_show import lines_of, why_this_model
from openclaw.protocol.scopes import READ
from tests.unit.cli.conftest import Command
from tests.unit.cli.fake_gateway import NOW_MS, FakeGateway, Json, running, session

KEY = "agent:main:main"


def said(seq: int, role: str = "user", text: str | None = None, **fields: Any) -> Json:
    content: Any = text if text is not None else f"message {seq}"
    if role != "user":
        content = [{"type": "text", "text": content}] if content else []
    return {
        "role": role,
        "content": content,
        "timestamp": NOW_MS,
        "__openclaw": {"id": f"e{seq}", "seq": seq},
        **fields,
    }


def history_of(messages: list[Json]) -> Callable[[Json], Json]:
    def answer(params: Json) -> Json:
        newest_first = messages[::-1][params.get("offset", 0) :]
        page = newest_first[: params["limit"]][::-1]
        more = len(newest_first) > params["limit"]
        return {
            "sessionKey": KEY,
            "sessionId": "sid",
            "messages": page,
            "hasMore": more,
            "totalMessages": len(messages),
            **({"nextOffset": params.get("offset", 0) + params["limit"]} if more else {}),
        }

    return answer


@pytest.fixture
def gateway(point_at: Callable[[FakeGateway], Path]) -> Iterator[FakeGateway]:
    row = session(KEY, 60_000, snapshotAt=NOW_MS, label="Notes")
    answers = {
        "sessions.resolve": lambda _params: {"ok": True, "key": KEY},
        "sessions.describe": lambda _params: {"session": row},
        "chat.history": history_of([said(seq) for seq in range(1, 451)]),
    }
    with running(FakeGateway(answers)) as fake:
        point_at(fake)
        yield fake


# -- history -----------------------------------------------------------------------------------


def test_the_last_messages_are_shown_oldest_first_and_the_rest_is_mentioned(
    gateway: FakeGateway, command: Command
) -> None:
    outcome = command("sessions", "history", "main", "--limit", "2")
    assert outcome.code == 0
    lines = outcome.out.splitlines()
    assert lines[0].startswith("you  ") and lines[0].endswith("#449")
    assert lines[1:3] == ["message 449", ""] and lines[4] == "message 450"
    assert outcome.err == "There is more: add --before 449, or --limit all.\n"
    assert "\x1b" not in outcome.out
    assert gateway.connects[0].scopes == (READ,)


def test_pages_are_put_together(gateway: FakeGateway, command: Command) -> None:
    whole = command("sessions", "history", "main", "--limit", "all", "--json").json()
    assert [message["__openclaw"]["seq"] for message in whole["messages"]] == list(range(1, 451))
    assert (whole["hasMore"], whole["totalMessages"], whole["sessionId"]) == (False, 450, "sid")
    before = command("sessions", "history", "main", "--before", "11", "--limit", "3", "--json").json()
    assert [message["__openclaw"]["seq"] for message in before["messages"]] == [8, 9, 10]
    assert before["hasMore"] is True
    assert command("sessions", "history", "main", "--before", "1").out == "Nothing was said here yet.\n"


def test_tool_calls_are_folded_and_text_is_safe(gateway: FakeGateway, command: Command) -> None:
    call = {"type": "toolCall", "id": "c", "name": "web_fetch", "arguments": {"url": "https://x" + "y" * 300}}
    asks = said(2, "assistant", "")
    asks["content"] = [call]
    gateway.answers["chat.history"] = history_of(
        [
            said(1, text="clear\x1b[2Jscreen"),
            asks,
            said(3, "toolResult", "long " * 100, toolName="web_fetch", isError=False),
            said(4, "toolResult", "no route", toolName="web_fetch", isError=True),
            said(5, "assistant", "I could not."),
            said(6, "system", "Reset"),
        ]
    )
    out = command("sessions", "history", "main").out
    assert "clear�[2Jscreen" in out and "long" not in out
    folded = next(line for line in out.splitlines() if line.startswith("· web_fetch url=https://xyyy"))
    assert len(folded) < 130 and folded.endswith("…")
    assert "  web_fetch failed: no route\n" in out and "— Reset —\n" in out


@pytest.mark.parametrize("option", [("--limit", "0"), ("--limit", "-1"), ("--before", "x"), ("--limit", "")])
def test_a_number_that_is_none_is_refused(
    gateway: FakeGateway, command: Command, option: tuple[str, str]
) -> None:
    outcome = command("sessions", "history", "main", *option)
    assert outcome.code == 1 and option[0] in outcome.err and gateway.calls == []


# -- show --------------------------------------------------------------------------------------


def test_everything_about_a_session_is_shown(gateway: FakeGateway, command: Command) -> None:
    row = session(
        KEY, 60_000, snapshotAt=NOW_MS, label="Notes", isMain=True, status="done",
        createdAt=NOW_MS - 3_600_000, runtimeMs=2_340, lastRunId="run-9", estimatedCostUsd=0.01234,
        compactionCount=2, thinkingLevel="high",
        deliveryContext={"channel": "telegram", "to": "4711", "accountId": "bot", "threadId": "9"},
        origin={"provider": "telegram", "label": "Ada"}, usageFamilySessionIds=["w1", "w2", f"id-of-{KEY}"],
        childSessions=["agent:main:subagent:a", "agent:main:subagent:b"], cacheRead=12_000, cacheWrite=300,
        lastMessagePreview="see you", archived=True,
    )  # fmt: skip
    gateway.answers["sessions.describe"] = lambda _params: {"session": row}
    outcome = command("sessions", "show", "main")
    assert (outcome.code, outcome.err) == (0, "")
    lines = [line.partition(":") for line in outcome.out.splitlines() if not line.startswith(" ")]
    shown = {label: value.strip() for label, _, value in lines}
    assert shown["key"] == KEY and shown["label"] == "Notes"
    assert shown["agent"] == "main, the agent's main session" and shown["state"] == "done; archived"
    assert shown["model"] == "offline/rules (the agent's default)" and shown["settings"] == "thinking high"
    assert shown["context"] == "6.4k/64k (10%)"
    assert shown["tokens"] == "6k in, 400 out, 12k read from and 300 to the cache"
    assert (shown["cost"], shown["compactions"]) == ("$0.0123", "2")
    assert shown["replies to"] == "telegram:4711, account bot, thread 9"
    assert shown["came from"] == "telegram, Ada" and shown["last turn"] == "2.3 s, run-9"
    assert shown["earlier"] == "w2" and "            w1\n" in outcome.out
    assert shown["helpers"] == "agent:main:subagent:a" and shown["last words"] == "see you"
    assert shown["created"].endswith("(60m ago)") or shown["created"].endswith("(1h ago)")
    whole = command("sessions", "show", "main", "--json").json()
    assert list(whole["session"])[:3] == ["key", "agentId", "kind"] and whole["session"]["ageMs"] == 60_000
    assert whole["session"]["childSessions"] == row["childSessions"] and whole["reset"] is None


def test_why_a_model_is_used() -> None:
    row = session(KEY)
    assert why_this_model(row) == "the agent's default"
    chosen = row | {"providerOverride": "offline", "modelOverride": "rules"}
    assert why_this_model(chosen) == "chosen for this session"
    assert why_this_model(chosen | {"modelOverrideSource": "auto"}) == "chosen by a fallback"
    gone = row | {"providerOverride": "acme", "modelOverride": "big"}
    assert why_this_model(gone) == "acme/big was chosen for this session, and is not to be had"


def test_a_long_past_is_cut_short_and_a_running_turn_is_named() -> None:
    row = session(
        KEY, usageFamilySessionIds=[f"w{n}" for n in range(14)], hasActiveRun=True, activeRunIds=["r"]
    )
    lines = list(lines_of(row, {"answer": "It resets at 4.", "decidedBy": "session.reset"}))
    assert ("earlier", "14 conversations, the newest of them:") in lines
    assert ("", "w13") in lines and ("", "w4") in lines and ("", "w3") not in lines
    assert ("state", "running: r") in lines
    assert lines[lines.index(("next reset", "It resets at 4.")) + 1] == ("", "because of session.reset")


# -- search ------------------------------------------------------------------------------------


@pytest.mark.spec("SRCH-2")
def test_places_where_something_was_said(gateway: FakeGateway, command: Command) -> None:
    hit = {"key": KEY, "agentId": "main", "messageId": "e1", "role": "user", "timestamp": NOW_MS}
    hits = [hit | {"snippet": "the march\ninvoice"}, hit | {"snippet": "paid", "role": "assistant"}]
    gateway.answers["sessions.search"] = lambda _params: {"results": hits, "indexing": True}
    outcome = command("sessions", "search", "invoice", "march", "--agent", "main", "--limit", "5")
    assert outcome.code == 0
    assert outcome.out.splitlines()[1::2][:2] == ["  the march invoice", "  paid"]
    assert outcome.out.endswith("2 places\n") and "still being indexed" in outcome.err
    assert gateway.called("sessions.search") == [{"query": "invoice march", "limit": 5, "agentId": "main"}]
    body = command("sessions", "search", "paid", "--json").json()
    assert (body["ok"], body["query"], body["count"], body["results"]) == (True, "paid", 2, hits)
    gateway.answers["sessions.search"] = lambda _params: {"results": []}
    assert command("sessions", "search", "nothing").out == "Nobody said that.\n"


def test_a_search_without_words_is_refused(gateway: FakeGateway, command: Command) -> None:
    assert command("sessions", "search").code == 2
    empty = command("sessions", "search", " ", "")
    assert empty.code == 1 and "WORDS" in empty.err
    assert command("sessions", "search", "x", "--limit", "all").code == 1
    assert gateway.calls == []


def test_the_words_of_the_query_are_marked() -> None:
    assert highlight("The March invoice", "march") == "The \x1b[1mMarch\x1b[0m invoice"
    assert highlight("a.b axb", "a.b") == "\x1b[1ma.b\x1b[0m axb"
    assert highlight("same", "   ") == "same"
