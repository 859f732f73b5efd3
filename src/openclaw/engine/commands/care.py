"""The conversation as a whole: /compact, /undo, /reset soft, /btw, /export-session (CMD-7, CMD-16)."""

from __future__ import annotations

from msgspec import structs

from openclaw.domain.commandtable import usage_of
from openclaw.domain.entry import SessionEntry
from openclaw.engine.commands.ports import CommandServices, Reply, Request, not_built
from openclaw.engine.commands.status import duration
from openclaw.engine.commands.stopping import end_runs


async def compact(request: Request, services: CommandServices) -> Reply:
    """`/compact [instructions]`, or `/compact undo`. A turn in progress is aborted first (COMP-1, COMP-9)."""
    if request.args.lower() == "undo":
        return await undo_compaction(request, services)
    if services.powers.compact is None:
        return not_built("/compact")
    run = await services.store.active_run(request.session_key)
    if run is not None and not await end_runs((run,), services, "compact"):
        return Reply(
            "The turn in progress did not end, so nothing was compacted. Send /stop, then try again."
        )
    report = await services.powers.compact(request.session_key, request.args or None)
    return Reply(report.text)


async def undo_compaction(request: Request, services: CommandServices) -> Reply:
    if services.powers.undo_compaction is None:
        return not_built("/compact undo")
    report = await services.powers.undo_compaction(request.session_key)
    return Reply(report.text)


async def undo(request: Request, services: CommandServices) -> Reply:
    """`/undo reset` points back at the conversation before the last reset; `/undo compact` as above."""
    word = request.args.lower()
    if word in ("compact", "compaction"):
        return await undo_compaction(request, services)
    if word != "reset":
        return Reply(usage_of("undo"))
    if await services.store.active_run(request.session_key) is not None:
        return Reply("A turn is running here. Send /stop first, then /undo reset.")
    windows = await services.store.windows_of(request.session_key)
    by_no = {one.window_no: one for one in windows}
    current = next((one for one in windows if one.session_id == request.entry.session_id), None)
    earlier = by_no.get(current.previous_no or 0) if current is not None else None
    if earlier is None:
        return Reply("There is no earlier conversation to go back to.")
    age = duration(request.now_ms - earlier.started_at)
    return Reply(f"Back in the conversation that started {age} ago.", undo_reset=True)


async def reset_soft(request: Request, services: CommandServices) -> Reply:
    """`/reset soft`: the conversation and its id stay; what was prepared for the model is prepared anew."""
    return Reply("The conversation stays. The next turn starts with a fresh prompt.", soften)


def soften(entry: SessionEntry) -> SessionEntry:
    """Forget what was prepared for the model, and a model that a fallback chose."""
    softened = structs.replace(
        entry, system_sent=False, system_prompt_report=None, skills_snapshot=None, aborted_last_run=False
    )
    if entry.model_override_source != "auto":
        return softened
    return structs.replace(
        softened,
        provider_override=None,
        model_override=None,
        model_override_source=None,
        auth_profile_override=None,
    )


async def ask_aside(request: Request, services: CommandServices) -> Reply:
    """`/btw question`: answered over the current context; the conversation does not change (CMD-16)."""
    if not request.args:
        return Reply(usage_of("btw"))
    if services.powers.ask_aside is None:
        return not_built("/btw")
    return Reply(await services.powers.ask_aside(request.session_key, request.args))


async def export_session(request: Request, services: CommandServices) -> Reply:
    """`/export-session [path]`, for owners."""
    if services.powers.export is None:
        return not_built("/export-session")
    where = await services.powers.export(request.session_key, request.args or None)
    return Reply(f"Exported to {where}")
