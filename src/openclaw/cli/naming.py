"""Which session a person means: a key, a label, a session id, or the beginning of one.

Asks the gateway and nobody else (OWN-1). What fits several sessions is refused with
the candidates, so that nothing is ever done to a session that was not meant.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from msgspec import Struct

from openclaw.cli.client import GatewayClient
from openclaw.cli.failures import RequestRefused
from openclaw.domain.terminaltext import one_line
from openclaw.errors import InvalidRequest

Json = dict[str, Any]

# A shorter beginning fits too much by accident.
MIN_ID_CHARS: Final = 4
SHOWN_CANDIDATES: Final = 10
MAX_NAME_CHARS: Final = 512
SEARCHED: Final = 1000


class NothingFits(InvalidRequest):
    """No session has this name."""


class Name(Struct, frozen=True):
    """What was typed, and what narrows it. `archived` includes sessions that are put away."""

    text: str
    agent_id: str | None = None
    archived: bool = True


def find_row(client: GatewayClient, name: Name, timeout_s: float) -> Json:
    """The row of the one session that `name` fits. Raises InvalidRequest for none and for several."""
    text = _checked(name.text)
    key = _resolve(client, {"key": text}, name, timeout_s) or _resolve(
        client, {"label": text}, name, timeout_s
    )
    key = key or _resolve(client, {"sessionId": text}, name, timeout_s)
    if key is None:
        return _find_abbreviated(client, name, text, timeout_s)
    row: Json | None = client.call("sessions.describe", {"key": key}, timeout_s)["session"]
    if row is None:
        raise _nothing_fits(text)
    return row


def _checked(text: str) -> str:
    stripped = text.strip()
    if not stripped:
        raise InvalidRequest("name a session by its key, its label or its session id, not by an empty text")
    if "\0" in stripped or len(stripped) > MAX_NAME_CHARS:
        raise InvalidRequest(
            f"a session is named by at most {MAX_NAME_CHARS} characters without NUL; see: openclaw sessions"
        )
    # Half a surrogate pair, as a shell passes on bytes that are no text, cannot be part of any name.
    return stripped.encode("utf-8", "replace").decode()


def _resolve(client: GatewayClient, way: Json, name: Name, timeout_s: float) -> str | None:
    """The key of an exact match. What cannot be a key at all may still be a label or the part of one."""
    params = way | {"allowMissing": True} | ({"agentId": name.agent_id} if name.agent_id else {})
    try:
        found = client.call("sessions.resolve", params, timeout_s)
    except RequestRefused as refusal:
        if refusal.wire_code != "INVALID_REQUEST" or (name.agent_id and "unknown agent" in refusal.message):
            raise
        return None
    return str(found["key"]) if found.get("ok") else None


def _find_abbreviated(client: GatewayClient, name: Name, text: str, timeout_s: float) -> Json:
    params: Json = {
        "search": text,
        "limit": SEARCHED,
        "includeGlobal": True,
        "includeUnknown": True,
        "archived": "all" if name.archived else False,
    }
    params |= {"agentId": name.agent_id} if name.agent_id else {}
    rows = client.call("sessions.list", params, timeout_s)["sessions"]
    fitting = [row for row in rows if fits(row, text)]
    if len(fitting) == 1:
        found: Json = fitting[0]
        return found
    if not fitting:
        raise _nothing_fits(text)
    raise InvalidRequest(_ambiguous(text, fitting))


def fits(row: Json, text: str) -> bool:
    """Whether `text` abbreviates this session: the end of its key, or the beginning of a name or id."""
    wanted = text.casefold()
    if str(row.get("key") or "").casefold().endswith(f":{wanted}"):
        return True
    if any(str(row.get(field) or "").casefold().startswith(wanted) for field in ("label", "displayName")):
        return True
    return len(text) >= MIN_ID_CHARS and str(row.get("sessionId") or "").casefold().startswith(wanted)


def _nothing_fits(text: str) -> NothingFits:
    return NothingFits(f"no session is called {one_line(text)[:80]!r}; see them with: openclaw sessions")


def _ambiguous(text: str, rows: Sequence[Json]) -> str:
    lines = [f"{one_line(text)[:80]!r} fits {len(rows)} sessions; name one of them by its key:"]
    for row in rows[:SHOWN_CANDIDATES]:
        label = row.get("label")
        called = f"  ({one_line(str(label))})" if label else ""
        lines.append(f"  {one_line(str(row['key']))}{called}")
    if len(rows) > SHOWN_CANDIDATES:
        lines.append(f"  … {len(rows) - SHOWN_CANDIDATES} more")
    return "\n".join(lines)
