"""sessions.preview, get, usage, search: looking at conversations without being in them (RPC-10).

Operators see every session; who they are was asked at the door.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Sequence
from datetime import date, datetime, time, timedelta
from zoneinfo import ZoneInfo

import msgspec

from openclaw.domain.display import text_of_content
from openclaw.domain.doortext import clean_text, cut
from openclaw.domain.sanitise import sanitise_assistant_text
from openclaw.domain.searchtext import Phrase, query_terms, snippet
from openclaw.domain.titles import preview as preview_text
from openclaw.errors import InvalidRequest
from openclaw.gateway.services import Caller, GatewayServices, Json, meant_key
from openclaw.gateway.sessionview import messages_for_client, off_the_loop
from openclaw.protocol import params_sessions as params
from openclaw.protocol import results_sessions as results
from openclaw.store.pages import PageAsked
from openclaw.store.records import SessionRow, StoredEntry
from openclaw.store.search import Hit
from openclaw.store.sessionusage import Amounts, SessionUsage, UsageSlice, UsageSpan, add

SCANNED = 4  # entries that are looked at for one item of a preview: tools take part in between
READ_CHARS = 20_000
DAYS = {"7d": 7, "30d": 30, "90d": 90, "1y": 365}
LONGEST_DAYS = 3660
FIRST_YEAR, LAST_YEAR = 1990, 2999
_decode = msgspec.json.Decoder().decode


# -- words -------------------------------------------------------------------------------------


async def preview(
    services: GatewayServices, _caller: Caller, asked: params.SessionsPreviewParams
) -> results.SessionsPreviewed:
    previews = [await _preview(services, key, asked) for key in asked.keys]
    return results.SessionsPreviewed(ts=services.clock.now_ms(), previews=previews)


async def _preview(
    services: GatewayServices, key: str, asked: params.SessionsPreviewParams
) -> results.SessionPreview:
    """The newest words of one session; a key that cannot be one is as good as missing."""
    try:
        session_key = meant_key(services, key, asked.agent_id)
    except InvalidRequest:
        return results.SessionPreview(key=key, status="missing", items=[])
    page = await services.pages.page(PageAsked(session_key, asked.limit * SCANNED))
    if page is None:
        return results.SessionPreview(key=key, status="missing", items=[])
    entries = page.entries
    items = await off_the_loop(entries, lambda: _preview_items(entries, asked.limit, asked.max_chars))
    return results.SessionPreview(key=key, status="ok" if items else "empty", items=items)


def _preview_items(entries: Sequence[StoredEntry], limit: int, max_chars: int) -> list[results.PreviewItem]:
    items = []
    for message in messages_for_client(entries):
        text = preview_text(text_of_content(message), max_chars)
        if text and message["role"] in ("user", "assistant"):
            items.append(results.PreviewItem(role=message["role"], text=text))
    return items[-limit:]


async def get(
    services: GatewayServices, _caller: Caller, asked: params.SessionsGetParams
) -> results.SessionMessages:
    key = meant_key(services, asked.key, asked.agent_id)
    page = await services.pages.page(PageAsked(key, asked.limit))
    if page is None:
        return results.SessionMessages(messages=[])
    entries = page.entries
    messages = await off_the_loop(entries, lambda: messages_for_client(entries))
    return results.SessionMessages(messages=messages)


async def search(
    services: GatewayServices, _caller: Caller, asked: params.SessionsSearchParams
) -> results.SearchHits:
    """Messages in which every word occurs, newest first (SRCH-1)."""
    terms = query_terms(clean_text(asked.query))
    if not terms:
        raise InvalidRequest("query: there is no word in it to look for")
    key = None if asked.key is None else meant_key(services, asked.key, asked.agent_id)
    found = await services.store.search(
        terms,
        agent_id=asked.agent_id.lower() if asked.agent_id else None,
        session_key=key,
        limit=asked.limit,
    )
    hits = await asyncio.to_thread(_show_hits, found, terms)
    return results.SearchHits(count=len(hits), hits=hits)


async def windows(
    services: GatewayServices, _caller: Caller, asked: params.SessionsWindowsParams
) -> results.SessionWindows:
    """The conversations that resets of one session led through, the current one first."""
    key = meant_key(services, asked.key, asked.agent_id)
    return results.SessionWindows(
        key=key,
        windows=[
            results.SessionWindow(
                session_id=one.session_id,
                reason=one.reason,
                started_at=one.started_at,
                ended_at=one.ended_at,
                first_message_id=one.first_id,
            )
            for one in await services.pages.trail(key, asked.limit)
        ],
    )


def _show_hits(found: Sequence[Hit], terms: tuple[Phrase, ...]) -> list[Json]:
    return [
        {
            "sessionKey": hit.session_key,
            "sessionId": hit.session_id,
            "messageId": hit.entry_id,
            "messageSeq": hit.seq,
            "timestamp": hit.created_at,
            "role": hit.role,
            "snippet": snippet(_said(hit), terms),
        }
        for hit in found
    ]


def _said(hit: Hit) -> str:
    text = cut(text_of_content(_decode(hit.body)), READ_CHARS)
    return sanitise_assistant_text(text) if hit.role == "assistant" else text


# -- numbers -----------------------------------------------------------------------------------


async def usage(
    services: GatewayServices, _caller: Caller, asked: params.SessionsUsageParams
) -> results.SessionsUsage:
    """What sessions used, day by day of the gateway's time zone; what was deleted counts too."""
    now_ms, zone = services.clock.now_ms(), services.settings().resets.zone
    first, last = _days(asked, datetime.fromtimestamp(now_ms / 1000, zone).date())
    key = None if asked.key is None else meant_key(services, asked.key, asked.agent_id)
    span = UsageSpan(
        _midnight(first, zone),
        _midnight(last + timedelta(days=1), zone),
        key,
        asked.agent_id.lower() if asked.agent_id else None,
    )
    report = await services.usages.report(span, asked.limit)
    used = {one.session_key: one for one in report.sessions}
    keys = list(used) if key is None else [key]
    rows = [(one, await services.store.session(one)) for one in keys]
    return results.SessionsUsage(
        updated_at=now_ms,
        start_date=str(first),
        end_date=str(last),
        sessions=[
            _session_row(one, row, used.get(one)) for one, row in rows if row is not None or one in used
        ],
        totals=_amounts(add(one.amounts for one in report.slices)),
        aggregates=_aggregates(report.slices, report.session_count, zone),
    )


