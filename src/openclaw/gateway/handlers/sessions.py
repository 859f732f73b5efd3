"""sessions.*: list, look at, name, change and follow sessions (RPC-5 to RPC-7, RPC-10)."""

from __future__ import annotations

from typing import Any

import msgspec

from openclaw.domain.entry import SessionEntry, entry_to_wire
from openclaw.domain.keys import KeyShape, parse_key
from openclaw.domain.patch import PATCH_FIELDS, apply_patch
from openclaw.engine.events import SessionChanged
from openclaw.engine.turns import Incoming
from openclaw.errors import InvalidRequest
from openclaw.gateway.handlers.chat import message_content
from openclaw.gateway.services import (
    Caller,
    GatewayServices,
    Json,
    find_session,
    list_defaults,
    meant_key,
    resolve_seed,
)
from openclaw.gateway.sessionview import row_for_client
from openclaw.protocol import params, results
from openclaw.store.records import SessionRow, UserInput
from openclaw.store.sessions import ListQuery

_WIRE_OF = {field.name: field.encode_name for field in msgspec.structs.fields(params.SessionsPatchParams)}


async def list_sessions(
    services: GatewayServices, _caller: Caller, asked: params.SessionsListParams
) -> results.SessionsList:
    now_ms = services.clock.now_ms()
    query = ListQuery(
        agent_id=asked.agent_id.lower() if asked.agent_id else None,
        archived=None if asked.archived == "all" else bool(asked.archived),
        active_since_ms=now_ms - asked.active_minutes * 60_000 if asked.active_minutes else None,
        label=asked.label,
        spawned_by=asked.spawned_by,
        search=asked.search or None,
        include_global=asked.include_global,
        include_unknown=asked.include_unknown,
        limit=asked.limit,
        offset=asked.offset,
        agent_ids=tuple(services.settings().agents) if asked.configured_agents_only else None,
        hide_subagents=asked.exclude_subagents,
        hide_cron=asked.exclude_cron,
        hide_system=asked.exclude_system,
    )
    page = await services.store.list_sessions(query)
    shown = asked.offset + len(page.rows)
    has_more = shown < page.total
    return results.SessionsList(
        ts=now_ms,
        path=services.database,
        count=len(page.rows),
        total_count=page.total,
        limit_applied=asked.limit,
        has_more=has_more,
        next_offset=shown if has_more else None,
        owners=[],
        defaults=list_defaults(services),
        sessions=[
            shown_row(
                services, row, titles=asked.include_derived_titles, last_message=asked.include_last_message
            )
            for row in page.rows
        ],
    )


def shown_row(services: GatewayServices, row: SessionRow, **extras: Any) -> Json:
    active = services.workers.active_run(row.session_key)
    return row_for_client(
        row,
        services.settings(),
        now_ms=services.clock.now_ms(),
        active_run_ids=(active.run.run_id,) if active else (),
        **extras,
    )


async def subscribe(
    services: GatewayServices, caller: Caller, asked: params.SessionsSubscribeParams
) -> results.SessionsSubscribed:
    caller.client.follows_sessions = True
    listed = await list_sessions(services, caller, asked) if caller.had_params else None
    return results.SessionsSubscribed(subscribed=True, list=listed)


async def subscribe_messages(
    services: GatewayServices, caller: Caller, asked: params.SessionsMessagesParams
) -> results.MessagesSubscribed:
    key = resolve_seed(services, asked.key, asked.agent_id).session_key
    caller.client.follow(key)
    replay: Json | None = None
    if asked.include_approvals:  # nothing here waits for an approval
        now_ms = services.clock.now_ms()
        replay = {"sessionKey": key, "updatedAtMs": now_ms, "approvals": [], "truncated": False}
    return results.MessagesSubscribed(subscribed=True, key=key, approval_replay=replay)


async def unsubscribe_messages(
    services: GatewayServices, caller: Caller, asked: params.SessionsMessagesParams
) -> results.MessagesSubscribed:
    key = resolve_seed(services, asked.key, asked.agent_id).session_key
    caller.client.follows_messages.discard(key)
    return results.MessagesSubscribed(subscribed=False, key=key)


async def describe(
    services: GatewayServices, _caller: Caller, asked: params.SessionsDescribeParams
) -> results.SessionDescribed:
    row = await find_session(services, asked.key, asked.agent_id)
    if row is None:
        return results.SessionDescribed(session=None)
    children = await services.store.children_of(row.session_key)
    shown = shown_row(
        services,
        row,
        titles=asked.include_derived_titles,
        last_message=asked.include_last_message,
        children=children,
    )
    return results.SessionDescribed(session=shown)


async def resolve(
    services: GatewayServices, _caller: Caller, asked: params.SessionsResolveParams
) -> results.SessionResolved:
    row, named = await _find_as_asked(services, asked)
    if row is not None and (asked.spawned_by is None or row.entry.spawned_by == asked.spawned_by):
        return results.SessionResolved(ok=True, key=row.session_key, agent_id=row.agent_id)
    if asked.allow_missing:
        return results.SessionResolved(ok=False)
    raise InvalidRequest(f"No session found: {named}")


async def _find_as_asked(
    services: GatewayServices, asked: params.SessionsResolveParams
) -> tuple[SessionRow | None, str]:
    if asked.reference is not None:
        return await _find_reference(services, asked.reference, asked.agent_id), asked.reference.key
    if asked.key is not None:
        return await _by_key(services, asked.key, asked.agent_id), asked.key
    if asked.label is not None:
        return await services.store.session_by_label(asked.label, asked.agent_id), asked.label
    if asked.session_id is not None:
        return await services.store.session_by_id(asked.session_id), asked.session_id
    short_id = asked.short_id or ""
    return await services.pages.by_short_id(short_id), short_id


