"""Pruning of old tool results: candidates, gates, trimming and clearing, one rule at a time (SPEC §19)."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from openclaw.domain.pruning import (
    HardClear,
    PrunedView,
    PruneState,
    PruningSettings,
    PruningTools,
    SoftTrim,
    anthropic_defaults,
    prune,
    trim_text,
)
from openclaw.domain.tokens import message_weight
from openclaw.domain.transcript import (
    AssistantMessage,
    ImageBlock,
    Message,
    TextBlock,
    ToolCallBlock,
    ToolResultMessage,
    UserMessage,
    text_of,
)

NOW = 1_794_744_000_000
TTL = 300_000
PLACEHOLDER = "[Old tool result content cleared]"


def user(text: str = "go on") -> Message:
    return UserMessage(text, 1)


def said(text: str = "ok") -> Message:
    return AssistantMessage((TextBlock(text),), 1)


def called(number: int) -> Message:
    return AssistantMessage((ToolCallBlock(f"call{number}", "read", {}),), 1)


def result(number: int, chars: int, tool: str = "read", **more: Any) -> ToolResultMessage:
    text = f"{number}:" + "x" * (chars - 2 if number < 10 else chars - 3)
    return ToolResultMessage(f"call{number}", tool, (TextBlock(text),), 1, **more)


def history(*chars: int, after: int = 3) -> tuple[Message, ...]:
    """A user turn, results of these sizes each after its call, then `after` plain answers."""
    made: list[Message] = [user()]
    for number, size in enumerate(chars, 1):
        made += [called(number), result(number, size)]
    return (*made, *(said() for _ in range(after)))


def settings(**fields: Any) -> PruningSettings:
    return PruningSettings(**fields)


def idle(
    messages: tuple[Message, ...],
    chosen: PruningSettings | None = None,
    *,
    window: int = 2500,
    before: PruneState | None = None,
    now: int = NOW,
) -> PrunedView:
    """Prune after a pause that is longer than the ttl; 2,500 tokens are 10,000 characters."""
    return prune(
        messages,
        chosen or settings(),
        window_tokens=window,
        last_call_ms=now - TTL - 1,
        now_ms=now,
        before=before,
    )


def texts(view: PrunedView) -> list[str]:
    return [text_of(message) for message in view.messages if isinstance(message, ToolResultMessage)]


# -- settings --------------------------------------------------------------------------------------------


@pytest.mark.spec("PRUNE-2")
def test_the_defaults_are_those_of_the_configuration() -> None:
    from openclaw.config.agents_section import ContextPruningConfig

    assert ContextPruningConfig().ttl_ms is None, "not set: the provider decides (PRUNE-6)"
    chosen = msgspec.structs.replace(ContextPruningConfig(), ttl_ms=300_000)
    made = msgspec.convert(chosen, PruningSettings, from_attributes=True)
    assert made == PruningSettings()
    assert (made.mode, made.ttl_ms, made.keep_last_assistants) == ("cache-ttl", 300_000, 3)
    assert (made.soft_trim_ratio, made.hard_clear_ratio, made.min_prunable_tool_chars) == (0.3, 0.5, 50_000)
    assert made.soft_trim == SoftTrim(4000, 1500, 1500)
    assert made.hard_clear == HardClear(True, PLACEHOLDER)
    assert made.tools == PruningTools((), ())


@pytest.mark.spec("PRUNE-2")
def test_off_changes_nothing_and_forgets() -> None:
    messages = history(9000)
    view = idle(messages, settings(mode="off"))
    assert view.messages is messages
    assert (view.gate, view.changed, view.state.seen) == (None, (), 0)
    pruned = idle(messages)
    again = idle(messages, settings(mode="off"), before=pruned.state)
    assert again.messages is messages
    assert not again.state.pruned


# -- the gate --------------------------------------------------------------------------------------------


@pytest.mark.spec("PRUNE-3")
@pytest.mark.parametrize(
    ("last_call", "gate"),
    [(None, None), (NOW, None), (NOW - TTL, None), (NOW - TTL - 1, "idle"), (NOW + 50, None)],
)
def test_a_pause_longer_than_the_ttl_opens_the_gate(last_call: int | None, gate: str | None) -> None:
    messages = history(9000)
    # The window is so large that size alone never opens the gate, and the ratio so small that all counts.
    chosen = settings(soft_trim_ratio=0.00001)
    view = prune(messages, chosen, window_tokens=10_000_000, last_call_ms=last_call, now_ms=NOW)
    closed = settings(soft_trim_ratio=0.00001, min_prunable_tool_chars=0, tools=PruningTools(deny=("*",)))
    assert view.gate == (gate or "size")  # candidates of 9,000 characters pass so small a share
    denied = prune(messages, closed, window_tokens=10_000_000, last_call_ms=last_call, now_ms=NOW)
    assert denied.gate == gate
    assert denied.messages is messages


@pytest.mark.spec("PRUNE-3")
def test_after_a_prune_the_clock_starts_again() -> None:
    first = idle(history(9000))
    assert first.changed == (2,)
    assert first.state.pruned_at_ms == NOW
    longer = (*history(9000), user(), called(2), result(2, 9000), *(said() for _ in range(3)))
    # The last call is long ago, but the prune is not: only size could open the gate, and 9,000 of
    # 40,000 characters are not enough for that.
    at = NOW + TTL
    view = prune(longer, settings(), window_tokens=10_000, last_call_ms=1, now_ms=at, before=first.state)
    assert (view.gate, view.changed) == (None, ())
    later = prune(longer, settings(), window_tokens=10_000, last_call_ms=1, now_ms=at + 1, before=first.state)
    assert later.gate == "idle"


@pytest.mark.spec("PRUNE-3")
def test_a_busy_session_is_pruned_when_candidates_fill_their_share() -> None:
    messages = history(6000, 6000)
    weight = sum(message_weight(m) for m in messages if isinstance(m, ToolResultMessage))
    chosen = settings(soft_trim_ratio=weight / 40_000)
    view = prune(messages, chosen, window_tokens=10_000, last_call_ms=NOW, now_ms=NOW)
    assert (view.gate, view.changed) == ("size", (2, 4))
    stricter = settings(soft_trim_ratio=(weight + 1) / 40_000)
    view = prune(messages, stricter, window_tokens=10_000, last_call_ms=NOW, now_ms=NOW)
    assert (view.gate, view.changed) == (None, ())
    assert view.messages is messages


@pytest.mark.spec("PRUNE-3")
def test_a_busy_session_waits_until_enough_is_new() -> None:
    chosen = settings(soft_trim_ratio=0.1, min_prunable_tool_chars=9000)
    busy: dict[str, Any] = {"window_tokens": 50_000, "last_call_ms": NOW, "now_ms": NOW}
    first = prune(history(20_000, 20_000), chosen, **busy)
    assert first.gate == "size"
    # Old results stay as they were trimmed; one new candidate of 5,000 characters is not worth a new prefix.
    grown = (*history(20_000, 20_000), user(), called(3), result(3, 5000), said(), said(), said())
    second = prune(grown, chosen, **busy, before=first.state)
    assert (second.gate, second.changed) == (None, ())
    assert second.messages[: len(first.messages)] == first.messages
    assert texts(second)[-1] == text_of(grown[-4])
    more = (*grown, user(), called(4), result(4, 18_000), said(), said(), said())
    third = prune(more, chosen, **busy, before=second.state)
    assert third.gate == "size"
    assert third.messages[: len(first.messages)] == first.messages
    assert len(third.changed) == 2


@pytest.mark.spec("PRUNE-3")
def test_without_new_candidates_size_alone_opens_nothing() -> None:
    chosen = settings(soft_trim_ratio=0.0, min_prunable_tool_chars=0)
    nothing = prune((user(), said()), chosen, window_tokens=10, last_call_ms=NOW, now_ms=NOW)
    assert nothing.gate is None


# -- candidates ------------------------------------------------------------------------------------------


@pytest.mark.spec("PRUNE-4")
@pytest.mark.parametrize(("keep", "kept_whole"), [(1, 0), (2, 1), (3, 2), (4, 3)])
def test_results_among_the_newest_assistant_messages_stay_whole(keep: int, kept_whole: int) -> None:
    view = idle(history(9000, 9000, 9000, after=0), settings(keep_last_assistants=keep, hard_clear=CLEAR_OFF))
    whole = [text for text in texts(view) if len(text) == 9000]
    # Each result follows its call; the one behind the k-th newest call is protected as well.
    assert len(whole) == min(kept_whole + 1, 3)
    assert texts(view)[::-1][: len(whole)] == whole[::-1]


CLEAR_OFF = HardClear(enabled=False)


@pytest.mark.spec("PRUNE-4")
def test_with_fewer_assistant_messages_than_are_kept_nothing_is_old() -> None:
    messages = history(9000, after=1)
    assert idle(messages, settings(keep_last_assistants=3)).messages is messages
    assert idle(messages, settings(keep_last_assistants=2)).changed == ()
    assert idle(messages, settings(keep_last_assistants=1)).changed == (2,)


@pytest.mark.spec("PRUNE-4")
def test_keeping_none_makes_every_result_a_candidate() -> None:
    messages = (user(), called(1), result(1, 9000))
    assert idle(messages, settings(keep_last_assistants=0)).changed == (2,)


@pytest.mark.spec("PRUNE-4")
def test_results_before_the_first_user_message_stay() -> None:
    early = (called(7), result(7, 9000))
    view = idle((*early, *history(9000)))
    assert view.changed == (4,)
    assert view.messages[:2] == early


@pytest.mark.spec("PRUNE-4")
def test_users_assistants_and_results_with_images_never_change() -> None:
    picture = ToolResultMessage("call9", "shot", (TextBlock("y" * 9000), ImageBlock("AAAA", "image/png")), 1)
    messages = (user("u" * 9000), said("s" * 9000), called(9), picture, *history(9000))
    view = idle(messages)
    assert view.changed == (6,)
    assert all(new == old for n, (new, old) in enumerate(zip(view.messages, messages, strict=True)) if n != 6)


@pytest.mark.spec("PRUNE-4")
@pytest.mark.parametrize(
    ("tools", "changed"),
    [
        (PruningTools(), True),
        (PruningTools(allow=("READ",)), True),
        (PruningTools(allow=("re*",)), True),
        (PruningTools(allow=("exec",)), False),
        (PruningTools(deny=("R*D",)), False),
        (PruningTools(allow=("read",), deny=("read",)), False),
        (PruningTools(allow=("*",), deny=("exec",)), True),
    ],
)
def test_the_tool_filter_knows_wildcards_and_deny_wins(tools: PruningTools, changed: bool) -> None:
    assert bool(idle(history(9000), settings(tools=tools)).changed) is changed


# -- the algorithm ---------------------------------------------------------------------------------------


@pytest.mark.spec("PRUNE-5")
def test_below_the_ratio_nothing_happens_and_at_it_trimming_begins() -> None:
    messages = history(9000)
    total = sum(message_weight(message) for message in messages)
    at = settings(soft_trim_ratio=total / 10_000)
    above = settings(soft_trim_ratio=(total + 1) / 10_000)
    assert idle(messages, above).messages is messages
    assert idle(messages, above).gate == "idle"
    assert idle(messages, at).changed == (2,)


@pytest.mark.spec("PRUNE-1", "PRUNE-5")
def test_a_long_result_keeps_head_and_tail_and_names_its_size() -> None:
    messages = history(4000, 4001)
    long = text_of(messages[4])
    view = idle(messages)
    assert view.changed == (4,)
    shown = texts(view)
    assert len(shown[0]) == 4000
    assert shown[1].startswith(long[:1500] + "\n...\n" + long[-1500:])
    assert "4001 characters" in shown[1]
    assert len(shown[1]) < 4001
    # The context that came in is as it was: the stored history does not change.
    assert len(text_of(messages[4])) == 4001
    kept = view.messages[4]
    assert isinstance(kept, ToolResultMessage)
    assert (kept.tool_call_id, kept.tool_name, kept.is_error) == ("call2", "read", False)


@pytest.mark.spec("PRUNE-5")
def test_trimming_that_would_not_shorten_is_left_out() -> None:
    assert trim_text("x" * 10, SoftTrim(10, 2, 2)) is None
    assert trim_text("x" * 11, SoftTrim(10, 2, 2)) is None
    assert trim_text("x" * 4001, SoftTrim(4000, 3000, 3000)) is None
    headless = trim_text("a" * 500 + "b" * 500, SoftTrim(10, 0, 5))
    assert headless is not None
    assert headless.startswith("\n...\nbbbbb\n")
    tailless = trim_text("a" * 500 + "b" * 500, SoftTrim(10, 5, 0))
    assert tailless is not None
    assert tailless.startswith("aaaaa\n...\n\n")


@pytest.mark.spec("PRUNE-5")
def test_the_oldest_are_cleared_until_the_ratio_is_reached() -> None:
    chosen = settings(min_prunable_tool_chars=12_000)
    messages = history(4000, 4000, 4000)
    view = idle(messages, chosen, window=5000)  # 20,000 characters; half of it is the limit
    assert texts(view)[0] == PLACEHOLDER
    assert [len(text) for text in texts(view)[1:]] == [4000, 4000]
    assert view.changed == (2,)
    view = idle(messages, chosen, window=4000)
    assert texts(view)[:2] == [PLACEHOLDER, PLACEHOLDER]
    assert len(texts(view)[2]) == 4000


@pytest.mark.spec("PRUNE-5")
def test_clearing_asks_for_enough_candidates_and_its_switch() -> None:
    messages = history(4000, 4000, 4000)
    assert idle(messages, settings(min_prunable_tool_chars=12_001), window=5000).changed == ()
    off = settings(min_prunable_tool_chars=0, hard_clear=CLEAR_OFF)
    assert idle(messages, off, window=5000).changed == ()
    own = settings(min_prunable_tool_chars=0, hard_clear=HardClear(placeholder="(gone)"))
    assert texts(idle(messages, own, window=5000))[0] == "(gone)"


@pytest.mark.spec("PRUNE-5")
def test_clearing_begins_at_the_ratio_not_below_it() -> None:
    messages = history(4000, 4000)
    total = sum(message_weight(message) for message in messages)
    at = settings(min_prunable_tool_chars=0, hard_clear_ratio=total / 10_000)
    below = settings(min_prunable_tool_chars=0, hard_clear_ratio=(total + 1) / 10_000)
    assert idle(messages, at).changed == (2,)
    assert idle(messages, below).changed == ()


@pytest.mark.spec("PRUNE-5")
def test_a_result_shorter_than_the_placeholder_is_not_replaced_by_it() -> None:
    chosen = settings(min_prunable_tool_chars=0, hard_clear_ratio=0.0)
    view = idle(history(len(PLACEHOLDER), len(PLACEHOLDER) + 1, 4000), chosen)
    assert texts(view)[1:] == [PLACEHOLDER, PLACEHOLDER]
    assert view.changed == (4, 6)


@pytest.mark.spec("PRUNE-6")
@pytest.mark.parametrize(
    ("credential", "heartbeat", "cache"),
    [("oauth", 3_600_000, None), ("token", 3_600_000, None), ("api_key", 1_800_000, 3_600_000)],
)
def test_anthropic_credentials_have_defaults_and_explicit_values_win(
    credential: Any, heartbeat: int, cache: int | None
) -> None:
    made = anthropic_defaults(credential)
    assert (made.pruning_mode, made.heartbeat_every_ms, made.cache_ttl_ms) == ("cache-ttl", heartbeat, cache)
    told = anthropic_defaults(credential, pruning_mode="off", heartbeat_every_ms=0, cache_ttl_ms=5)
    assert (told.pruning_mode, told.heartbeat_every_ms, told.cache_ttl_ms) == ("off", 0, 5)
