"""Where a session comes from and where its replies go (SPEC §9).

An inbound context is what a connector knows about one turn. From it come two
different things: `origin`, which explains a session to people, and the delivery
context, which is the only thing that routing reads (ORG-10). Everything here is
a function from the old value and the context to the new value; nothing is
stored, sent or looked up.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, Literal

from msgspec import Struct, structs

from openclaw.domain.doortext import clean_text
from openclaw.domain.entry import DeliveryContext, Origin, SessionEntry
from openclaw.domain.groups import (
    GroupRef,
    fold_word,
    group_display_name,
    has_unsafe_text,
    is_channel_id,
    normalise_chat_type,
    resolve_group,
)
from openclaw.domain.lifecycle import TurnSource, counts_as_interaction

DmScope = Literal["main", "per-peer", "per-channel-peer", "per-account-channel-peer"]

WEBCHAT = "webchat"
INTERNAL = "internal"
INTERNAL_CHANNELS = frozenset((WEBCHAT, INTERNAL))
LONGEST_LABEL = 512
LONGEST_ID = 1024

_NUMERIC_ID = re.compile(r"-?[0-9]+")
_WHATSAPP_GROUP_SUFFIX = "@g.us"
_THREAD_SUFFIX = re.compile(":(?:topic|thread):", re.IGNORECASE)


class InboundContext(Struct, frozen=True, kw_only=True):
    """What a connector tells about a turn (ORG-4). Every field is best effort; blank means absent.

    `from_` and `to` are the envelope's raw ids; `reply_to` is where an answer goes
    when that is not `to`. Ids are kept byte-exact, descriptions are made one line.
    """

    source: TurnSource = "channel"
    provider: str | None = None
    surface: str | None = None
    chat_type: str | None = None
    from_: str | None = None
    to: str | None = None
    reply_to: str | None = None
    account_id: str | None = None
    thread_id: str | None = None
    sender_id: str | None = None
    sender_name: str | None = None
    conversation_label: str | None = None
    thread_label: str | None = None
    group_id: str | None = None
    group_subject: str | None = None
    group_channel: str | None = None
    group_space: str | None = None
    native_channel_id: str | None = None
    native_direct_user_id: str | None = None


def is_internal(context: InboundContext) -> bool:
    """A turn that no outside platform delivered: webchat, terminal, another session, the system (ORG-8)."""
    return context.source != "channel" or _channel(context.provider) in INTERNAL_CHANNELS


def internal_channel(source: TurnSource) -> str:
    """The channel of a session that was only ever reached from inside (AMB-37)."""
    return WEBCHAT if source == WEBCHAT else INTERNAL


# -- origin ------------------------------------------------------------------------------------


def resolve_label(context: InboundContext) -> str | None:
    """The human label of a conversation (ORG-5)."""
    for given in (context.conversation_label, context.thread_label):
        if label := _line(given):
            return label
    if _is_direct(context):
        return _line(context.sender_name) or _line(context.from_)
    names = (context.group_channel, context.group_subject, context.group_space, context.from_)
    base = next((line for name in names if (line := _line(name))), None)
    group_id = _group_id(context)
    if base is None or group_id is None or group_id in base or not _is_telling_id(group_id):
        return base
    return f"{base} id:{group_id}"


def merge_origin(old: Origin | None, context: InboundContext) -> Origin | None:
    """Origin after a turn: what is given overwrites, what is missing never erases (ORG-6).

    Turns of the system and of other sessions say nothing about where a session
    comes from. A turn from inside leaves an origin outside as it is.
    """
    if not counts_as_interaction(context.source):
        return old
    inside = is_internal(context)
    if inside and old is not None and old.provider not in (None, *INTERNAL_CHANNELS):
        return old
    provider = _channel(context.provider) or (internal_channel(context.source) if inside else None)
    told = {
        "label": resolve_label(context),
        "provider": provider,
        "surface": _channel(context.surface),
        "chat_type": normalise_chat_type(context.chat_type),
        "from_": _id(context.from_),
        "to": _id(context.to),
        "account_id": _id(context.account_id),
        "thread_id": _id(context.thread_id),
        "native_channel_id": _id(context.native_channel_id),
        "native_direct_user_id": _id(context.native_direct_user_id),
    }
    if old is not None and old.label and told["label"] == told["from_"] == old.from_:
        # The bare id of the same sender says less than the label that is already there.
        told["label"] = None
    given: dict[str, Any] = {name: value for name, value in told.items() if value is not None}
    if not given:
        return old
    return structs.replace(old or Origin(), **given)


# -- route -------------------------------------------------------------------------------------


def sole_concrete_owner(allow_from: Sequence[str | int]) -> str | None:
    """The one person that `allowFrom` names, if it names exactly one. `*` names nobody."""
    people = {text for item in allow_from if (text := str(item).strip()) and text != "*"}
    return people.pop() if len(people) == 1 else None


def update_route(
    old: DeliveryContext | None,
    context: InboundContext,
    *,
    dm_scope: DmScope = "main",
    sole_owner: str | None = None,
) -> DeliveryContext | None:
    """The route after a turn (ORG-7, ORG-8).

    A real turn sets the whole route, so a thread id ends with the thread. A turn
    without a target never replaces a route, and never borrows the target of
    another one. Turns from inside keep what is there; webchat alone counts as a
    place of its own. Under `dmScope: main` with one named owner (`sole_owner`),
    direct messages of other people leave main's route alone.
    """
    if is_internal(context):
        reachable = old is not None and old.channel not in (None, INTERNAL)
        if reachable or context.source != WEBCHAT:
            return old
        return DeliveryContext(channel=WEBCHAT)
    channel, target = _channel(context.provider), _id(context.reply_to) or _id(context.to)
    if channel is None or (target is None and old is not None):
        return old
    guarded = dm_scope == "main" and _is_direct(context)
    if guarded and sole_owner is not None and not _is_sender(context, sole_owner):
        return old
    return DeliveryContext(
        channel=channel, to=target, account_id=_id(context.account_id), thread_id=_id(context.thread_id)
    )


def _is_sender(context: InboundContext, person: str) -> bool:
    provider = _channel(context.provider)
    sender = _bare_id(context.sender_id or context.from_, provider)
    return bool(sender) and sender == _bare_id(person, provider)


def _bare_id(text: str | None, provider: str | None) -> str:
    bare = (text or "").strip().lower()
    return bare.removeprefix(f"{provider}:")


# -- the entry ---------------------------------------------------------------------------------


def record_session_meta_from_inbound(
    entry: SessionEntry | None,
    context: InboundContext,
    *,
    now_ms: int,
    create_as: str | None = None,
) -> SessionEntry | None:
    """Keep what a context tells about its session; the route and activity stay as they are (ORG-4).

    `create_as` is the session id for a key that has no entry yet. Without it only
    an existing entry is updated, so that observing a message creates nothing (ORG-9).
    """
    known = entry if entry is not None else _new_entry(create_as, now_ms)
    return None if known is None else _described(known, context)


def update_last_route(
    entry: SessionEntry | None,
    context: InboundContext,
    *,
    now_ms: int,
    create_as: str | None = None,
    dm_scope: DmScope = "main",
    sole_owner: str | None = None,
) -> SessionEntry | None:
    """Refresh the route, and the description with it, from the same context (ORG-3, ORG-4).

    `create_as` as in `record_session_meta_from_inbound`.
    """
    described = record_session_meta_from_inbound(entry, context, now_ms=now_ms, create_as=create_as)
    if described is None:
        return None
    route = update_route(described.delivery_context, context, dm_scope=dm_scope, sole_owner=sole_owner)
    return structs.replace(described, delivery_context=route)


def apply_inbound(
    entry: SessionEntry,
    context: InboundContext,
    *,
    now_ms: int,
    dm_scope: DmScope = "main",
    sole_owner: str | None = None,
) -> SessionEntry:
    """The entry after a turn was accepted: description, route and activity (LIFE-12, ORG-2)."""
    route = update_route(entry.delivery_context, context, dm_scope=dm_scope, sole_owner=sole_owner)
    interactive = counts_as_interaction(context.source)
    return structs.replace(
        _described(entry, context),
        delivery_context=route,
        updated_at=now_ms,
        last_interaction_at=now_ms if interactive else entry.last_interaction_at,
    )


def _new_entry(session_id: str | None, now_ms: int) -> SessionEntry | None:
    if session_id is None:
        return None
    return SessionEntry(
        session_id=session_id, updated_at=now_ms, created_at=now_ms, session_started_at=now_ms
    )


def _described(entry: SessionEntry, context: InboundContext) -> SessionEntry:
    changes: dict[str, Any] = {"origin": merge_origin(entry.origin, context)}
    if is_internal(context):
        if entry.channel in (None, INTERNAL):
            changes["channel"] = internal_channel(context.source)
        if entry.chat_type is None:
            changes["chat_type"] = normalise_chat_type(context.chat_type)
        return structs.replace(entry, **changes)
    told = {
        "channel": _channel(context.provider),
        "chat_type": normalise_chat_type(context.chat_type),
        "subject": _line(context.group_subject),
        "group_channel": _line(context.group_channel),
        "space": _line(context.group_space),
        "group_id": None if _is_direct(context) else _group_id(context),
    }
    changes |= {name: value for name, value in told.items() if value is not None}
    described = structs.replace(entry, **changes)
    return structs.replace(described, display_name=_display_name(described, context))


def _display_name(entry: SessionEntry, context: InboundContext) -> str | None:
    """The name in lists (ENT-9). A thread keeps the name that its label once gave it."""
    label = _line(context.thread_label)
    if label is not None:
        return label
    settled = entry.display_name is not None and _id(context.thread_id) is not None
    if settled or entry.group_id is None or entry.channel is None:
        return entry.display_name
    return group_display_name(
        channel=entry.channel,
        group_id=entry.group_id,
        subject=entry.subject,
        room=entry.group_channel,
        space=entry.space,
    )


# -- reading the context -----------------------------------------------------------------------


def _group(context: InboundContext) -> GroupRef | None:
    return resolve_group(
        from_=_id(context.from_), provider=_channel(context.provider), chat_type=context.chat_type
    )


def _is_direct(context: InboundContext) -> bool:
    chat_type = normalise_chat_type(context.chat_type)
    if chat_type is not None:
        return chat_type == "direct"
    described = (context.group_id, context.group_subject, context.group_channel, context.group_space)
    return _group(context) is None and not any(_line(fact) for fact in described)


def _group_id(context: InboundContext) -> str | None:
    """The id of the group, as given or as `from` spells it, without a topic or thread."""
    given = _id(context.group_id)
    if given is not None:
        return given
    group = _group(context)
    return None if group is None else _THREAD_SUFFIX.split(group.group_id, maxsplit=1)[0]


def _is_telling_id(group_id: str) -> bool:
    return _NUMERIC_ID.fullmatch(group_id) is not None or group_id.lower().endswith(_WHATSAPP_GROUP_SUFFIX)


def _channel(text: str | None) -> str | None:
    channel = fold_word(text or "")
    return channel if is_channel_id(channel) else None


def _id(text: str | None) -> str | None:
    """An id that can be stored and sent back unchanged; anything else is treated as absent."""
    trimmed = (text or "").strip()
    if not trimmed or len(trimmed) > LONGEST_ID or has_unsafe_text(trimmed):
        return None
    return trimmed


def _line(text: str | None) -> str | None:
    """A description as one printable line of bounded length."""
    words = clean_text((text or "")[: 4 * LONGEST_LABEL]).split()
    return " ".join(words)[:LONGEST_LABEL] or None
