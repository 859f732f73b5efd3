"""Starting a session anew: the words that ask for it, what survives, what is told (SPEC §7).

Reads a reset trigger out of a message, decides whether a new window is minted,
builds the entry that the new window starts with and the events that mark the
change. Storing the window, aborting the run and delivering the events belong to
the engine. No error path may ask for a rotation (PITFALLS C6): the reasons below
are all there are.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

from msgspec import Struct, structs

from openclaw.domain.entry import SessionEntry
from openclaw.domain.lifecycle import Expired, Fresh
from openclaw.domain.modelhint import ModelCandidate, ModelHint, match_model_hint

ResetReason = Literal["new", "reset"]
WindowReason = Literal["first", "new", "reset", "daily", "idle", "cron"]
EndReason = Literal["new", "reset", "daily", "idle", "deleted"]

BUILT_IN_TRIGGERS = ("/new", "/reset")
FORK_TOKEN_LIMIT = 100_000
# The windows themselves are the full record; the entry carries the recent ones.
FAMILY_LIMIT = 64

# A message opens with a handful of wrappers at most; a longer chain is text.
_MOST_PREFIXES = 8
_LONGEST_HEADER = 200


# -- triggers ----------------------------------------------------------------------------------


class TriggerMatch(Struct, frozen=True):
    """A message that asks for a new session. `remainder` is its first message, empty when there is none."""

    trigger: str
    reason: ResetReason
    remainder: str


class ResetCommand(Struct, frozen=True):
    """A trigger with the model named after it taken out of the text."""

    trigger: str
    reason: ResetReason
    model: ModelHint | None
    body: str


def match_trigger(
    text: str,
    *,
    authorised: bool,
    extra_triggers: Sequence[str] = (),
    mention_names: Sequence[str] = (),
    structural_prefixes: Sequence[str] = (),
) -> TriggerMatch | None:
    """Recognise a reset trigger: the whole message, or the trigger and white space (LIFE-13, AMB-25).

    `/new` and `/reset` always count, `extra_triggers` add to them (AMB-33). Letter
    case does not matter. Bracketed headers, the given `structural_prefixes` and
    leading mentions of `mention_names` (pass them for groups only) are skipped
    first. From a sender who is not authorised nothing is a trigger (LIFE-14).
    """
    if not authorised:
        return None
    body = _without_prefixes(text.strip(), mention_names, structural_prefixes)
    for trigger in _triggers(extra_triggers):
        rest = _after_prefix(body, trigger)
        if rest is None:
            continue
        rest = _without_suffix_mention(rest, mention_names)
        if rest and not rest[0].isspace():
            continue
        reason: ResetReason = "new" if trigger == "/new" else "reset"
        return TriggerMatch(trigger, reason, without_mention(rest.strip(), mention_names))
    return None


def parse_reset(
    text: str,
    *,
    authorised: bool,
    extra_triggers: Sequence[str] = (),
    mention_names: Sequence[str] = (),
    structural_prefixes: Sequence[str] = (),
    candidates: Sequence[ModelCandidate] = (),
    default_model: tuple[str, str] | None = None,
) -> ResetCommand | None:
    """A reset trigger together with the model that its first words may name (LIFE-15, AMB-26)."""
    match = match_trigger(
        text,
        authorised=authorised,
        extra_triggers=extra_triggers,
        mention_names=mention_names,
        structural_prefixes=structural_prefixes,
    )
    if match is None:
        return None
    hint = match_model_hint(match.remainder, candidates, default_model)
    body = match.remainder if hint is None else hint.remainder
    return ResetCommand(trigger=match.trigger, reason=match.reason, model=hint, body=body)


def _triggers(extra: Sequence[str]) -> list[str]:
    given = (trigger.strip() for trigger in extra)
    # The longest first, so that "/new chat" is not read as "/new" with a message.
    return sorted((*BUILT_IN_TRIGGERS, *filter(None, given)), key=len, reverse=True)


def _without_prefixes(text: str, mention_names: Sequence[str], prefixes: Sequence[str]) -> str:
    for _ in range(_MOST_PREFIXES):
        shorter = without_header(text)
        shorter = _without_literal(shorter, prefixes)
        shorter = without_mention(shorter, mention_names)
        if shorter == text:
            break
        text = shorter
    return text


def without_header(text: str) -> str:
    """Drop one bracketed header such as `[Telegram Alice 10:32]` from the first line."""
    if not text.startswith("["):
        return text
    header, closing, _ = text[:_LONGEST_HEADER].partition("]")
    if not closing or "\n" in header:
        return text
    return text[len(header) + 1 :].lstrip()


def _without_literal(text: str, prefixes: Sequence[str]) -> str:
    for prefix in prefixes:
        rest = _after_prefix(text, prefix.strip())
        if rest is not None:
            return rest.lstrip()
    return text


def without_mention(text: str, names: Sequence[str]) -> str:
    """Drop one leading mention: `@name`, `<@name>`, `<@!name>` or the bare name, then `:` or `,`."""
    for name in _plain_names(names):
        for form in (f"<@!{name}>", f"<@{name}>", f"@{name}", name):
            rest = _after_prefix(text, form)
            if rest is not None and (not rest or rest[0].isspace() or rest[0] in ":,"):
                return rest[1:].lstrip() if rest[:1] in (":", ",") else rest.lstrip()
    return text


def _without_suffix_mention(rest: str, names: Sequence[str]) -> str:
    """Drop the address in `/new@name`, as group chats write it."""
    for name in _plain_names(names):
        after = _after_prefix(rest, f"@{name}")
        if after is not None:
            return after
    return rest


def _plain_names(names: Sequence[str]) -> list[str]:
    return [plain for name in names if (plain := name.strip().removeprefix("@"))]


def _after_prefix(text: str, prefix: str) -> str | None:
    if not prefix or text[: len(prefix)].casefold() != prefix.casefold():
        return None
    return text[len(prefix) :]


# -- the decision ------------------------------------------------------------------------------


class KeepWindow(Struct, frozen=True):
    """The session goes on under its id."""


class MintWindow(Struct, frozen=True):
    """A new session id is minted, for this reason."""

    reason: WindowReason


def decide_window(
    *,
    has_entry: bool,
    freshness: Fresh | Expired,
    requested: ResetReason | None = None,
    isolated_cron: bool = False,
) -> KeepWindow | MintWindow:
    """Whether an input goes on with the current id or starts a new one.

    An isolated cron run always starts a new one (LIFE-20); a key without an entry
    starts its first, also after a deletion (LIFE-19); then a person's request,
    then the policy.
    """
    if isolated_cron:
        return MintWindow("cron")
    if not has_entry:
        return MintWindow("first")
    if requested is not None:
        return MintWindow(requested)
    if isinstance(freshness, Expired):
        return MintWindow(freshness.reason)
    return KeepWindow()


# -- what survives -----------------------------------------------------------------------------


def _names(text: str) -> tuple[str, ...]:
    return tuple(text.split())


ROW_FIELDS = _names("created_at archived_at pinned_at usage_family_key")
IDENTITY_FIELDS = _names("label display_name chat_type channel")
GROUP_FIELDS = _names("group_id group_channel subject space")
ACTIVATION_FIELDS = _names("group_activation group_activation_needs_system_intro")
# A reply that has not left yet belongs to the route, not to the window that wrote it (REST-7).
ROUTE_FIELDS = _names("origin delivery_context pending_final_delivery")
LINEAGE_FIELDS = _names(
    "spawned_by parent_session_key forked_from_parent spawn_depth spawn_root "
    "subagent_role subagent_control_scope spawned_workspace_dir"
)
# Without these the first heartbeat after a reset would repeat the last one.
HEARTBEAT_FIELDS = _names("last_heartbeat_text last_heartbeat_sent_at")
# Only `/send` and a patch clear it (SEND-4), so it outlives an expiry as well.
SEND_POLICY_FIELDS = _names("send_policy")
CRON_TOGGLE_FIELDS = _names("thinking_level fast_mode verbose_level")
TOGGLE_FIELDS = (
    *CRON_TOGGLE_FIELDS,
    *_names("trace_level reasoning_level elevated_level response_usage tts_auto"),
)
EXEC_FIELDS = _names("exec_host exec_security exec_ask exec_node")
QUEUE_FIELDS = _names("queue_mode queue_debounce_ms queue_cap queue_drop")
# Kept only when a person chose them: what a fallback chose ends with the window (LOOP-7).
MODEL_CHOICE_FIELDS = _names("provider_override model_override model_override_source auth_profile_override")

KEPT_ON_EXPIRY = (
    *ROW_FIELDS,
    *IDENTITY_FIELDS,
    *GROUP_FIELDS,
    *ACTIVATION_FIELDS,
    *ROUTE_FIELDS,
    *LINEAGE_FIELDS,
    *HEARTBEAT_FIELDS,
    *SEND_POLICY_FIELDS,
)
KEPT_ON_RESET = (*KEPT_ON_EXPIRY, *TOGGLE_FIELDS, *EXEC_FIELDS, *QUEUE_FIELDS)
KEPT_ON_CRON_RUN = (*ROW_FIELDS, *IDENTITY_FIELDS, *LINEAGE_FIELDS, *CRON_TOGGLE_FIELDS)

# Written anew, with a value, for every window.
MINTED_FIELDS = _names(
    "session_id updated_at session_started_at usage_family_session_ids "
    "input_tokens output_tokens total_tokens total_tokens_fresh cache_read cache_write estimated_cost_usd"
)
# Unset by every window: facts about the old one.
CLEARED_FIELDS = _names(
    "last_interaction_at started_at ended_at runtime_ms status last_run_id system_sent aborted_last_run "
    "model_provider model live_model_switch_pending context_tokens "
    "compaction_count memory_flush_at memory_flush_compaction_count "
    "abort_cutoff_message_sid abort_cutoff_timestamp skills_snapshot system_prompt_report"
)


def carry_over(entry: SessionEntry, *, session_id: str, now_ms: int, explicit: bool) -> SessionEntry:
    """The entry that a new window starts with (LIFE-21).

    `explicit` is a reset that a person asked for; otherwise the policy ended the
    session, and toggles and model choices end with it.
    """
    if not explicit:
        return _renew(entry, KEPT_ON_EXPIRY, session_id, now_ms)
    return _renew(entry, (*KEPT_ON_RESET, *_chosen_model_fields(entry)), session_id, now_ms)


def carry_over_cron_run(entry: SessionEntry, *, session_id: str, now_ms: int) -> SessionEntry:
    """The entry that a fresh run of a cron job starts with (AUTO-3)."""
    return _renew(entry, (*KEPT_ON_CRON_RUN, *_chosen_model_fields(entry)), session_id, now_ms)


def choose_model(entry: SessionEntry, hint: ModelHint) -> SessionEntry:
    """Store the model named after `/new` as the person's choice (LIFE-16)."""
    same_provider = entry.provider_override == hint.provider
    return structs.replace(
        entry,
        provider_override=hint.provider,
        model_override=hint.model,
        model_override_source="user",
        # A credential profile belongs to a provider.
        auth_profile_override=entry.auth_profile_override if same_provider else None,
    )


