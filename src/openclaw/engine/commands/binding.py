"""/focus, /unfocus and /session: which session this place of a chat belongs to, and for how long (BIND-2).

The place is the one that the command came from, as its captured route names it. An
owner may give it any session; others only a helper of the session that they speak to.
"""

from __future__ import annotations

from functools import partial

from openclaw.domain.bindings import (
    Binding,
    BoundPlace,
    Holds,
    judge,
    place_of_route,
    read_term,
    show_term,
)
from openclaw.domain.commandtable import usage_of
from openclaw.engine.commands.ports import CommandServices, Reply, Request, not_built
from openclaw.engine.commands.subagents import Child, find_child
from openclaw.errors import InvalidRequest
from openclaw.store import bindings
from openclaw.store.database import Transaction
from openclaw.store.records import SessionRow

_NOT_A_PLACE = "This works in a chat of a channel; here there is no place that could be bound."
_FREE = "This place is not bound to a session."
_MOST_CHARS = 300


async def focus(request: Request, services: CommandServices) -> Reply:
    """`/focus <target>`: what is written here from now on goes to that session."""
    place = place_of_route(request.new.body.route)
    if services.bindings is None:
        return not_built("/focus")
    if place is None:
        return Reply(_NOT_A_PLACE)
    terms = request.settings.thread_bindings
    if not terms.enabled:
        return Reply("Bindings are switched off. Set session.threadBindings.enabled to true to use them.")
    if not request.args:
        return Reply(await _state(request, services.bindings, place))
    row = await _target(request, services)
    bound = Binding(place, row.session_key, "focus", request.now_ms, request.now_ms)
    ends = ""
    if terms.idle_ms:
        ends = f" It ends by itself after {show_term(terms.idle_ms)} without a message."
    return Reply(
        f"{_called(place)} belongs to {_name(row)} now: what is written here goes there. "
        f"/unfocus ends that.{ends}",
        also=lambda tx: bindings.bind(tx, bound),
    )


async def unfocus(request: Request, services: CommandServices) -> Reply:
    """`/unfocus`: messages go where routing leads them again."""
    place = place_of_route(request.new.body.route)
    if services.bindings is None:
        return not_built("/unfocus")
    if place is None:
        return Reply(_NOT_A_PLACE)
    if await _bound_here(request, services.bindings, place) is None:
        return Reply(_FREE)
    return Reply(f"{_called(place)} is not bound any more.", also=partial(_unbind, place))


async def set_terms(request: Request, services: CommandServices) -> Reply:
    """`/session idle|max-age <duration|off>`: how long this place stays bound."""
    place = place_of_route(request.new.body.route)
    if services.bindings is None:
        return not_built("/session")
    if place is None:
        return Reply(_NOT_A_PLACE)
    binding = await _bound_here(request, services.bindings, place)
    if binding is None:
        return Reply(_FREE)
    if not request.args:
        return Reply(await _state(request, services.bindings, place))
    if request.word not in ("idle", "max-age"):
        return Reply(usage_of("session"))
    term_ms = read_term(request.after_word)
    if term_ms is None:
        return Reply(f"Say for how long: /session {request.word} 12h, 90m, 7d, or off.")
    idle_ms = term_ms if request.word == "idle" else binding.idle_ms
    max_age_ms = term_ms if request.word == "max-age" else binding.max_age_ms
    what = "without a message" if request.word == "idle" else "in all"
    text = f"{_called(place)} stays bound until somebody ends it."
    if term_ms:
        text = f"{_called(place)} stays bound for {show_term(term_ms)} {what}."
    return Reply(text, also=lambda tx: bindings.set_terms(tx, place, idle_ms, max_age_ms))


async def bound_lines(request: Request, services: CommandServices) -> tuple[str, ...]:
    """The places that belong to this session and its helpers, for `/agents`."""
    if services.bindings is None:
        return ()
    terms = request.settings.thread_bindings
    found = [
        f"{_where(one.place)}: {one.session_key}"
        for one in await services.bindings.of_family(request.session_key)
        if isinstance(judge(one, terms, request.now_ms), Holds)
    ]
    return ("Bound threads:", *found) if found else ()


def _unbind(place: BoundPlace, tx: Transaction) -> None:
    bindings.unbind(tx, place)


async def _bound_here(request: Request, rows: bindings.Bindings, place: BoundPlace) -> Binding | None:
    found = await rows.bound(place, request.settings.thread_bindings, request.now_ms)
    return None if found is None else found.binding


async def _state(request: Request, rows: bindings.Bindings, place: BoundPlace) -> str:
    binding = await _bound_here(request, rows, place)
    if binding is None:
        return f"{_FREE} {usage_of('focus')}"
    terms = request.settings.thread_bindings
    idle_ms = terms.idle_ms if binding.idle_ms is None else binding.idle_ms
    max_age_ms = terms.max_age_ms if binding.max_age_ms is None else binding.max_age_ms
    return (
        f"{_called(place)} belongs to {binding.session_key}.\n"
        f"Idle: {show_term(idle_ms)}, max-age: {show_term(max_age_ms)}."
    )


async def _target(request: Request, services: CommandServices) -> SessionRow:
    """The session that a person means: a helper of this one, and for owners any by its key or label."""
    wanted = request.args[:_MOST_CHARS]
    if request.caller.owner:
        agent_id = request.new.seed.agent_id
        for key in (wanted, f"agent:{agent_id}:{wanted}"):
            row = await services.store.session(key)
            if row is not None:
                return _living(row)
        row = await services.store.session_by_label(wanted, agent_id)
        if row is not None:
            return _living(row)
    rows = await services.commands.children(request.session_key)
    return _living(find_child([Child(row, None) for row in reversed(rows)], wanted).row)


def _living(row: SessionRow) -> SessionRow:
    if row.entry.archived_at is not None:
        raise InvalidRequest(f"{_name(row)} is archived; take it out of the archive first.")
    return row


def _name(row: SessionRow) -> str:
    return row.entry.label or row.entry.display_name or row.session_key


def _called(place: BoundPlace) -> str:
    return "This thread" if place.thread_id else "This chat"


def _where(place: BoundPlace) -> str:
    thread = f", thread {place.thread_id}" if place.thread_id else ""
    return f"{place.channel} {place.to}{thread}"
