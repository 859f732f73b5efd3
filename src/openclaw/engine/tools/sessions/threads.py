"""The thread of a helper: opened before its task begins, bound in the commit that begins it (BIND-1, BIND-2).

A thread is opened on the platform, outside any commit; when the commit then fails, a
thread without a helper stays, and nothing leads anywhere it should not.
"""

from __future__ import annotations

from msgspec.structs import replace

from openclaw.domain.bindings import Binding, BindingTerms, BoundPlace, place_of_route, route_of_place
from openclaw.domain.entry import DeliveryContext
from openclaw.engine.ports import ToolContext, ToolOutcome
from openclaw.engine.threads import Threads
from openclaw.engine.tools.registry import failure
from openclaw.errors import OpenClawError
from openclaw.store.spawns import NewChild

NO_THREADS = (
    "no channel here can bind a helper to a chat thread; leave thread and mode out, and the result "
    "comes back to this session"
)


def refuse_thread(
    terms: BindingTerms, threads: Threads, context: ToolContext, *, mode: str | None, cleanup: str
) -> ToolOutcome | None:
    """Why no thread can be bound here, before anything is done (BIND-2)."""
    if not terms.enabled or not terms.spawn_sessions:
        setting = "spawnSessions" if terms.enabled else "enabled"
        return failure(
            f"helpers get no threads here: session.threadBindings.{setting} is false; leave thread and mode "
            "out, and the result comes back to this session",
            "forbidden",
        )
    if mode != "run" and cleanup == "delete":
        return failure(
            'cleanup "delete" would take the helper out of its thread at once; leave cleanup out, or use '
            'mode "run"'
        )
    return failure(NO_THREADS) if threads.opener_for(context.route) is None else None


async def open_thread(threads: Threads, context: ToolContext, title: str) -> BoundPlace | ToolOutcome:
    """A new thread where this turn's words came from."""
    opener, route = threads.opener_for(context.route), context.route
    if opener is None or route is None:
        return failure(NO_THREADS)
    try:
        thread_id = await opener.open(route, title)
    except OpenClawError as error:
        return failure(f"the thread could not be opened: {error.message}")
    place = place_of_route(replace(route, thread_id=thread_id))
    return failure(NO_THREADS) if place is None else place


def in_thread(child: NewChild, place: BoundPlace, *, mode: str) -> NewChild:
    """The same helper, answering in its thread. A thread for one task only is free again after it."""
    route: DeliveryContext = route_of_place(place)
    first = replace(child.first, body=replace(child.first.body, route=route, deliver=True))
    return replace(child, first=first, body=replace(child.body, unbind_when_done=mode == "run"))


def binding_of(child: NewChild, place: BoundPlace, now_ms: int) -> Binding:
    return Binding(place, child.seed.session_key, "spawn", now_ms, now_ms)
