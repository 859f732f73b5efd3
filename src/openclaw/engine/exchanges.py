"""Exchanges between sessions in motion: the end of one turn queues the next, in one commit (SPEC §15)."""

from __future__ import annotations

from openclaw.domain.entry import DeliveryContext
from openclaw.domain.exchange import Exchange, NextReply, next_step
from openclaw.domain.keys import DEFAULT_KEY_SETTINGS, KeyShape, parse_key, strip_agent
from openclaw.domain.redaction import mask_machine_text
from openclaw.domain.silence import visible_reply
from openclaw.domain.transcript import Provenance
from openclaw.engine.errands import SYSTEM, seed_of
from openclaw.engine.started import StartedRun
from openclaw.engine.texts import text_of_file
from openclaw.errors import InvalidSessionKey
from openclaw.store import inbox, sessions
from openclaw.store.database import Transaction
from openclaw.store.inbox import NewInput
from openclaw.store.records import SessionRow, UserInput
from openclaw.store.runs import RunEnd

_SENT = "sessions_send"


_PRIMARY, _REPLY, _ANNOUNCE = (
    text_of_file("a2a_primary.txt"),
    text_of_file("a2a_reply.txt"),
    text_of_file("a2a_announce.txt"),
)


def primary_prompt(exchange: Exchange) -> str:
    """What the target is told about the request (A2A-8)."""
    channel = f" (channel {exchange.requester_channel})" if exchange.requester_channel else ""
    return _PRIMARY.format(requester=exchange.requester, requester_channel=channel, target=exchange.target)


def source_of(exchange: Exchange, session_key: str) -> Provenance:
    """Where an input of an exchange comes from, as the transcript keeps it (A2A-9)."""
    channel = exchange.requester_channel if session_key == exchange.requester else None
    return Provenance(
        kind="inter_session", source_session_key=session_key, source_channel=channel, source_tool=_SENT
    )


def at_end_of_exchange(
    tx: Transaction, start: StartedRun, end: RunEnd, reply: str, now_ms: int, woken: list[str]
) -> None:
    """Part of the commit that ends a turn of an exchange: queue what follows it."""
    body = start.inputs[0].body
    assert body.exchange is not None
    session_key = start.run.session_key
    step = next_step(body.exchange, session_key, visible_reply(reply), ok=end.outcome == "ok")
    if step is None:
        return
    exchange = step.exchange
    key = step.session_key if isinstance(step, NextReply) else exchange.target
    row = sessions.find(tx, key)
    if row is None:
        return
    if isinstance(step, NextReply):
        said = _reply_input(row, step, session_key, body.hops, now_ms)
    else:
        said = _announce_input(row, exchange, body.hops, now_ms)
    inbox.enqueue(tx, said, now_ms)
    woken.append(key)


def _reply_input(row: SessionRow, step: NextReply, source: str, hops: int, now_ms: int) -> NewInput:
    exchange = step.exchange
    own, other = row.session_key, source
    prompt = _REPLY.format(
        turn=exchange.turn, most=exchange.most_turns, own=own, other=other,
        role="requester" if own == exchange.requester else "target",
    )  # fmt: skip
    said = mask_machine_text(step.text).text
    body = UserInput(
        said, now_ms, provenance=source_of(exchange, source), extra_system_prompt=prompt,
        queue_mode="followup", purpose="exchange", hops=hops, exchange=exchange,
    )  # fmt: skip
    run_id = f"{exchange.exchange_id}:turn:{exchange.turn}"
    return NewInput(run_id, seed_of(row), "inter_session", f"session:{source}", body)


def _announce_input(row: SessionRow, exchange: Exchange, hops: int, now_ms: int) -> NewInput:
    """The turn in which the target may tell its own people (A2A-14, A2A-16)."""
    prompt = _ANNOUNCE.format(
        request=exchange.request, first_reply=exchange.first_reply, latest=exchange.latest
    )
    route = announce_route(row)
    body = UserInput(
        prompt, now_ms, route=route, provenance=SYSTEM, deliver=route is not None, queue_mode="followup",
        hidden_prompt=True, purpose="exchange", hops=hops, exchange=exchange,
    )  # fmt: skip
    return NewInput(f"{exchange.exchange_id}:announce", seed_of(row), "system", "system", body)


def announce_route(row: SessionRow) -> DeliveryContext | None:
    """Where the target's own people are: the group that its key names, else its stored route (A2A-16).

    A stored route on the channel of the group spells its id as the platform does, so it goes first; a
    key may have lost the case of letters (KEY-20).
    """
    stored = row.entry.delivery_context
    try:
        key = parse_key(row.session_key, DEFAULT_KEY_SETTINGS)
    except InvalidSessionKey:
        return stored
    if key.shape not in (KeyShape.group, KeyShape.channel) or key.channel is None:
        return stored
    if stored is not None and stored.channel == key.channel and stored.to:
        return stored
    return DeliveryContext(key.channel, key.peer_id)


def is_thread_key(session_key: str) -> bool:
    """Whether a key names a thread or topic, which no session may write to (A2A-11)."""
    parts = strip_agent(session_key.lower()).split(":")
    return "thread" in parts[1:] or "topic" in parts[1:]