def _chosen_model_fields(entry: SessionEntry) -> tuple[str, ...]:
    return () if entry.model_override_source == "auto" else MODEL_CHOICE_FIELDS


def _renew(entry: SessionEntry, kept: Sequence[str], session_id: str, now_ms: int) -> SessionEntry:
    survivors: dict[str, Any] = {name: getattr(entry, name) for name in kept}
    family = dict.fromkeys((*entry.usage_family_session_ids, entry.session_id, session_id))
    return SessionEntry(
        session_id=session_id,
        updated_at=now_ms,
        session_started_at=now_ms,
        usage_family_session_ids=tuple(family)[-FAMILY_LIMIT:],
        input_tokens=0,
        output_tokens=0,
        total_tokens=0,
        total_tokens_fresh=True,
        cache_read=0,
        cache_write=0,
        estimated_cost_usd=0.0,
        **survivors,
    )


# -- what is told ------------------------------------------------------------------------------


class SessionEnd(Struct, frozen=True, rename="camel", omit_defaults=True, tag="session_end"):
    """A window ended (LIFE-22). No next id: the session was deleted."""

    session_key: str
    session_id: str
    reason: EndReason
    next_session_id: str | None = None


class SessionStart(Struct, frozen=True, rename="camel", omit_defaults=True, tag="session_start"):
    """A window started (LIFE-22). `resumed_from` is the id that held the key before."""

    session_key: str
    session_id: str
    resumed_from: str | None = None


