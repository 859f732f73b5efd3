"""Event payloads as recorded clients read them, and who receives what."""

from __future__ import annotations

from typing import Any, ClassVar

import msgspec
import pytest

from openclaw.protocol import events
from openclaw.protocol.events import EVENTS, TOOL_EVENTS, capability_of, may_receive, with_flat_row
from openclaw.protocol.results import TerminalReply
from openclaw.protocol.scopes import ADMIN, APPROVALS, READ, WRITE

RUN: dict[str, Any] = {"run_id": "r1", "session_key": "agent:main:main", "agent_id": "main", "seq": 12}
AGENT: dict[str, Any] = RUN | {"ts": 1000, "is_heartbeat": False}
RUN_WIRE = {"runId": "r1", "sessionKey": "agent:main:main", "agentId": "main", "seq": 12}
AGENT_WIRE = RUN_WIRE | {"ts": 1000, "isHeartbeat": False}
MESSAGE = {"role": "assistant", "content": [{"type": "text", "text": "Tool"}], "timestamp": 5}


def wire(payload: object) -> Any:
    return msgspec.json.decode(msgspec.json.encode(payload))


@pytest.mark.spec("RPC-14")
class TestChat:
    @pytest.mark.parametrize(
        ("payload", "shown"),
        [
            (
                events.ChatStatus(**RUN, phase="preparing_context"),
                {"state": "status", "phase": "preparing_context"},
            ),
            (
                events.ChatDelta(**RUN, delta_text="Tool", message=MESSAGE),
                {"state": "delta", "deltaText": "Tool", "message": MESSAGE},
            ),
            (
                events.ChatDelta(**RUN, delta_text="", message=MESSAGE, replace=True),
                {"state": "delta", "deltaText": "", "message": MESSAGE, "replace": True},
            ),
            (
                events.ChatFinal(**RUN, message=MESSAGE, stop_reason="stop"),
                {"state": "final", "message": MESSAGE, "stopReason": "stop"},
            ),
            (events.ChatFinal(**RUN), {"state": "final"}),
            (
                events.ChatAborted(**RUN, stop_reason="rpc", message=MESSAGE),
                {"state": "aborted", "stopReason": "rpc", "message": MESSAGE},
            ),
            (
                events.ChatFailed(**RUN, error_message="boom", error_kind="timeout", error_detail={"a": 1}),
                {"state": "error", "errorMessage": "boom", "errorKind": "timeout", "errorDetail": {"a": 1}},
            ),
        ],
    )
    def test_states(self, payload: events.ChatEvent, shown: dict[str, Any]) -> None:
        assert wire(payload) == RUN_WIRE | shown
        assert msgspec.json.decode(msgspec.json.encode(payload), type=events.ChatEvent) == payload

    def test_a_run_without_an_agent(self) -> None:
        anonymous = events.ChatFinal(run_id="inject-m1", session_key="k", seq=0)
        assert wire(anonymous) == {"runId": "inject-m1", "sessionKey": "k", "seq": 0, "state": "final"}


@pytest.mark.spec("RPC-14")
class TestAgent:
    REPLY = TerminalReply(disposition="visible", text="hi")

    @pytest.mark.parametrize(
        ("data", "shown"),
        [
            (events.RunStarted(started_at=1), {"phase": "start", "startedAt": 1}),
            (
                events.ModelChosen(provider=None, model=None),
                {"phase": "model", "provider": None, "model": None},
            ),
            (
                events.RunFinishing(ended_at=2, aborted=False, stop_reason="stop"),
                {"phase": "finishing", "endedAt": 2, "aborted": False, "stopReason": "stop"},
            ),
            (
                events.RunEnded(
                    started_at=1, ended_at=2, stop_reason="stop", aborted=False, terminal_reply=REPLY
                ),
                {
                    "phase": "end",
                    "startedAt": 1,
                    "endedAt": 2,
                    "stopReason": "stop",
                    "aborted": False,
                    "terminalReply": {"disposition": "visible", "text": "hi"},
                },
            ),
            (
                events.RunFailed(error="x", ended_at=2, aborted=True),
                {"phase": "error", "error": "x", "endedAt": 2, "aborted": True},
            ),
            (
                events.FallbackStep(
                    fallback_step_from_model="a/b",
                    fallback_step_from_failure_reason="server_error",
                    fallback_step_chain_position=1,
                    fallback_step_final_outcome="chain_exhausted",
                ),
                {
                    "phase": "fallback_step",
                    "fallbackStepFromModel": "a/b",
                    "fallbackStepFromFailureReason": "server_error",
                    "fallbackStepChainPosition": 1,
                    "fallbackStepFinalOutcome": "chain_exhausted",
                },
            ),
        ],
    )
    def test_lifecycle(self, data: Any, shown: dict[str, Any]) -> None:
        payload = events.AgentLifecycle(**AGENT, data=data, session_id="s1")
        assert wire(payload) == AGENT_WIRE | {"stream": "lifecycle", "sessionId": "s1", "data": shown}
        assert msgspec.json.decode(msgspec.json.encode(payload), type=events.AgentEvent) == payload

    def test_the_other_streams(self) -> None:
        text = events.AssistantText(text="ab", delta="b", item_id="i:1")
        call = events.ToolStarted(name="ls", tool_call_id="c", args={"path": "."})
        done = events.ToolFinished(name="ls", tool_call_id="c", is_error=False, result={"content": []})
        item = events.ItemProgress(
            item_id="tool:c",
            phase="start",
            title="Ls",
            status="running",
            kind="tool",
            name="ls",
            tool_call_id="c",
        )
        status = events.RunStatus(phase="retrying", attempt=1, delay_ms=500)
        shown = {
            payload["stream"]: payload["data"]
            for payload in map(
                wire,
                (
                    events.AgentAssistant(**AGENT, data=text),
                    events.AgentTool(**AGENT, data=done),
                    events.AgentItem(**AGENT, data=item),
                    events.AgentUsage(**AGENT, data=events.TokenUse(output_tokens=14)),
                    events.AgentRunStatus(**AGENT, data=status),
                ),
            )
        }
        assert shown["assistant"] == {"text": "ab", "delta": "b", "itemId": "i:1"}
        assert shown["tool"] == {
            "phase": "result",
            "name": "ls",
            "toolCallId": "c",
            "isError": False,
            "result": {"content": []},
        }
        assert (shown["item"]["itemId"], shown["item"]["kind"], shown["item"]["phase"]) == (
            "tool:c",
            "tool",
            "start",
        )
        assert shown["usage"] == {"outputTokens": 14}
        assert shown["run_status"] == {"phase": "retrying", "attempt": 1, "delayMs": 500}
        started = wire(events.AgentTool(**AGENT, data=call))["data"]
        assert started == {"phase": "start", "name": "ls", "toolCallId": "c", "args": {"path": "."}}


