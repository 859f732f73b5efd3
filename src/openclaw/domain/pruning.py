"""Pruning: old tool results leave the message list of a model call, never the transcript (SPEC §19).

`prune` is a function of the context and of what was pruned before. What it has
once shortened it gives back with the same bytes, so that a request stays a prefix
of the next one between two prunings; it looks at each message once. It must not
store anything, and it knows no provider's format.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import msgspec
from msgspec import Struct

from openclaw.domain.tokens import CHARS_PER_TOKEN, message_weight
from openclaw.domain.toolpolicy import matches_any
from openclaw.domain.transcript import (
    AssistantMessage,
    ImageBlock,
    Message,
    TextBlock,
    ToolResultMessage,
    UserMessage,
    text_of,
)

PruneGate = Literal["idle", "size"]
CredentialKind = Literal["oauth", "token", "api_key"]


# -- settings ------------------------------------------------------------------------------------------


class SoftTrim(Struct, frozen=True):
    max_chars: int = 4000
    head_chars: int = 1500
    tail_chars: int = 1500


class HardClear(Struct, frozen=True):
    enabled: bool = True
    placeholder: str = "[Old tool result content cleared]"


class PruningTools(Struct, frozen=True):
    """Which tools' results may be pruned: `*` wildcards, any case, deny wins, no allow is all (PRUNE-4)."""

    allow: tuple[str, ...] = ()
    deny: tuple[str, ...] = ()


class PruningSettings(Struct, frozen=True):
    """`agents.defaults.contextPruning` (PRUNE-2), with the names and defaults of the configuration."""

    mode: Literal["off", "cache-ttl"] = "cache-ttl"
    ttl_ms: int = 300_000
    keep_last_assistants: int = 3
    soft_trim_ratio: float = 0.3
    hard_clear_ratio: float = 0.5
    min_prunable_tool_chars: int = 50_000
    soft_trim: SoftTrim = SoftTrim()
    hard_clear: HardClear = HardClear()
    tools: PruningTools = PruningTools()


class ProviderDefaults(Struct, frozen=True):
    """What a provider's kind of credential suggests where the configuration says nothing."""

    pruning_mode: Literal["off", "cache-ttl"]
    heartbeat_every_ms: int
    cache_ttl_ms: int | None


def anthropic_defaults(
    credential: CredentialKind,
    *,
    pruning_mode: Literal["off", "cache-ttl"] | None = None,
    heartbeat_every_ms: int | None = None,
    cache_ttl_ms: int | None = None,
) -> ProviderDefaults:
    """Defaults for Anthropic credentials (PRUNE-6). A value that is given explicitly wins."""
    by_key = credential == "api_key"
    return ProviderDefaults(
        pruning_mode or "cache-ttl",
        (1_800_000 if by_key else 3_600_000) if heartbeat_every_ms is None else heartbeat_every_ms,
        (3_600_000 if by_key else None) if cache_ttl_ms is None else cache_ttl_ms,
    )


# -- what is remembered between calls ------------------------------------------------------------------


class Candidate(Struct, frozen=True):
    """A tool result that may be pruned: where it is, and what it costs as it is sent now."""

    index: int
    weight: int
    chars: int


class PruneState(Struct, frozen=True):
    """What was seen and decided so far. It belongs to one context under one set of settings.

    A context that begins otherwise, or is shorter than what was seen, has passed a
    boundary (a compaction, its undoing, a reset): the state starts anew.
    """

    settings: PruningSettings
    first: Message | None = None
    seen: int = 0
    weight: int = 0  # of the whole context as it is sent, in quarters of a token
    first_user: int | None = None
    assistants: tuple[int, ...] = ()  # the newest ones, as many as are kept
    waiting: tuple[Candidate, ...] = ()  # behind the kept assistants, not candidates yet
    candidates: tuple[Candidate, ...] = ()
    looked_at: int = 0  # candidates that an earlier pruning has looked at
    pruned: dict[int, ToolResultMessage] = {}
    pruned_at_ms: int | None = None


class PrunedView(Struct, frozen=True):
    """The messages to send, and the state for the next call. `gate` says why this call pruned, if it did.

    `changed` are the messages that this call shortened: with any, the request is
    no continuation of the one before it, and a boundary is recorded.
    """

    messages: tuple[Message, ...]
    state: PruneState
    gate: PruneGate | None = None
    changed: tuple[int, ...] = ()


# -- pruning -------------------------------------------------------------------------------------------


def prune(
    messages: tuple[Message, ...],
    settings: PruningSettings,
    *,
    window_tokens: int,
    last_call_ms: int | None,
    now_ms: int,
    before: PruneState | None = None,
) -> PrunedView:
    """The context as it should be sent (PRUNE-1). `before` is the state that the previous call returned."""
    if settings.mode == "off":
        return PrunedView(messages, PruneState(settings))
    state = _take_in(_continued(before, messages, settings), messages)
    window_chars = window_tokens * CHARS_PER_TOKEN
    gate = _open_gate(state, window_chars, last_call_ms, now_ms)
    changed: tuple[int, ...] = ()
    if gate is not None:
        state, changed = _shorten(state, messages, window_chars, now_ms)
    if not state.pruned:
        return PrunedView(messages, state, gate, changed)
    view = list(messages)
    for index, shortened in state.pruned.items():
        view[index] = shortened
    return PrunedView(tuple(view), state, gate, changed)