def _days(asked: params.SessionsUsageParams, today: date) -> tuple[date, date]:
    last = _day(asked.end_date) if asked.end_date else today
    if asked.start_date:
        first = _day(asked.start_date)
    else:
        first = last - timedelta(days=DAYS.get(asked.range, LONGEST_DAYS) - 1)
    if first > last:
        raise InvalidRequest("sessions.usage: startDate must not be after endDate")
    return max(first, last - timedelta(days=LONGEST_DAYS - 1)), last


def _day(text: str) -> date:
    try:
        day = date.fromisoformat(text)
    except ValueError:
        day = date.min
    if not FIRST_YEAR <= day.year <= LAST_YEAR:
        raise InvalidRequest("sessions.usage: startDate and endDate must be days such as 2026-01-31")
    return day


def _midnight(day: date, zone: ZoneInfo) -> int:
    return int(datetime.combine(day, time.min, zone).timestamp() * 1000)


def _session_row(key: str, row: SessionRow | None, used: SessionUsage | None) -> Json:
    """A session with its numbers; of a deleted one its key and its numbers are left."""
    shown: Json = {
        "key": key,
        "agentId": row.agent_id if row else (used.agent_id if used else None),
        "scope": "family",
        "usage": None,
    }
    if row is not None:
        entry = row.entry
        known = {
            "sessionId": entry.session_id,
            "label": entry.label,
            "updatedAt": entry.updated_at,
            "chatType": entry.chat_type,
            "channel": entry.channel,
            "modelProvider": entry.model_provider,
            "model": entry.model,
        }
        shown |= {name: value for name, value in known.items() if value is not None}
    if used is not None:
        shown["usage"] = {
            **msgspec.to_builtins(_amounts(used.amounts)),
            "calls": used.amounts.calls,
            "firstActivity": used.first_at,
            "lastActivity": used.last_at,
        }
    return shown


def _amounts(amounts: Amounts) -> results.UsageAmounts:
    return results.UsageAmounts(
        input=amounts.input,
        output=amounts.output,
        cache_read=amounts.cache_read,
        cache_write=amounts.cache_write,
        total_tokens=amounts.total_tokens,
        total_cost=amounts.cost_usd,
        missing_cost_entries=amounts.unpriced,
    )


def _aggregates(slices: Iterable[UsageSlice], session_count: int, zone: ZoneInfo) -> results.UsageAggregates:
    slices = tuple(slices)

    def day_of(one: UsageSlice) -> str:
        return str(datetime.fromtimestamp(one.at_ms / 1000, zone).date())

    def grouped(names: tuple[str, ...], key: Callable[[UsageSlice], tuple[Hashable, ...]]) -> list[Json]:
        groups: dict[tuple[Hashable, ...], list[Amounts]] = defaultdict(list)
        for one in slices:
            groups[key(one)].append(one.amounts)
        return [
            {**dict(zip(names, group, strict=True)), "count": total.calls, "totals": _amounts(total)}
            for group, total in sorted(
                ((group, add(amounts)) for group, amounts in groups.items()), key=lambda pair: str(pair[0])
            )
        ]

    daily = [
        {"date": row["date"], "tokens": row["totals"].total_tokens, "cost": row["totals"].total_cost}
        for row in grouped(("date",), lambda one: (day_of(one),))
    ]
    model_daily = [
        {
            "date": row["date"],
            "provider": row["provider"],
            "model": row["model"],
            "tokens": row["totals"].total_tokens,
            "cost": row["totals"].total_cost,
            "count": row["count"],
        }
        for row in grouped(("date", "provider", "model"), lambda one: (day_of(one), one.provider, one.model))
    ]
    return results.UsageAggregates(
        session_count=session_count,
        by_model=grouped(("provider", "model"), lambda one: (one.provider, one.model)),
        by_provider=grouped(("provider",), lambda one: (one.provider,)),
        by_agent=grouped(("agentId",), lambda one: (one.agent_id,)),
        daily=daily,
        model_daily=model_daily,
    )