# A window that nobody asked to end and no policy ended was followed by a new one: no more is known.
_END_REASONS: dict[WindowReason, EndReason] = {
    "first": "new",
    "new": "new",
    "reset": "reset",
    "daily": "daily",
    "idle": "idle",
    "cron": "new",
}


def rotation_events(
    session_key: str, *, previous_id: str | None, session_id: str, reason: WindowReason
) -> tuple[SessionEnd | SessionStart, ...]:
    """What is announced when a window is minted, in order: the end of the old one, then the new one."""
    start = SessionStart(session_key, session_id, previous_id)
    if previous_id is None:
        return (start,)
    return (SessionEnd(session_key, previous_id, _END_REASONS[reason], session_id), start)


# -- threads -----------------------------------------------------------------------------------


class Fork(Struct, frozen=True):
    """The thread starts from the parent's active branch."""

    parent_key: str


class StartEmpty(Struct, frozen=True):
    reason: Literal["no_parent", "parent_unknown", "already_forked", "parent_too_large"]


def decide_thread_fork(
    *, parent_key: str | None, parent_has_entry: bool, already_forked: bool, parent_tokens: int
) -> Fork | StartEmpty:
    """Whether the first turn of a thread session branches off its parent, once (LIFE-23)."""
    if not parent_key:
        return StartEmpty("no_parent")
    if not parent_has_entry:
        return StartEmpty("parent_unknown")
    if already_forked:
        return StartEmpty("already_forked")
    if parent_tokens > FORK_TOKEN_LIMIT:
        return StartEmpty("parent_too_large")
    return Fork(parent_key)
