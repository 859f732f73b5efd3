"""Session lists of a gateway, page by page, and the columns that tables show of them (OWN-1, OWN-3)."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final, Literal

from msgspec import Struct

from openclaw.cli.client import GatewayClient
from openclaw.cli.render import Column
from openclaw.domain.terminaltext import age, context_use
from openclaw.errors import InvalidRequest

Json = dict[str, Any]

PAGE: Final = 1000
# A list that changes while it is read is read again, but not for ever.
MAX_PASSES: Final = 3

# Keys that every row of `--json` has, in this order, null where the entry has none (CLI-3).
ROW_KEYS: Final = (
    "key",
    "agentId",
    "kind",
    "updatedAt",
    "ageMs",
    "sessionId",
    "model",
    "modelProvider",
    "inputTokens",
    "outputTokens",
    "totalTokens",
    "contextTokens",
    "thinkingLevel",
)
COLUMNS: Final = (
    Column("Kind"),
    Column("Key", fold=True),
    Column("Age", right=True),
    Column("Model", fold=True),
    Column("Tokens (ctx %)", right=True),
    Column("Flags", fold=True),
)


class Query(Struct, frozen=True):
    """What to list. `limit` None is everything."""

    agent_id: str | None = None
    active_minutes: int | None = None
    search: str | None = None
    limit: int | None = None
    titles: bool = False
    archived: bool | Literal["all"] = False

    def params(self, limit: int, offset: int) -> Json:
        wanted: Json = {
            "limit": limit,
            "offset": offset,
            "agentId": self.agent_id,
            "activeMinutes": self.active_minutes,
            "search": self.search,
            "includeDerivedTitles": self.titles or None,
            "includeGlobal": True,
            "includeUnknown": True,
            "archived": self.archived,
        }
        return {name: value for name, value in wanted.items() if value is not None}


class Listing(Struct, frozen=True):
    """Sessions, newest first, as the gateway gave them; `total` counts what the query matches."""

    path: str | None
    total: int
    now_ms: int
    rows: tuple[Json, ...]
    defaults: Json

    @property
    def has_more(self) -> bool:
        return len(self.rows) < self.total


def fetch_sessions(client: GatewayClient, query: Query, timeout_s: float) -> Listing:
    """As many sessions as the query allows, each once.

    A session that moves to the top between two pages would be missed; reading again finds it.
    """
    found: dict[str, Json] = {}
    for _ in range(MAX_PASSES):
        page = _read_pages(client, query, timeout_s, found)
        total = int(page.get("totalCount") or len(found))
        if len(found) >= (total if query.limit is None else min(query.limit, total)):
            break
    newest_first = sorted(found.values(), key=_recency, reverse=True)
    return Listing(
        path=page.get("path"),
        total=max(total, len(found)),
        now_ms=int(page.get("ts") or 0),
        rows=tuple(newest_first[: query.limit]),
        defaults=page.get("defaults") or {},
    )


def _read_pages(client: GatewayClient, query: Query, timeout_s: float, found: dict[str, Json]) -> Json:
    """Read from the top to the end or the limit into `found`; returns the last page."""
    offset = 0
    while True:
        limit = PAGE if query.limit is None else min(PAGE, query.limit - offset)
        page: Json = client.call("sessions.list", query.params(limit, offset), timeout_s)
        rows = page.get("sessions") or []
        found.update((str(row["key"]), row) for row in rows)
        offset += len(rows)
        is_last = not rows or not page.get("hasMore")
        if is_last or (query.limit is not None and offset >= query.limit):
            return page


def require_store(named: str | None, path: str | None) -> None:
    """Raise InvalidRequest unless `--store` is left out or names the store of the gateway (CLI-3, CLI-8)."""
    if named is not None and (path is None or Path(named).expanduser().absolute() != Path(path)):
        raise InvalidRequest(f"the sessions of every agent are in {path}, not in {named}; leave --store out")


def _recency(row: Json) -> tuple[int, str]:
    return int(row.get("updatedAt") or 0), str(row["key"])


def row_for_json(row: Json, now_ms: int) -> Json:
    """A row with the promised keys first and everything else that the gateway gave behind them."""
    shown = {name: row.get(name) for name in ROW_KEYS}
    shown["ageMs"] = age_ms(row, now_ms)
    return shown | {name: value for name, value in row.items() if name not in shown}


def age_ms(row: Json, now_ms: int) -> int | None:
    """By the gateway's clock, not by this machine's."""
    updated_at = row.get("updatedAt")
    return None if updated_at is None else max(now_ms - int(updated_at), 0)


def table_cells(rows: Sequence[Json], now_ms: int) -> list[list[str]]:
    """The cells for `COLUMNS`."""
    return [
        [
            str(row.get("kind") or "-"),
            str(row["key"]),
            age(age_ms(row, now_ms)),
            model_of(row),
            context_use(
                row.get("totalTokens"),
                row.get("contextTokens"),
                fresh=row.get("totalTokensFresh") is not False,
            ),
            " ".join(_flags(row)),
        ]
        for row in rows
    ]


def model_of(row: Json) -> str:
    """The model of a session's next turn, as `provider/model`."""
    provider, model = row.get("modelProvider"), row.get("model")
    return f"{provider}/{model}" if provider and model else str(model or "-")


def _flags(row: Json) -> list[str]:
    words = {
        "running": row.get("hasActiveRun"),
        "pinned": row.get("pinned"),
        "aborted": row.get("abortedLastRun"),
        "deny-send": row.get("sendPolicy") == "deny",
    }
    flags = [word for word, is_set in words.items() if is_set]
    for name, level in (
        ("think", "thinkingLevel"),
        ("verbose", "verboseLevel"),
        ("elevated", "elevatedLevel"),
    ):
        if row.get(level):
            flags.append(f"{name}:{row[level]}")
    return flags