def _continued(
    before: PruneState | None, messages: Sequence[Message], settings: PruningSettings
) -> PruneState:
    if before is None or before.settings != settings or len(messages) < before.seen:
        return PruneState(settings)
    if before.seen and messages[0] != before.first:
        return PruneState(settings)
    return before


def _take_in(state: PruneState, messages: tuple[Message, ...]) -> PruneState:
    """Weigh what is new, and let results become candidates as newer assistant messages come (PRUNE-4)."""
    if state.seen == len(messages):
        return state
    keep = state.settings.keep_last_assistants
    weight, first_user = state.weight, state.first_user
    assistants, waiting = list(state.assistants), list(state.waiting)
    for index in range(state.seen, len(messages)):
        message = messages[index]
        cost = message_weight(message)
        weight += cost
        if isinstance(message, AssistantMessage):
            assistants = [*assistants, index][-keep:] if keep else []
        elif isinstance(message, UserMessage):
            first_user = index if first_user is None else first_user
        elif first_user is not None and _is_prunable(message, state.settings.tools):
            waiting.append(Candidate(index, cost, len(text_of(message))))
    ready = _ready(waiting, assistants, keep, len(messages))
    return msgspec.structs.replace(
        state,
        first=messages[0],
        seen=len(messages),
        weight=weight,
        first_user=first_user,
        assistants=tuple(assistants),
        waiting=tuple(waiting[ready:]),
        candidates=state.candidates + tuple(waiting[:ready]),
    )


def _ready(waiting: Sequence[Candidate], assistants: Sequence[int], keep: int, length: int) -> int:
    """How many of those that wait stand before the last `keep` assistant messages."""
    if len(assistants) < keep:
        return 0  # fewer assistant messages than are kept: nothing is old yet
    cutoff = assistants[0] if keep else length
    ready = 0
    while ready < len(waiting) and waiting[ready].index < cutoff:
        ready += 1
    return ready


def _is_prunable(message: ToolResultMessage, tools: PruningTools) -> bool:
    if any(isinstance(block, ImageBlock) for block in message.content):
        return False
    if matches_any(tools.deny, message.tool_name):
        return False
    return not tools.allow or matches_any(tools.allow, message.tool_name)


def _open_gate(
    state: PruneState, window_chars: int, last_call_ms: int | None, now_ms: int
) -> PruneGate | None:
    """Whether this call may prune (PRUNE-3): the cache of the last call is cold anyway, or it pays off.

    In a busy session, candidates must fill their share of the window, and enough of them must be new:
    otherwise each call would shorten one more result and lose the provider's cache every time.
    """
    settings = state.settings
    if last_call_ms is not None and now_ms - max(last_call_ms, state.pruned_at_ms or 0) > settings.ttl_ms:
        return "idle"
    share = settings.soft_trim_ratio * window_chars
    fresh = sum(candidate.weight for candidate in state.candidates[state.looked_at :])
    if fresh < max(1, min(settings.min_prunable_tool_chars, share)):
        return None
    return "size" if sum(candidate.weight for candidate in state.candidates) >= share else None


def _shorten(
    state: PruneState, messages: Sequence[Message], window_chars: int, now_ms: int
) -> tuple[PruneState, tuple[int, ...]]:
    """Trim, and if that is not enough clear, the candidates (PRUNE-5)."""
    settings = state.settings
    if state.weight < settings.soft_trim_ratio * window_chars:
        return state, ()
    weight, pruned, candidates = state.weight, dict(state.pruned), list(state.candidates)
    changed: set[int] = set()

    def replace_by(place: int, text: str) -> None:
        nonlocal weight
        index = candidates[place].index
        original = messages[index]
        assert isinstance(original, ToolResultMessage)
        shorter = msgspec.structs.replace(original, content=(TextBlock(text),), details=None)
        now = Candidate(index, message_weight(shorter), len(text))
        weight += now.weight - candidates[place].weight
        pruned[index], candidates[place] = shorter, now
        changed.add(index)

    for place in range(state.looked_at, len(candidates)):
        trimmed = trim_text(text_of(messages[candidates[place].index]), settings.soft_trim)
        if trimmed is not None:
            replace_by(place, trimmed)
    limit, clear = settings.hard_clear_ratio * window_chars, settings.hard_clear
    enough = sum(candidate.chars for candidate in candidates) >= settings.min_prunable_tool_chars
    if clear.enabled and enough and weight >= limit:
        for place, candidate in enumerate(candidates):
            if weight < limit:
                break
            if candidate.chars > len(clear.placeholder):
                replace_by(place, clear.placeholder)
    shortened = msgspec.structs.replace(
        state, weight=weight, pruned=pruned, candidates=tuple(candidates), looked_at=len(candidates),
        pruned_at_ms=now_ms,
    )  # fmt: skip
    return shortened, tuple(sorted(changed))


def trim_text(text: str, trim: SoftTrim) -> str | None:
    """Head and tail of a long text with a note of its size; None when trimming would not make it shorter."""
    length = len(text)
    if length <= trim.max_chars:
        return None
    head, tail = text[: trim.head_chars], text[length - min(trim.tail_chars, length) :]
    note = f"[Shortened: the first {len(head)} and the last {len(tail)} of {length} characters are shown.]"
    trimmed = f"{head}\n...\n{tail}\n\n{note}"
    return trimmed if len(trimmed) < length else None
