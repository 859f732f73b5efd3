"""The session tools over a real store, without a gateway around them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec

from openclaw.app.sessiontools import ToolGround, session_tools
from openclaw.app.settings import SettingsSource
from openclaw.config.credentials import secrets
from openclaw.config.load import LoadedConfig, load_or_raise
from openclaw.domain.searchtext import index_text, searchable_text
from openclaw.domain.transcript import TextBlock
from openclaw.engine.events import EngineEvent
from openclaw.engine.ports import ToolContext, ToolOutcome
from openclaw.engine.tools.registry import ToolRegistry
from openclaw.engine.tools.sessions.powers import Powers
from openclaw.engine.tools.sessions.reach import Reach
from openclaw.engine.tools.sessions.rows import RowView
from openclaw.store.database import Database
from openclaw.store.recall import Recall
from openclaw.store.records import EntryDraft, SessionRow, SessionSeed
from openclaw.store.spawns import Spawns
from openclaw.store.store import Store

NOW = 1_794_744_000_000  # 2026-11-15 12:00 UTC
OWN = "agent:main:work"
TOKEN = "gateway-token-0123456789"
Json = dict[str, Any]


class Room:
    """Sessions are made with `add` and `say`; a tool is asked with `ask`, as the session `OWN`."""

    def __init__(self, database: Database, home: Path, **config: Any) -> None:
        self.database = database
        self.store = Store(database)
        self.recall = Recall(database)
        self.events: list[EngineEvent] = []
        self.loaded = read_config(home, config)
        self.source = SettingsSource(self.loaded.config, self.env(home))
        self.home = home
        self.ground = ToolGround(
            lambda: self.loaded, self.env(home), self.source, self.secrets, self.events.append
        )
        self.reach = Reach(self.recall, lambda: self.source.current().keys, self.source.visibility)
        self.view = RowView(self.source.current, self.ground.transcript_path)
        acting = Powers(self.store, Spawns(database), self.source.current, self.source.check_model)
        self.registry = ToolRegistry(session_tools(database, self.ground, acting), self.secrets)

    def secrets(self) -> frozenset[str]:
        return secrets(self.loaded.config, self.loaded.referenced_secrets)

    @staticmethod
    def env(home: Path) -> dict[str, str]:
        return {"HOME": str(home), "OPENCLAW_STATE_DIR": str(home / "state"), "TZ": "UTC"}

    def configure(self, **config: Any) -> None:
        self.loaded = read_config(self.home, config)
        self.source.replace(self.loaded.config)

    # -- making --------------------------------------------------------------------------------

    async def add(
        self, key: str, *, kind: str = "other", at: int = NOW, session_id: str | None = None, **fields: Any
    ) -> SessionRow:
        parts = key.split(":")
        agent_id = parts[1] if parts[0] == "agent" else "main"
        seed = SessionSeed(key, agent_id, kind)
        row, _ = await self.store.edit_session(
            seed,
            lambda entry: msgspec.structs.replace(entry, **fields),
            session_id=session_id or f"id-of-{key}",
            now_ms=at,
        )
        return row

    async def say(self, key: str, *messages: Json, at: int = NOW) -> None:
        await self.store.append(key, tuple(draft(message) for message in messages), now_ms=at)

    # -- asking --------------------------------------------------------------------------------

    def context(self, key: str = OWN, *, sandboxed: bool = False) -> ToolContext:
        agent_id = key.split(":")[1] if key.startswith("agent:") else "main"
        return ToolContext(key, "sid", agent_id, "run", "call", NOW, sandboxed=sandboxed)

    async def outcome(
        self, tool: str, arguments: Json, as_key: str = OWN, sandboxed: bool = False
    ) -> ToolOutcome:
        context = self.context(as_key, sandboxed=sandboxed)
        return await self.registry.call(tool, arguments, context, self.registry.names())

    async def ask(self, tool: str, as_key: str = OWN, sandboxed: bool = False, **arguments: Any) -> Json:
        """The answer that the model reads."""
        answered: Json = json.loads(text_of(await self.outcome(tool, arguments, as_key, sandboxed)))
        return answered


def read_config(home: Path, config: Json) -> LoadedConfig:
    path = home / "state" / "openclaw.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    base: Json = {
        "gateway": {"auth": {"token": TOKEN}},
        "agents": {"list": [{"id": "main", "default": True}, {"id": "bob", "name": "Bob"}]},
        "models": {"providers": {"fake": {
            "baseUrl": "http://127.0.0.1:9/v1", "api": "openai-completions",
            "models": [{"id": "one", "contextWindow": 32000}, {"id": "two"}],
        }}},
    }  # fmt: skip
    base["agents"]["defaults"] = {"model": {"primary": "fake/one"}}
    path.write_text(json.dumps({**base, **config}), encoding="utf-8")
    return load_or_raise(path, Room.env(home))


def text_of(outcome: ToolOutcome) -> str:
    (block,) = outcome.content
    assert isinstance(block, TextBlock)
    return block.text


def user(text: str, **more: Any) -> Json:
    return {"role": "user", "content": text, "timestamp": NOW, **more}


def assistant(*blocks: str | Json, **more: Any) -> Json:
    content = [{"type": "text", "text": block} if isinstance(block, str) else block for block in blocks]
    return {"role": "assistant", "content": content, "timestamp": NOW, **more}


def tool_result(text: str, name: str = "read") -> Json:
    content = [{"type": "text", "text": text}]
    return {
        "role": "toolResult", "toolCallId": "c", "toolName": name, "content": content, "timestamp": NOW,
    }  # fmt: skip


def draft(message: Json) -> EntryDraft:
    content = message["content"]
    text = content if isinstance(content, str) else "\n".join(b["text"] for b in content if "text" in b)
    return EntryDraft(
        "message",
        msgspec.json.encode(message),
        message["role"],
        text=text,
        words=index_text(searchable_text(message)),
    )


def keys_of(answer: Json) -> Sequence[str]:
    return [row["key"] for row in answer["sessions"]]