@pytest.mark.spec("RPC-10")
class TestSessionEvents:
    ROW: ClassVar[dict[str, Any]] = {
        "key": "agent:main:main",
        "sessionId": "s1",
        "agentId": "main",
        "label": "L",
        "status": "done",
    }

    def test_row_fields_stand_beside_the_message(self) -> None:
        event = events.SessionMessage(
            session_key="agent:main:main",
            agent_id="main",
            session_id="s1",
            message=MESSAGE,
            message_id="m1",
            message_seq=2,
            session=self.ROW,
        )
        payload = with_flat_row(event)
        assert payload["session"] == self.ROW
        assert (payload["sessionKey"], payload["messageId"], payload["messageSeq"]) == (
            "agent:main:main",
            "m1",
            2,
        )
        assert (payload["label"], payload["status"], payload["archivedAt"]) == ("L", "done", None)
        assert "key" not in payload and "reason" not in payload

    def test_changes_carry_null_for_what_was_cleared(self) -> None:
        row = {"key": "k", "sessionId": "s1"}
        reason = with_flat_row(
            events.SessionsChanged(session_key="k", agent_id="main", ts=7, session=row, reason="patch")
        )
        assert (reason["reason"], reason["ts"], reason["sessionId"]) == ("patch", 7, "s1")
        assert [reason[name] for name in ("label", "lastRunId", "endedAt", "thinkingLevel")] == [None] * 4
        phase = with_flat_row(
            events.SessionsChanged(
                session_key="k", agent_id="main", ts=7, session=row, phase="end", run_id="r1"
            )
        )
        assert (phase["phase"], phase["runId"]) == ("end", "r1")
        assert "reason" not in phase

    def test_a_deleted_session_has_no_row(self) -> None:
        gone = events.SessionsChanged(session_key="k", agent_id="main", ts=7, session=None, reason="delete")
        assert with_flat_row(gone) == {
            "sessionKey": "k",
            "agentId": "main",
            "ts": 7,
            "session": None,
            "reason": "delete",
        }


@pytest.mark.spec("RPC-1")
def test_gateway_events() -> None:
    assert wire(events.Tick(ts=1)) == {"ts": 1}
    assert wire(events.Shutdown(reason=events.STOPPING)) == {"reason": "gateway stopping"}
    assert wire(events.Shutdown(reason="x", restart_expected_ms=5)) == {"reason": "x", "restartExpectedMs": 5}
    assert wire(events.PresenceChanged(presence=[{"host": "vm"}])) == {"presence": [{"host": "vm"}]}


@pytest.mark.spec("RPC-3")
class TestAudience:
    WITH_SESSION_CONTENT = (
        "chat",
        "agent",
        "session.message",
        "sessions.changed",
        "session.operation",
        "health",
    )
    FOR_ALL = ("connect.challenge", "presence", "tick", "shutdown")

    def test_these_events_exist(self) -> None:
        """Who gets which of them, all of them, is in `test_scope_matrix`."""
        assert EVENTS.keys() >= set(self.WITH_SESSION_CONTENT + self.FOR_ALL)

    def test_session_content_needs_read(self) -> None:
        for event in self.WITH_SESSION_CONTENT:
            assert [may_receive(event, (scope,)) for scope in (READ, WRITE, ADMIN)] == [True] * 3
            assert not any(may_receive(event, scopes) for scopes in ((), (APPROVALS,), ("operator.zzz",)))

    def test_the_rest_reaches_everybody_and_the_unknown_nobody(self) -> None:
        assert all(may_receive(event, ()) for event in self.FOR_ALL)
        assert not may_receive("no.such.event", (ADMIN,))

    def test_tool_details_need_the_capability(self) -> None:
        tool = events.AgentTool(**AGENT, data=events.ToolStarted(name="ls", tool_call_id="c", args={}))
        assert capability_of(tool) == TOOL_EVENTS
        assert capability_of(events.AgentUsage(**AGENT, data=events.TokenUse(output_tokens=1))) is None
        assert may_receive("agent", (READ,), ("tool-events",), TOOL_EVENTS)
        assert not may_receive("agent", (READ,), ("approvals",), TOOL_EVENTS)
        assert not may_receive("agent", (), ("tool-events",), TOOL_EVENTS)

    def test_subscriptions(self) -> None:
        assert EVENTS["session.message"].subscriptions == ("messages", "sessions")
        assert EVENTS["sessions.changed"].subscriptions == ("sessions",)
        assert all(not spec.subscriptions for name, spec in EVENTS.items() if not name.startswith("session"))
