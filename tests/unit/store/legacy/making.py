"""Makes folders of the founding layout: an index, transcripts, and what goes wrong with both."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

Json = dict[str, Any]
STARTED_MS = 1_767_225_600_000
STARTED = "2026-01-01T00:00:00.000Z"


def dump(value: Any) -> str:
    """JSON as JavaScript writes it."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def at(second: int) -> str:
    return f"2026-01-01T{second // 3600 % 24:02d}:{second // 60 % 60:02d}:{second % 60:02d}.000Z"


def header(session_id: str, **more: Any) -> Json:
    return {"type": "session", "version": 3, "id": session_id, "timestamp": STARTED, "cwd": "/w", **more}


def user(number: int, text: str, parent: str | None = None, **more: Any) -> Json:
    message = {"role": "user", "content": text, "timestamp": STARTED_MS + number * 1000, **more}
    return record(number, parent, "message", message=message)


def assistant(number: int, text: str, parent: str | None = None, **more: Any) -> Json:
    message = {
        "role": "assistant", "content": [{"type": "text", "text": text}], "api": "openai", "provider": "p",
        "model": "m", "usage": {
            "input": 1, "output": 2, "cacheRead": 0, "cacheWrite": 0, "totalTokens": 3,
            "cost": {"input": 0, "output": 0, "cacheRead": 0, "cacheWrite": 0, "total": 0},
        },
        "stopReason": "stop", "timestamp": STARTED_MS + number * 1000, **more,
    }  # fmt: skip
    return record(number, parent, "message", message=message)


def record(number: int, parent: str | None, kind: str, **fields: Any) -> Json:
    return {"type": kind, "id": f"{number:08x}", "parentId": parent, "timestamp": at(number), **fields}


def lines(*records: Json | str | bytes) -> bytes:
    """Records as lines; a text stands as it is."""
    parts = []
    for one in records:
        if isinstance(one, bytes):
            parts.append(one)
        else:
            parts.append((one if isinstance(one, str) else dump(one)).encode() + b"\n")
    return b"".join(parts)


def conversation(session_id: str, messages: int, seed: int = 0) -> bytes:
    """A transcript of version 3 in which people and a model take turns."""
    chance = random.Random(f"{session_id}:{seed}")
    parent: str | None = None
    made: list[Json] = [header(session_id)]
    for number in range(1, messages + 1):
        text = " ".join(chance.choice(_WORDS) for _ in range(chance.randrange(3, 30)))
        one = user(number, text, parent) if number % 2 else assistant(number, text, parent)
        made.append(one)
        parent = one["id"]
    return lines(*made)


_WORDS = (
    "the", "quick", "brown", "fox", "naïve", "café", "東京", '"quotes"', "\\back", "two\nlines", "🙂", "over",
)  # fmt: skip


def write_store(folder: Path, index: Json | str | None, transcripts: dict[str, bytes]) -> Path:
    """A folder with an index and transcripts; returns the path of the index."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "sessions.json"
    if index is not None:
        path.write_text(index if isinstance(index, str) else json.dumps(index, indent=2), encoding="utf-8")
    for name, content in transcripts.items():
        (folder / name).write_bytes(content)
    return path


def generated(folder: Path, sessions: int, messages: int) -> Path:
    """A folder of so many sessions with so many messages in all, a few of them damaged or nameless."""
    index: Json = {}
    transcripts = {}
    for number in range(sessions):
        session_id = f"00000000-0000-4000-8000-{number:012d}"
        count = messages // sessions + (number < messages % sessions)
        content = conversation(session_id, count)
        if number % 10 == 3:
            content = content.replace(b"\n", b"\nnot json\n", 3)
        if number % 10 == 7:
            content += b'{"type":"message","id":"cut'
        transcripts[f"{session_id}.jsonl"] = content
        if number % 25 != 24:
            key = "agent:main:main" if number == 0 else f"agent:main:telegram:group:-100{number}"
            index[key] = {
                "sessionId": session_id,
                "updatedAt": STARTED_MS + number * 1000.0,
                "chatType": "group",
            }
    return write_store(folder, index, transcripts)
