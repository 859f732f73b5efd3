"""What a running conversation shows: each word once, in order, whatever was missed."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import Struct

from openclaw.cli.chat_view import ChatView, Ended, run_ids_of
from openclaw.cli.conversation import Piece

Json = dict[str, Any]
KEY = "agent:main:main"


def message(role: str, text: str, seq: int, run_id: str = "r1", **fields: Any) -> Json:
    marks: Json = {"id": f"e{seq}", "seq": seq}
    marks |= {"idempotencyKey": f"{run_id}:user"} if role == "user" else {"runId": run_id}
    content = text if role == "user" else [{"type": "text", "text": text}]
    return {"role": role, "content": content, "__openclaw": marks, **fields}


def stored(said: Json, session_id: str = "s1") -> tuple[str, Json]:
    return "session.message", {"sessionKey": KEY, "sessionId": session_id, "message": said}


def streamed(text: str, run_id: str = "r1") -> tuple[str, Json]:
    return "agent", {"sessionKey": KEY, "runId": run_id, "stream": "assistant", "data": {"text": text}}


def lifecycle(phase: str, run_id: str = "r1") -> tuple[str, Json]:
    return "agent", {"sessionKey": KEY, "runId": run_id, "stream": "lifecycle", "data": {"phase": phase}}


def ended(
    state: str = "final", text: str | None = None, run_id: str = "r1", **fields: Any
) -> tuple[str, Json]:
    payload: Json = {"sessionKey": KEY, "runId": run_id, "state": state, **fields}
    if text is not None:
        payload["message"] = {"role": "assistant", "content": [{"type": "text", "text": text}]}
    return "chat", payload


def printed(pieces: Iterable[Piece]) -> str:
    """What a screen without colours would hold."""
    out = ""
    for piece in pieces:
        if piece.style != "plain" and out and not out.endswith("\n"):
            out += "\n"
        nothing = not piece.text and not piece.open and (not out or out.endswith("\n"))
        out += "" if nothing else piece.text + ("" if piece.open else "\n")
    return out


def shown(view: ChatView, *events: tuple[str, Json]) -> str:
    return printed([piece for name, payload in events for piece in view.event(name, payload)])


@pytest.mark.spec("RPC-14")
def test_words_appear_as_they_come_and_the_committed_message_completes_them() -> None:
    view = ChatView(KEY)
    view.own_runs.add("r1")
    out = shown(
        view,
        stored(message("user", "hello", 1)),
        lifecycle("start"),
        lifecycle("model"),
        streamed("Hel"),
        streamed("Hello, "),
        stored(message("assistant", "Hello, you.", 2)),
        streamed("Hello, you."),
        ended("final", "Hello, you."),
    )
    assert out == "Hello, you.\n"
    assert view.ended == {"r1": Ended("ok")}


@pytest.mark.spec("RPC-14")
def test_tool_calls_are_one_line_and_only_their_failure_is_told() -> None:
    view = ChatView(KEY)
    call = {"type": "toolCall", "id": "c", "name": "exec", "arguments": {"command": "ls\n-la", "n": 2}}
    said = message("assistant", "Let me look.", 2)
    said["content"].append(call)
    fine = message("toolResult", "a\nb", 3, toolName="exec", isError=False)
    bad = message("toolResult", "no such\nfile", 4, toolName="exec", isError=True)
    out = shown(view, lifecycle("model"), streamed("Let me"), stored(said), stored(fine), stored(bad))
    assert out == "Let me look.\n· exec command=ls -la n=2\n  exec failed: no such file\n"


def test_words_of_others_are_shown_and_words_typed_here_are_not() -> None:
    view = ChatView(KEY)
    view.own_runs.add("mine")
    assert shown(view, stored(message("user", "typed here", 1, "mine"))) == ""
    assert shown(view, stored(message("user", "from the phone", 2, "theirs"))) == "> from the phone\n"
    assert shown(view, stored(message("system", "Reset", 3))) == "— Reset —\n"
    elsewhere = ("session.message", {"sessionKey": "agent:main:other", "message": message("user", "x", 9)})
    assert shown(view, elsewhere) == ""


def test_an_answer_of_a_command_is_shown_once_whichever_word_comes_first() -> None:
    first_final, first_message = ChatView(KEY), ChatView(KEY)
    final, entry = ended("final", "All is well."), stored(message("assistant", "All is well.", 2))
    assert shown(first_final, final, entry) == "All is well.\n"
    assert shown(first_message, entry, final) == "All is well.\n"


def test_a_notice_before_the_reply_is_told_although_no_transcript_holds_it() -> None:
    view = ChatView(KEY)
    out = shown(
        view, stored(message("assistant", "Good morning.", 2)), ended("final", "A new day.\n\nGood morning.")
    )
    assert out == "Good morning.\nA new day.\n"


def test_what_a_reply_used_is_told_below_it() -> None:
    view = ChatView(KEY)
    final = "A new day.\n\nGood morning.\n\n[usage] 5 tokens in, 2 out"
    out = shown(view, stored(message("assistant", "Good morning.", 2)), ended("final", final))
    assert out == "Good morning.\nA new day.\n[usage] 5 tokens in, 2 out\n"


@pytest.mark.parametrize(
    ("event", "how", "line"),
    [
        (ended("aborted", "Half", stopReason="rpc"), Ended("aborted"), "(stopped)\n"),
        (
            ended("error", errorMessage="no\x1bcredit"),
            Ended("error", "no�credit"),
            "The turn failed: no�credit\n",
        ),
        (ended("error"), Ended("error", "no reason given"), "The turn failed: no reason given\n"),
    ],
)
def test_an_end_that_is_not_well_is_told(event: tuple[str, Json], how: Ended, line: str) -> None:
    view = ChatView(KEY)
    assert shown(view, lifecycle("model"), streamed("Half"), event) == "Half\n" + line
    assert view.ended == {"r1": how}
    assert shown(view, streamed("Half and more")) == "", "what comes after the end repeats"


def test_a_step_that_begins_anew_gets_a_line_of_its_own() -> None:
    view = ChatView(KEY)
    out = shown(
        view,
        lifecycle("model"),
        streamed("I think"),
        lifecycle("model"),
        streamed("No: yes"),
        streamed("Other words"),
    )
    assert out == "I think\nNo: yes\nOther words"


def test_a_reset_begins_another_transcript_and_its_undo_returns_to_the_first() -> None:
    view = ChatView(KEY)
    assert shown(view, stored(message("assistant", "old", 7))) == "old\n"
    assert shown(view, stored(message("assistant", "new", 2, "r2"), "s2")) == "new\n"
    assert (
        shown(view, stored(message("assistant", "old", 7)), stored(message("assistant", "on", 8, "r3")))
        == "on\n"
    )


def test_a_turn_that_ended_unheard_is_settled_once() -> None:
    view = ChatView(KEY)
    assert printed(view.end_quietly("r1", Ended("error", "boom"))) == "The turn failed: boom\n"
    assert view.end_quietly("r1", Ended("ok")) == [] and view.ended["r1"].how == "error"
    assert view.end_quietly("r2", Ended("ok")) == [] and view.ended["r2"] == Ended("ok")


def test_a_gap_that_is_longer_than_the_history_is_mentioned() -> None:
    view = ChatView(KEY)
    view.begin({"sessionId": "s1", "messages": [message("user", "x", 5)]})
    late = {"sessionId": "s1", "messages": [message("assistant", "late", 90)], "hasMore": True}
    assert printed(view.catch_up(late)) == "… more was said in between: openclaw sessions history\nlate\n"
    assert view.catch_up(late) == []


def test_runs_that_a_history_knows() -> None:
    history: Json = {"inFlightRun": {"runId": "a"}, "pendingInputs": {"items": [{"runId": "b"}], "total": 1}}
    assert run_ids_of(history) == {"a", "b"}
    assert run_ids_of({"messages": []}) == set()


# -- any cut -----------------------------------------------------------------------------------


class Moment(Struct, frozen=True):
    """An event, and the history that a client would get right after it."""

    event: tuple[str, Json]
    history: Json


words = st.text(alphabet="ab \n", min_size=1, max_size=8).map(str.strip).filter(bool)


@st.composite
def conversations(draw: st.DrawFn) -> tuple[list[Moment], str]:
    """Turns of one or more steps as a gateway tells them, and what a screen must hold in the end."""
    moments: list[Moment] = []
    transcript: list[Json] = []
    texts: list[str] = []

    def happen(event: tuple[str, Json], running: Json | None) -> None:
        history: Json = {"sessionId": "s1", "messages": list(transcript)}
        moments.append(Moment(event, history | ({"inFlightRun": running} if running else {})))

    for turn in range(draw(st.integers(1, 3))):
        run_id = f"r{turn}"
        happen(lifecycle("start", run_id), {"runId": run_id, "text": ""})
        steps = draw(st.lists(words, min_size=1, max_size=3))
        for step in steps:
            happen(lifecycle("model", run_id), {"runId": run_id, "text": ""})
            cuts = sorted(draw(st.lists(st.integers(1, len(step)), max_size=3)))
            for cut in cuts:
                happen(streamed(step[:cut], run_id), {"runId": run_id, "text": step[:cut]})
            transcript.append(message("assistant", step, len(transcript) + 1, run_id))
            texts.append(step)
            # The last of the stream is often told after the message that holds it.
            happen(stored(transcript[-1]), {"runId": run_id, "text": step})
            happen(streamed(step, run_id), {"runId": run_id, "text": step})
        happen(ended("final", steps[-1], run_id), None)
    return moments, "".join(f"{text}\n" for text in texts)


@given(conversations(), st.data())
@settings(max_examples=300, deadline=None)
def test_whatever_is_cut_off_each_word_is_shown_once_and_in_order(
    told: tuple[list[Moment], str], data: st.DataObject
) -> None:
    moments, expected = told
    view = ChatView(KEY)
    view.begin({"sessionId": "s1", "messages": []})
    pieces: list[Piece] = []
    at = 0
    while at < len(moments):
        if data.draw(st.integers(0, 3)) == 0:
            # The connection is lost here, and comes back after some of what follows was missed.
            at = data.draw(st.integers(at, len(moments) - 1))
            pieces += view.catch_up(moments[at].history)
            # What was under way when the history was read may be told again.
            again = data.draw(st.integers(0, 2))
            for moment in moments[max(at - again + 1, 0) : at + 1]:
                if moment.event[0] == "session.message":
                    pieces += view.event(*moment.event)
        else:
            pieces += view.event(*moments[at].event)
        at += 1
    assert printed(pieces) == expected
