"""The turns that the gateway itself asks for, as inputs: made here, queued and run like any other."""

from __future__ import annotations

from openclaw.domain.entry import DeliveryContext
from openclaw.domain.flush import FlushPlan
from openclaw.domain.transcript import Provenance
from openclaw.store.inbox import NewInput
from openclaw.store.records import SessionRow, SessionSeed, UserInput

SYSTEM = Provenance(kind="internal_system")


def seed_of(session: SessionRow) -> SessionSeed:
    """What a session that exists is, as inputs name it."""
    return SessionSeed(session.session_key, session.agent_id, session.kind, session.session_type)


def flush_input(
    session: SessionRow, plan: FlushPlan, run_id: str, now_ms: int, route: DeliveryContext | None = None
) -> NewInput:
    """The silent turn that reminds the model to write notes (FLUSH-1).

    It delivers nothing; `route` is where the person is who may want to hear of the compaction after it.
    """
    body = UserInput(
        plan.prompt,
        now_ms,
        route=route,
        provenance=SYSTEM,
        model=plan.model,
        extra_system_prompt=plan.system_prompt,
        queue_mode="followup",
        hidden_prompt=True,
        purpose="flush",
    )
    return NewInput(run_id, seed_of(session), "system", "system", body)
