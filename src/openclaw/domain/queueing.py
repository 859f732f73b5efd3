"""What happens to a message that arrives while a session is busy (SPEC §17, QUE-2..5).

Settings and counts in, a decision out. The inbox rows, the lanes and the clock
belong to others. No decision here loses an accepted input silently: it is
started, steered, queued, or dropped by a policy that leaves a trace.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import takewhile

import msgspec
from msgspec import Struct

from openclaw.domain.entry import DropPolicy, QueueMode, SessionEntry, literal_values
from openclaw.domain.transcript import ProvenanceKind, TextBlock, ToolCallBlock, ToolResultMessage

DEFAULT_MODE: QueueMode = "steer"
DEFAULT_DEBOUNCE_MS = 500
DEFAULT_CAP = 20
DEFAULT_DROP: DropPolicy = "summarize"

# A stream of messages cannot postpone a collected turn for longer than this.
LONGEST_COLLECT_MS = 30_000
# A collected turn that would grow past this is split; no text is cut.
MERGED_MAX_CHARS = 100_000
DROPPED_MAX_LINES = 20
DROPPED_LINE_CHARS = 160


# -- settings ------------------------------------------------------------------------------------------


class QueueSettings(Struct, frozen=True, kw_only=True):
    """What holds for one arrival."""

    mode: QueueMode = DEFAULT_MODE
    debounce_ms: int = DEFAULT_DEBOUNCE_MS
    cap: int = DEFAULT_CAP
    drop: DropPolicy = DEFAULT_DROP


class QueueOverrides(Struct, frozen=True, kw_only=True):
    """A partial choice: from a `/queue` directive, or stored on the entry."""

    mode: QueueMode | None = None
    debounce_ms: int | None = None
    cap: int | None = None
    drop: DropPolicy | None = None


class QueueConfig(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """`messages.queue`."""

    mode: QueueMode | None = None
    by_channel: dict[str, QueueMode] = {}
    debounce_ms: int | None = None
    debounce_ms_by_channel: dict[str, int] = {}
    cap: int | None = None
    drop: DropPolicy | None = None


NO_OVERRIDES = QueueOverrides()


def stored_overrides(entry: SessionEntry) -> QueueOverrides:
    """The queue choice that a session keeps."""
    return QueueOverrides(
        mode=entry.queue_mode, debounce_ms=entry.queue_debounce_ms, cap=entry.queue_cap, drop=entry.queue_drop
    )


def resolve_queue(
    config: QueueConfig,
    *,
    channel: str | None = None,
    stored: QueueOverrides = NO_OVERRIDES,
    inline: QueueOverrides = NO_OVERRIDES,
) -> QueueSettings:
    """Inline, then stored, then the channel, then the general setting, then the default (QUE-4).

    A cap below 1 and a debounce below 0 count as not given (QUE-3).
    """
    channel_mode = config.by_channel.get(channel or "")
    channel_debounce_ms = config.debounce_ms_by_channel.get(channel or "")
    debounces = (inline.debounce_ms, stored.debounce_ms, channel_debounce_ms, config.debounce_ms)
    caps = (inline.cap, stored.cap, config.cap)
    return QueueSettings(
        mode=inline.mode or stored.mode or channel_mode or config.mode or DEFAULT_MODE,
        debounce_ms=_first_at_least(0, debounces, DEFAULT_DEBOUNCE_MS),
        cap=_first_at_least(1, caps, DEFAULT_CAP),
        drop=inline.drop or stored.drop or config.drop or DEFAULT_DROP,
    )


def _first_at_least(least: int, candidates: Sequence[int | None], default: int) -> int:
    return next((value for value in candidates if value is not None and value >= least), default)


# -- arrival ---------------------------------------------------------------------------------------------


class Start(Struct, frozen=True, tag="start"):
    """The session is idle: run now."""


class Steer(Struct, frozen=True, tag="steer", kw_only=True):
    """Inject into the active run at its next boundary."""

    one_at_a_time: bool = False
    also_queue: bool = False


class Queue(Struct, frozen=True, tag="queue"):
    """Keep for a later turn."""


class Interrupt(Struct, frozen=True, tag="interrupt"):
    """Abort the active run, then drain the queue, this message included."""


class Reject(Struct, frozen=True, tag="reject"):
    """Refuse before anything is stored; the sender is told the reason."""

    reason: str


class DropOldest(Struct, frozen=True, tag="drop-oldest"):
    """First drop the `count` oldest waiting inputs, then do `then`."""

    count: int
    # True: the dropped texts go into the next turn as a synthetic prompt (`dropped_prompt`).
    summarize: bool
    then: Steer | Queue | Interrupt


Arrival = Start | Steer | Queue | Interrupt | Reject | DropOldest


def decide_arrival(
    settings: QueueSettings, *, run_active: bool, queued_count: int, can_steer: bool = True
) -> Arrival:
    """Decide about one new message (QUE-2, QUE-3).

    `queued_count` is every accepted input that no turn has consumed yet, steered
    ones included. `can_steer` is false while the run cannot take input.
    """
    if not run_active and queued_count == 0:
        return Start()
    action = _busy_action(settings.mode, can_steer) if run_active else Queue()
    if queued_count < settings.cap:
        return action
    if settings.drop == "new":
        return Reject(
            f"The queue of this session is full ({queued_count} waiting). Try again, or send /stop."
        )
    return DropOldest(queued_count - settings.cap + 1, settings.drop == "summarize", action)


def _busy_action(mode: QueueMode, can_steer: bool) -> Steer | Queue | Interrupt:
    if mode == "interrupt":
        return Interrupt()
    if mode in ("followup", "collect") or not can_steer:
        return Queue()
    return Steer(one_at_a_time=mode == "queue", also_queue=mode == "steer-backlog")


# -- draining ----------------------------------------------------------------------------------------------


class QueuedInput(Struct, frozen=True, kw_only=True):
    """An accepted input that waits, in the order of its admission number."""

    admission: int
    text: str
    accepted_ms: int
    channel: str | None = None
    to: str | None = None
    account: str | None = None
    thread: str | None = None
    # Inputs of different trust are never merged: one turn has one principal.
    from_owner: bool = False
    # Whose words these are, and until when more of them are waited for (ROUTE-4).
    principal: str = ""
    gather_until_ms: int | None = None
    provenance: ProvenanceKind = "external_user"


class Batch(Struct, frozen=True):
    """The inputs of one turn and the prompt made from them."""

    inputs: tuple[QueuedInput, ...]
    prompt: str


class Drain(Struct, frozen=True, tag="drain"):
    """Turns to run, one after the other, in this order."""

    batches: tuple[Batch, ...]


class WaitUntil(Struct, frozen=True, tag="wait-until"):
    at_ms: int


def plan_drain(settings: QueueSettings, queued: Sequence[QueuedInput], now_ms: int) -> Drain | WaitUntil:
    """Turn what waits into turns, once no run is active (QUE-2).

    `collect` waits for the quiet window and merges per reply target; `interrupt`
    merges at once; every other mode runs one turn per input.
    """
    waiting = sorted(queued, key=lambda one: one.admission)
    gathered = _gathered(waiting)
    if gathered:
        ready_ms = _gather_ready_ms(gathered, waiting[len(gathered) :], now_ms)
        if now_ms < ready_ms:
            return WaitUntil(ready_ms)
        if settings.mode not in ("collect", "interrupt"):
            groups = [gathered, *([one] for one in waiting[len(gathered) :])]
            return Drain(tuple(Batch(tuple(group), merged_prompt(group)) for group in groups))
    if settings.mode == "collect" and waiting:
        ready_ms = _collect_ready_ms(settings.debounce_ms, waiting, now_ms)
        if now_ms < ready_ms:
            return WaitUntil(ready_ms)
    if settings.mode in ("collect", "interrupt"):
        groups = _merge_groups(waiting)
    else:
        groups = [[one] for one in waiting]
    return Drain(tuple(Batch(tuple(group), merged_prompt(group)) for group in groups))


def _gathered(waiting: Sequence[QueuedInput]) -> list[QueuedInput]:
    """The messages at the head that one sender wrote in a row in one place, as far as more is waited for."""
    if not waiting or waiting[0].gather_until_ms is None:
        return []
    lane = _gather_lane(waiting[0])
    return list(takewhile(lambda one: one.gather_until_ms is not None and _gather_lane(one) == lane, waiting))


def _gather_ready_ms(gathered: Sequence[QueuedInput], behind: Sequence[QueuedInput], now_ms: int) -> int:
    """When to stop waiting: at the last message's time, or at once when somebody waits behind them."""
    last_ms = max(one.gather_until_ms or 0 for one in gathered)
    return now_ms if behind else min(last_ms, gathered[0].accepted_ms + LONGEST_COLLECT_MS)