async def _by_key(services: GatewayServices, key: str, agent_id: str | None) -> SessionRow | None:
    """Also of an agent that is no longer configured: its sessions are still there."""
    return await services.store.session(meant_key(services, key, agent_id))


async def _find_reference(
    services: GatewayServices, reference: params.SessionReference, agent_id: str | None
) -> SessionRow | None:
    """A link to a session: its key, and the beginning of its id for when the key is not there any more."""
    row = await _by_key(services, reference.key, agent_id)
    if row is not None or reference.slug is None:
        return row
    return await services.pages.by_short_id(reference.slug)


async def create(
    services: GatewayServices, caller: Caller, asked: params.SessionsCreateParams
) -> results.SessionCreated:
    """A session, and with `message` its first turn, which counts as said by the caller (AMB-35)."""
    _refuse_unsupported(asked)
    text = asked.message or asked.task or ""
    speaks = bool(text.strip() or asked.attachments)
    content = await message_content(text, asked.attachments) if speaks else ""
    agent_id = asked.agent_id or services.settings().default_agent
    key = asked.key or f"agent:{agent_id}:dashboard:{services.ids.uuid()}"
    seed = resolve_seed(services, key, asked.agent_id, caller.channel)
    changes: Json = {"label": asked.label, "thinkingLevel": asked.thinking_level, "fastMode": asked.fast_mode}
    if asked.model is not None:
        changes["model"] = services.check_model(asked.model)
    given = {name: value for name, value in changes.items() if value is not None}
    parent = asked.parent_session_key
    if parent is not None:
        parent = resolve_seed(services, parent, seed.agent_id).session_key
        seed = msgspec.structs.replace(seed, parent_session_key=parent)
    now_ms = services.clock.now_ms()
    row, created = await services.store.edit_session(
        seed,
        lambda entry: apply_patch(entry, given, is_subagent=False, now_ms=now_ms),
        session_id=services.ids.uuid(),
        now_ms=now_ms,
    )
    services.emit(
        SessionChanged(row, "create") if created else SessionChanged(row, "patch", {"fields": sorted(given)})
    )
    run_id = services.ids.uuid() if speaks else None
    if run_id is not None:
        body = UserInput(content, now_ms)
        await services.turns.accept(
            Incoming(run_id, seed, caller.source, caller.principal, body, inbound=caller.inbound)
        )
    return results.SessionCreated(
        ok=True,
        key=row.session_key,
        session_id=row.entry.session_id,
        entry=entry_to_wire(row.entry),
        run_started=speaks,
        run_id=run_id,
        resolved=resolved_model(services, row),
    )


def _refuse_unsupported(asked: params.SessionsCreateParams) -> None:
    """What a client asks for and would believe to have, such as a session that nobody keeps."""
    wishes = {
        "fork": asked.fork,
        "incognito": asked.incognito,
        "cwd": asked.cwd,
        "worktree": asked.worktree,
        "category": asked.category,
    }
    refused = sorted(name for name, wish in wishes.items() if wish)
    if refused:
        raise InvalidRequest(f"sessions.create: not supported by this gateway yet: {', '.join(refused)}")


async def patch(
    services: GatewayServices, caller: Caller, asked: params.SessionsPatchParams
) -> results.SessionPatched:
    seed = resolve_seed(services, asked.key, asked.agent_id, caller.channel)
    changes = {_WIRE_OF[name]: value for name, value in asked.changes().items()}
    asked_for = tuple(changes)
    unread = changes.pop("unread", None)
    supported = {name: value for name, value in changes.items() if name in PATCH_FIELDS}
    left_out = sorted(set(changes) - set(supported))
    if left_out:
        raise InvalidRequest(f"sessions.patch: not supported by this gateway yet: {', '.join(left_out)}")
    if isinstance(supported.get("model"), str):
        supported["model"] = services.check_model(supported["model"])
    now_ms = services.clock.now_ms()
    is_subagent = parse_key(seed.session_key, services.settings().keys).shape is KeyShape.subagent

    def edit(entry: SessionEntry) -> SessionEntry:
        return apply_patch(entry, supported, is_subagent=is_subagent, now_ms=now_ms)

    expected = asked.expected_session_id or asked.expected_lifecycle_revision
    row, created = await services.store.edit_session(
        seed,
        edit,
        session_id=services.ids.uuid(),
        now_ms=now_ms,
        expected_session_id=expected if isinstance(expected, str) else None,
    )
    if unread is not None:
        await services.store.mark_read(row.session_key, 0 if unread else row.last_seq)
        row = await services.store.session(row.session_key) or row
    services.emit(SessionChanged(row, "create" if created else "patch", {"fields": sorted(asked_for)}))
    return results.SessionPatched(
        ok=True,
        path=services.database,
        key=row.session_key,
        entry=entry_to_wire(row.entry),
        resolved=resolved_model(services, row),
    )


def resolved_model(services: GatewayServices, row: SessionRow) -> results.ResolvedModel:
    target = services.settings().agent(row.agent_id).choose_models(row.entry, None)[0]
    return results.ResolvedModel(
        model_provider=target.provider, model=target.model, thinking_level=row.entry.thinking_level
    )
