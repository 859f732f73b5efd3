"""What the offline model does besides looking: files, helpers and other sessions, by a few fixed phrases.

Reads phrases and answers of tools, decides the next call, and knows nothing else.
Every phrase is anchored at the beginning of a short message, so that ordinary talk
is never mistaken for an order.
"""

from __future__ import annotations

import re
from typing import Any

import msgspec
from msgspec import Struct

from openclaw.domain.doortext import clean_text

_MOST_CHARS = 2000
_FLAGS = re.IGNORECASE | re.DOTALL
_READ = re.compile(r"read (?:the file )?(?P<path>\S{1,200})\s*", _FLAGS)
_WRITE = re.compile(r"write (?:a file |to )?(?P<path>[^\s:]{1,200})(?: with|:) (?P<content>.+)", _FLAGS)
_ASK = re.compile(r"ask (?P<session>[^\s:]{1,200}(?::[^\s:]{1,100}){0,6}): (?P<message>.+)", _FLAGS)
_SPAWN = re.compile(r"(?:spawn|start) (?:a )?helper(?: to|:) (?P<task>.+)", _FLAGS)
_TASK_HEAD = "[Subagent Task]"
_ENDED_HEAD = "Your task has ended"
_FINISHED_HEAD = "[Sub-agent finished"

HELP_LINES = """- "write notes.txt: hello" and "read notes.txt": I call write and read in the workspace
- "spawn helper: count to three": I start a helper with sessions_spawn and wait for it with sessions_yield
- "ask main: hello": I send a message to another session with sessions_send"""


class Order(Struct, frozen=True):
    """A tool to call."""

    tool: str
    arguments: dict[str, Any]


def read_order(said: str) -> Order | None:
    """The order that a message is, if it is one."""
    text = said.strip()
    if len(text) > _MOST_CHARS:
        return None
    if found := _WRITE.fullmatch(text):
        return Order("write", {"path": found["path"], "content": found["content"]})
    if found := _READ.fullmatch(text):
        return Order("read", {"path": found["path"]})
    if found := _ASK.fullmatch(text):
        return Order("sessions_send", {"sessionKey": found["session"], "message": found["message"]})
    if found := _SPAWN.fullmatch(text):
        return Order("sessions_spawn", {"task": found["task"]})
    return None


def follow_up(tool: str, text: str) -> Order | None:
    """What to call after a result: whoever starts a helper waits for it."""
    if tool != "sessions_spawn":
        return None
    try:
        accepted = msgspec.json.decode(text, type=dict[str, Any]).get("status") == "accepted"
    except msgspec.MsgspecError:
        return None
    return Order("sessions_yield", {"message": "waiting for the helper"}) if accepted else None


def answer_as_helper(said: str) -> str | None:
    """What a helper says to its task and at its end, and what its requester says when it hears of it."""
    if _TASK_HEAD in said:
        task = clean_text(said.split(_TASK_HEAD, 1)[1])[:200].strip()
        return f"I am a helper without a real model, so all I can do with the task is repeat it: {task}"
    if _ENDED_HEAD in said:
        return "Result: the task was received and repeated; a real model would have done it"
    if _FINISHED_HEAD in said:
        lines = [line for line in said.splitlines() if line.startswith(("Status:", "Result:"))]
        return "A helper has finished.\n" + clean_text("\n".join(lines))[:1000]
    return None