def _gather_lane(one: QueuedInput) -> tuple[object, ...]:
    return (one.channel, one.to, one.account, one.thread, one.principal)


def _collect_ready_ms(debounce_ms: int, waiting: Sequence[QueuedInput], now_ms: int) -> int:
    # After a clock jumped back, acceptance times may lie ahead; waiting for those could take for ever.
    accepted = [one.accepted_ms for one in waiting if one.accepted_ms <= now_ms]
    if not accepted:
        return now_ms
    return min(max(accepted) + debounce_ms, min(accepted) + max(debounce_ms, LONGEST_COLLECT_MS))


def _merge_groups(waiting: Sequence[QueuedInput]) -> list[list[QueuedInput]]:
    """Group by target and trust in order of first admission; what came from no person stays alone."""
    groups: list[list[QueuedInput]] = []
    open_groups: dict[tuple[object, ...], list[QueuedInput]] = {}
    sizes: dict[tuple[object, ...], int] = {}
    for one in waiting:
        if one.provenance != "external_user":
            groups.append([one])
            continue
        key = (one.channel, one.to, one.account, one.thread, one.from_owner)
        size = sizes.get(key, 0) + len(one.text)
        if key not in open_groups or size > MERGED_MAX_CHARS:
            open_groups[key] = []
            groups.append(open_groups[key])
            size = len(one.text)
        open_groups[key].append(one)
        sizes[key] = size
    return groups


