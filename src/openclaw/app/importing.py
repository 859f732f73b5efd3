"""Sessions of an earlier layout that lie in a folder somewhere: which agents' they are.

The import itself is that of `doctor`; this room only looks at the names of folders.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

from openclaw.domain.keys import valid_agent_id
from openclaw.errors import InvalidRequest
from openclaw.store.legacy.planning import LegacyStore

INDEX_NAME: Final = "sessions.json"


def stores_in(folder: Path, agent_id: str | None, default_agent: str) -> tuple[LegacyStore, ...]:
    """The stores below `folder`: a state directory, its `agents`, one agent's folder, or its `sessions`.

    `agent_id` chooses one of several agents; for a single folder whose name tells no agent it is
    the agent to import for, else the default one is. Raises InvalidRequest when nothing is there.
    """
    if not folder.is_dir():
        raise InvalidRequest(f"{folder} is not a folder; name the one that holds sessions.json or agents/")
    wanted = agent_id.strip().lower() if agent_id else None
    if wanted is not None and not valid_agent_id(wanted):
        raise InvalidRequest(f"{agent_id!r} cannot be an agent id")
    if _holds_sessions(folder):
        return (LegacyStore(wanted or _agent_above(folder) or default_agent, folder / INDEX_NAME),)
    if _holds_sessions(folder / "sessions"):
        owner = wanted or _agent_id(folder.resolve().name) or default_agent
        return (LegacyStore(owner, folder / "sessions" / INDEX_NAME),)
    found = _stores_of_agents(folder / "agents") or _stores_of_agents(folder)
    chosen = tuple(store for store in found if wanted in (None, store.agent_id))
    if not chosen:
        whose = f" of agent {wanted!r}" if found else ""
        raise InvalidRequest(f"no sessions{whose} of an earlier layout are in {folder}")
    return chosen


def _stores_of_agents(folder: Path) -> tuple[LegacyStore, ...]:
    if not folder.is_dir():
        return ()
    owners = ((_agent_id(path.name), path / "sessions") for path in sorted(folder.iterdir()))
    return tuple(
        LegacyStore(owner, sessions / INDEX_NAME)
        for owner, sessions in owners
        if owner and _holds_sessions(sessions)
    )


def _holds_sessions(folder: Path) -> bool:
    if not folder.is_dir():
        return False
    return (folder / INDEX_NAME).is_file() or next(folder.glob("*.jsonl"), None) is not None


def _agent_above(folder: Path) -> str | None:
    """The agent that `…/agents/<agentId>/sessions` names."""
    whole = folder.resolve()
    is_layout = whole.name == "sessions" and whole.parent.parent.name == "agents"
    return _agent_id(whole.parent.name) if is_layout else None


def _agent_id(name: str) -> str | None:
    return name.lower() if valid_agent_id(name.lower()) else None
