"""/model: which model a session uses, and which ones there are (CMD-10, CMD-14)."""

from __future__ import annotations

from msgspec import structs

from openclaw.domain.entry import SessionEntry
from openclaw.domain.modelhint import ModelCandidate, ModelHint, match_model_hint
from openclaw.domain.resets import choose_model
from openclaw.engine.commands.ports import CommandServices, Reply, Request
from openclaw.errors import InvalidRequest

_MOST_LISTED = 40


async def set_model(request: Request, services: CommandServices) -> Reply:
    """`/model [name|#|list|status|default]`. A running turn keeps its model; the next one has the new."""
    word = request.word
    if word in ("", "status"):
        return Reply(_status_text(request))
    if word == "list":
        return Reply(_list_text(request, services.powers.models()))
    running = request.entry.status == "running"
    if word == "default":
        target = request.agent.default_model
        text = f"Model: back to the default, {target.provider}/{target.model}.{_when(running)}"
        return Reply(text, lambda entry: _without_choice(entry, running))
    try:
        hint = _find(request, services)
    except InvalidRequest as error:
        return Reply(f"{error.message} /model list shows what there is.")
    text = f"Model: {hint.provider}/{hint.model} for this session.{_when(running)}"
    return Reply(text, lambda entry: _with_choice(entry, hint, running))


def model_hint(word: str, services: CommandServices, request_default: tuple[str, str]) -> ModelHint | None:
    """The model that one word of a message names, spelled exactly or roughly (LIFE-16)."""
    return match_model_hint(word, services.powers.models(), request_default)


def _find(request: Request, services: CommandServices) -> ModelHint:
    name, candidates = request.args, services.powers.models()
    number = name.removeprefix("#")
    if number.isascii() and number.isdigit() and len(number) <= 4:
        if not 1 <= int(number) <= len(candidates):
            raise InvalidRequest(f"There is no model {name[:10]} in the list; it has {len(candidates)}.")
        chosen = candidates[int(number) - 1]
        return ModelHint(chosen.provider, chosen.model, "")
    default = request.agent.default_model
    hint = match_model_hint(name, candidates, (default.provider, default.model))
    if hint is not None:
        return hint
    provider, _, model = services.powers.check_model(name).partition("/")
    return ModelHint(provider, model, "")


def _with_choice(entry: SessionEntry, hint: ModelHint, running: bool) -> SessionEntry:
    chosen = choose_model(entry, hint)
    return structs.replace(chosen, live_model_switch_pending=True) if running else chosen


def _without_choice(entry: SessionEntry, running: bool) -> SessionEntry:
    return structs.replace(
        entry,
        provider_override=None,
        model_override=None,
        model_override_source=None,
        auth_profile_override=None,
        live_model_switch_pending=True if running else entry.live_model_switch_pending,
    )


def _when(running: bool) -> str:
    return " The turn in progress finishes with its own." if running else ""


def _status_text(request: Request) -> str:
    entry = request.entry
    target = request.target
    default = request.agent.default_model
    chosen = f"{target.provider}/{target.model}"
    if entry.model_override is None:
        return f"Model: {chosen} (the default). /model list shows the others."
    how = "chosen here" if entry.model_override_source != "auto" else "a fallback chose it"
    return f"Model: {chosen} ({how}). Default: {default.provider}/{default.model}."


def _list_text(request: Request, candidates: tuple[ModelCandidate, ...]) -> str:
    if not candidates:
        return "No models are configured. The gateway's configuration lists them under models.providers."
    target = request.target
    lines = ["Models:"]
    for number, one in enumerate(candidates[:_MOST_LISTED], start=1):
        alias = f" ({one.alias})" if one.alias else ""
        mark = " - in use" if (one.provider, one.model) == (target.provider, target.model) else ""
        lines.append(f"{number}. {one.provider}/{one.model}{alias}{mark}")
    if len(candidates) > _MOST_LISTED:
        lines.append(f"and {len(candidates) - _MOST_LISTED} more")
    lines.append("Choose with /model and a name or a number.")
    return "\n".join(lines)
