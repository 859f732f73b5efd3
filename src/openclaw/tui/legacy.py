"""The last sessions that an earlier terminal UI remembered: `tui/last-session.json`, read by `doctor` (DB-3).

That file knows a place only by a hash of the session scope, the agent and the gateway's URL, so an
entry is understood when these are known; one of another gateway is left out. The file is only read,
and what was remembered since wins.
"""

from __future__ import annotations

from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path
from typing import Final

import msgspec
from msgspec import Struct

from openclaw.errors import InvalidRequest
from openclaw.tui.memory import ClientMemory

SCOPES: Final = ("per-sender", "global")
MAX_BYTES: Final = 1 << 20
_HASH_CHARS: Final = 32


class Known(Struct, frozen=True):
    """Gateways as this machine names them, and agents: whose entries can be understood."""

    gateways: tuple[str, ...]
    agent_ids: tuple[str, ...]


class LastSessionsImported(Struct, frozen=True, rename="camel"):
    """What became of the entries of one file."""

    path: str
    found: int
    imported: int
    already: int
    problems: tuple[str, ...]


class _Entry(Struct, rename="camel"):
    session_key: str
    updated_at: int = 0


def last_sessions_file(state_dir: Path) -> Path:
    return state_dir / "tui" / "last-session.json"


def import_last_sessions(path: Path, memory: ClientMemory, known: Known) -> LastSessionsImported:
    """Remember what the file says, where this machine remembers nothing newer. Raises InvalidRequest."""
    entries = _read(path)
    places = {_hash_of(scope, agent, gateway): (gateway, agent) for scope, agent, gateway in _places(known)}
    problems: list[str] = []
    imported = already = 0
    for name, raw in entries.items():
        place = places.get(name)
        try:
            entry = msgspec.convert(raw, _Entry)
        except msgspec.ValidationError as error:
            problems.append(f"{name[:12]}: {error}")
            continue
        key = entry.session_key.strip()
        if place is None:
            problems.append(
                f"{name[:12]} ({key[:60]}): it is of a gateway or an agent that is not known here"
            )
        elif not key or key == "unknown" or key.lower().endswith(":heartbeat"):
            problems.append(f"{name[:12]}: {key[:60]!r} is no session that a person opens")
        elif memory.last_session(*place) is not None:
            already += 1
        else:
            memory.remember_session(*place, key, entry.updated_at)
            imported += 1
    return LastSessionsImported(str(path), len(entries), imported, already, tuple(problems))


def _read(path: Path) -> dict[str, object]:
    try:
        with path.open("rb") as file:
            data = file.read(MAX_BYTES + 1)
    except FileNotFoundError:
        raise InvalidRequest(f"there are no last sessions to import: {path} does not exist") from None
    except OSError as error:
        raise InvalidRequest(f"cannot read {path}: {error.strerror or error}") from error
    try:
        if len(data) > MAX_BYTES:
            raise msgspec.DecodeError("too large")
        return msgspec.json.decode(data, type=dict[str, object])
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        raise InvalidRequest(f"{path}: this is no list of last sessions; nothing was imported") from None


def _places(known: Known) -> Iterator[tuple[str, str, str]]:
    for scope in SCOPES:
        for agent_id in known.agent_ids:
            for gateway in known.gateways:
                yield scope, agent_id.lower(), gateway


def _hash_of(scope: str, agent_id: str, gateway: str) -> str:
    return sha256(f"{scope}\n{agent_id}\n{gateway}".encode()).hexdigest()[:_HASH_CHARS]