def plan_steer(settings: QueueSettings, waiting: Sequence[QueuedInput]) -> tuple[QueuedInput, ...]:
    """What to append at a boundary of the active run: all in arrival order, or one (legacy `queue`)."""
    ordered = sorted(waiting, key=lambda one: one.admission)
    return tuple(ordered[:1] if settings.mode == "queue" else ordered)


def merged_prompt(inputs: Sequence[QueuedInput]) -> str:
    """One prompt for several messages; a single message is left exactly as it was written."""
    if len(inputs) == 1:
        return inputs[0].text
    numbered = (f"Message {number}:\n{one.text}" for number, one in enumerate(inputs, start=1))
    return "\n\n".join((f"{len(inputs)} messages arrived while you were busy, oldest first.", *numbered))


def dropped_prompt(texts: Sequence[str]) -> str:
    """The synthetic prompt for messages that the cap dropped: one short line each, bounded."""
    lines = [f"- {dropped_line(text)}" for text in texts[:DROPPED_MAX_LINES]]
    if len(texts) > DROPPED_MAX_LINES:
        lines.append(f"- and {len(texts) - DROPPED_MAX_LINES} more")
    return "\n".join((f"Messages dropped because the queue was full ({len(texts)}), oldest first:", *lines))


def dropped_line(text: str) -> str:
    """A message as one short line."""
    # Cut first: splitting megabytes to keep a line would be wasted work.
    line = " ".join(text[: DROPPED_LINE_CHARS * 2].split())
    if len(line) > DROPPED_LINE_CHARS or len(text) > DROPPED_LINE_CHARS * 2:
        return line[: DROPPED_LINE_CHARS - 1].rstrip() + "…"
    return line or "(no text)"


# -- the /queue directive --------------------------------------------------------------------------------


class QueueSet(Struct, frozen=True, tag="set"):
    overrides: QueueOverrides


class QueueClear(Struct, frozen=True, tag="clear"):
    """`/queue default`: forget what the session stored."""


class QueueShow(Struct, frozen=True, tag="show"):
    """`/queue` alone: say what holds."""


class QueueInvalid(Struct, frozen=True, tag="invalid"):
    message: str


QueueDirective = QueueSet | QueueClear | QueueShow | QueueInvalid

_HEAD = re.compile(r"/queue(?:\s*:|(?=\s|\Z))", re.IGNORECASE | re.ASCII)
_WHOLE_NUMBER = re.compile(r"-?[0-9]{1,9}")
_DURATION = re.compile(r"([0-9]{1,9})(ms|s|m|h|d)?")
_UNIT_MS = {None: 1, "ms": 1, "s": 1000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}
_MODES = literal_values(QueueMode)
_MODE_ALIASES = {"steer+backlog": "steer-backlog"}
_DROPS = literal_values(DropPolicy)
QUEUE_USAGE = (
    f"Usage: /queue <{'|'.join(_MODES)}|default> "
    f"[debounce:<number><ms|s|m|h|d>] [cap:<number>] [drop:<{'|'.join(_DROPS)}>]"
)


def parse_queue_directive(text: str) -> QueueDirective | None:
    """Read `/queue collect debounce:2s cap:25 drop:summarize`; None when the text is no `/queue` at all."""
    stripped = text.strip()
    head = _HEAD.match(stripped)
    if head is None:
        return None
    words = stripped[head.end() :].lower().split()
    if not words:
        return QueueShow()
    if words in (["default"], ["reset"]):
        return QueueClear()
    chosen: dict[str, str | int | None] = {}
    for word in words:
        setting = _read_word(word)
        if setting is None:
            return QueueInvalid(f"Not understood: {word[:40]!a}. {QUEUE_USAGE}")
        name, value = setting
        if name in chosen:
            return QueueInvalid(f"{name} is given twice. {QUEUE_USAGE}")
        chosen[name] = value
    return QueueSet(msgspec.convert(chosen, QueueOverrides))


def _read_word(word: str) -> tuple[str, str | int | None] | None:
    name, colon, value = word.partition(":")
    mode = _MODE_ALIASES.get(word, word)
    if not colon and mode in _MODES:
        return "mode", mode
    if name == "drop" and value in _DROPS:
        return "drop", value
    if name == "cap" and _WHOLE_NUMBER.fullmatch(value):
        return "cap", int(value) if int(value) >= 1 else None
    if name == "debounce" and (duration := _DURATION.fullmatch(value)):
        return "debounce_ms", int(duration[1]) * _UNIT_MS[duration[2]]
    return None


# -- steering boundary -----------------------------------------------------------------------------------

SKIPPED_TEXT = "Skipped: a newer message arrived before this call started. It did not run."


def skipped_results(calls: Sequence[ToolCallBlock], now_ms: int) -> tuple[ToolResultMessage, ...]:
    """Results for the calls that steering kept from starting, so that every call stays paired (QUE-5)."""
    return tuple(
        ToolResultMessage(
            tool_call_id=call.id,
            tool_name=call.name,
            content=(TextBlock(SKIPPED_TEXT),),
            timestamp=now_ms,
            is_error=True,
        )
        for call in calls
    )
