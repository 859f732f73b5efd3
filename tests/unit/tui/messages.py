"""Messages, histories and events as a gateway tells them."""

from __future__ import annotations

from typing import Any

Json = dict[str, Any]
KEY, WINDOW = "agent:main:desk", "w1"


def person(seq: int, text: str, run_id: str = "") -> Json:
    marks = {"id": f"e{seq}", "seq": seq} | ({"idempotencyKey": f"{run_id}:user"} if run_id else {})
    return {
        "role": "user",
        "content": [{"type": "text", "text": text}],
        "timestamp": 1000,
        "__openclaw": marks,
    }


def agent(seq: int, text: str, run_id: str = "r", calls: tuple[str, ...] = ()) -> Json:
    content: list[Json] = [{"type": "text", "text": text}] if text else []
    content += [{"type": "toolCall", "id": call, "name": "look", "arguments": {"at": call}} for call in calls]
    marks = {"id": f"e{seq}", "seq": seq, "runId": run_id}
    return {"role": "assistant", "content": content, "timestamp": 1000, "__openclaw": marks}


def result(seq: int, call: str, text: str, *, failed: bool = False) -> Json:
    message = {"role": "toolResult", "toolCallId": call, "toolName": "look", "isError": failed}
    return message | {
        "content": [{"type": "text", "text": text}],
        "__openclaw": {"id": f"e{seq}", "seq": seq},
    }


def history(*messages: Json, session_id: str | None = WINDOW, **more: Any) -> Json:
    waiting: Json = {"items": [], "total": 0}
    told = {"sessionKey": KEY, "sessionId": session_id, "messages": list(messages), "pendingInputs": waiting}
    return told | {"deltaCursor": f"c{len(messages)}"} | more


def pending(*waiting: tuple[str, str]) -> Json:
    items = [{"runId": run_id, "message": {"role": "user", "content": text}} for run_id, text in waiting]
    return {"items": items, "total": len(items)}


def stored(message: Json, session_id: str = WINDOW) -> tuple[str, Json]:
    return "session.message", {"sessionKey": KEY, "sessionId": session_id, "message": message}


def lifecycle(phase: str, run_id: str = "r", **data: Any) -> tuple[str, Json]:
    told = {"sessionKey": KEY, "runId": run_id, "stream": "lifecycle", "ts": 5000}
    return "agent", told | {"data": {"phase": phase, **data}}


def streamed(text: str, run_id: str = "r") -> tuple[str, Json]:
    return "agent", {"sessionKey": KEY, "runId": run_id, "stream": "assistant", "data": {"text": text}}


def chat(state: str, run_id: str = "r", text: str = "", **more: Any) -> tuple[str, Json]:
    message = {"message": {"role": "assistant", "content": text}} if text else {}
    return "chat", {"sessionKey": KEY, "runId": run_id, "state": state, **message, **more}
