"""One pass over a context: ask for a summary, judge the reply, or make one without a model.

Plain functions that may take a while on a long conversation; `engine.compaction`
runs them off the event loop and decides what follows. They write nothing.
"""

from __future__ import annotations

from msgspec import Struct

from openclaw.domain.compaction import (
    LEAST_SUMMARY,
    Cut,
    Ineffective,
    Shrunk,
    Strategy,
    cut_everything,
    find_cut,
    judge_summary,
    keep_for,
    room_for_summary,
)
from openclaw.domain.sanitise import sanitise_assistant_text
from openclaw.domain.summaries import (
    RESULT_CHARS,
    SHORT_RESULT_CHARS,
    Files,
    SummaryTexts,
    complete_summary,
    files_of,
    local_summary,
    summary_prompt,
)
from openclaw.domain.tokens import message_tokens, text_tokens
from openclaw.domain.transcript import UserMessage, text_of
from openclaw.engine.compaction_context import ReadContext, summary_as_message
from openclaw.engine.ports import ModelDone, ModelRequest, ModelTarget
from openclaw.engine.texts import text_of_file

LOCAL_TOKENS = 4000
_FRAME = message_tokens(summary_as_message(""))


class Pass(Struct, frozen=True):
    """A summary that is worth committing."""

    summary: str
    cut: Cut
    tokens_after: int
    strategy: Strategy
    files: Files


class Useless(Struct, frozen=True):
    """A pass that must not be kept, and why."""

    reason: str


_TEXTS = SummaryTexts(
    system=text_of_file("compaction_system.txt"),
    request=text_of_file("compaction_request.txt"),
    turn=text_of_file("compaction_turn.txt"),
    identifiers=text_of_file("compaction_identifiers.txt"),
)


def request_summary(
    context: ReadContext, cut: Cut, strategy: Strategy, target: ModelTarget, instructions: str
) -> ModelRequest:
    """The call that asks for a summary: one message, no tools, nothing to cache."""
    window = target.context_window
    output = max(LEAST_SUMMARY, min(target.max_tokens, window // 4, room_for_summary(context.task, cut)))
    prompt = summary_prompt(
        context.task, cut, _TEXTS,
        instructions=instructions,
        limit_tokens=window - output - text_tokens(_TEXTS.system) - window // 10,
        result_chars=RESULT_CHARS if strategy == "summary" else SHORT_RESULT_CHARS,
    )  # fmt: skip
    message = UserMessage(prompt, context.now_ms)
    return ModelRequest(
        target, _TEXTS.system, (message,), max_tokens=output, now_ms=context.now_ms, cache=False
    )


def judge_reply(context: ReadContext, cut: Cut, strategy: Strategy, done: ModelDone) -> Pass | Useless:
    """Whether a reply can be kept. What it says about itself counts for nothing (PITFALLS E3)."""
    if done.failure is not None:
        return Useless(done.failure.message)
    if done.message.stop_reason == "length":
        return Useless("the summary was cut off in the middle")
    room = room_for_summary(context.task, cut) - _FRAME
    said = text_of(done.message)
    if text_tokens(said) > max(room, 0) * 2:  # too long to look at closely
        return Useless(f"the summary is longer than the {max(room, 0)} tokens that there is room for")
    said = sanitise_assistant_text(said).strip()
    if not said:
        return Useless("the model gave no summary")
    return _weigh(context, cut, strategy, said, room)


def _weigh(context: ReadContext, cut: Cut, strategy: Strategy, said: str, room: int) -> Pass | Useless:
    task = context.task
    noted = files_of(task.items[: cut.index], context.files)
    summary = complete_summary(said, task, cut, noted, room)
    verdict = judge_summary(task, cut, summary_as_message(summary))
    if isinstance(verdict, Ineffective):
        return Useless(verdict.reason)
    return Pass(summary, cut, verdict.tokens, strategy, noted)


def summarise_locally(context: ReadContext) -> Pass | Useless:
    """The last resort: no model, always fits, keeps recent messages if there is room for them."""
    task = context.task
    recent = find_cut(task.items, keep_for(task, "local"))
    for cut in (recent, cut_everything(task.items)):
        if cut is None:
            continue
        room = room_for_summary(task, cut) - _FRAME
        if room < LEAST_SUMMARY:
            continue
        noted = files_of(task.items[: cut.index], context.files)
        summary = local_summary(task, cut, noted, min(room, LOCAL_TOKENS))
        verdict = judge_summary(task, cut, summary_as_message(summary))
        if isinstance(verdict, Shrunk):
            return Pass(summary, cut, verdict.tokens, "local", noted)
    return Useless("instructions and tools alone fill the model's window")
