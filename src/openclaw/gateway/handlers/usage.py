"""usage.status, usage.cost: what model calls used and cost, from the usage rows."""

from __future__ import annotations

from datetime import date, datetime, timedelta

from openclaw.errors import InvalidRequest
from openclaw.gateway.services import Caller, GatewayServices, Json
from openclaw.protocol import params_system as params
from openclaw.protocol import results_system as results
from openclaw.store.costs import DayCost, total_of

DEFAULT_DAYS = 30
MAX_DAYS = 366


async def status(services: GatewayServices, _caller: Caller, _asked: params.NoParams) -> results.UsageStatus:
    return results.UsageStatus(updated_at=services.clock.now_ms(), providers=[])


async def cost(
    services: GatewayServices, _caller: Caller, asked: params.UsageCostParams
) -> results.UsageCost:
    zone, now_ms = services.settings().resets.zone, services.clock.now_ms()
    first, last = _span(asked, datetime.fromtimestamp(now_ms / 1000, zone).date())
    daily = await services.about.costs.daily(first, last, zone)
    totals = _amounts(total_of(daily))
    return results.UsageCost(
        updated_at=now_ms,
        days=len(daily),
        daily=[{"date": day.date, **_amounts(day)} for day in daily],
        totals=totals,
    )


def _span(asked: params.UsageCostParams, today: date) -> tuple[date, date]:
    if asked.days is not None and (asked.start_date or asked.end_date):
        raise InvalidRequest("usage.cost: give days or a span of dates, not both")
    last = _day(asked.end_date) if asked.end_date else today
    if asked.start_date:
        first = _day(asked.start_date)
    else:
        first = last - timedelta(days=(asked.days or DEFAULT_DAYS) - 1)
    if not 0 <= (last - first).days < MAX_DAYS:
        raise InvalidRequest(f"usage.cost: startDate must be before endDate, by less than {MAX_DAYS} days")
    return first, last


def _day(text: str) -> date:
    try:
        day = date.fromisoformat(text)
    except ValueError:
        raise InvalidRequest(f"usage.cost: there is no day {text}") from None
    if not 1970 < day.year < 9999:
        raise InvalidRequest(f"usage.cost: {text} is out of range")
    return day


def _amounts(day: DayCost) -> Json:
    return {
        "input": day.input,
        "output": day.output,
        "cacheRead": day.cache_read,
        "cacheWrite": day.cache_write,
        "totalTokens": day.input + day.output + day.cache_read + day.cache_write,
        "totalCost": day.cost_usd,
        "missingCostEntries": day.unpriced,
        "calls": day.calls,
    }
