"""`openclaw models`: which models there are, which one is used, and whether it answers. Needs no gateway."""

from __future__ import annotations

import asyncio
import os
from typing import TYPE_CHECKING, Any

import click

from openclaw.cli.options import json_option, timeout_option
from openclaw.cli.render import Column, note, print_json, print_labels, print_table, say
from openclaw.domain.terminaltext import one_line, printable, tokens
from openclaw.errors import InvalidRequest, Unavailable

if TYPE_CHECKING:
    from openclaw.config.schema import Config
    from openclaw.engine.ports import ModelTarget
    from openclaw.models.checking import CheckResult
    from openclaw.models.discovery import Found

Json = dict[str, Any]
_COLUMNS = (
    Column("Model", fold=True),
    Column("Context", right=True),
    Column("$/M in", right=True),
    Column("$/M out", right=True),
    Column("From"),
    Column(""),
)


@click.group(short_help="The models: list them, choose one, test it.")
def models() -> None:
    """Which models there are, which one is used, and whether it answers.

    \b
    Examples:
      openclaw models list
      openclaw models set anthropic/claude-sonnet-5-5
      openclaw models test
    """


# -- list ------------------------------------------------------------------------------------------


@models.command(name="list", short_help="What is configured and what is within reach.")
@click.option("--no-probe", is_flag=True, help="Do not ask for servers on this machine.")
@json_option
def list_(no_probe: bool, as_json: bool) -> None:
    """Show the models that are configured, and those within reach: keys in the
    environment, servers on this machine.

    \b
    Examples:
      openclaw models list
      openclaw models list --no-probe --json
    """
    from openclaw.app.discovery import choose_model, find_models
    from openclaw.app.model_setup import load_for_change
    from openclaw.models.discovery import found_in_environment

    env = dict(os.environ)
    config = load_for_change(env).config
    found = found_in_environment(env) if no_probe else asyncio.run(find_models(env))
    choice = choose_model(config, env, found)
    rows = _rows(config, env, found, choice.ref)
    if as_json:
        chosen = {"ref": choice.ref, "reason": choice.reason, "payer": choice.payer}
        print_json({"ok": True, "default": chosen, "models": rows})
        return
    print_table(_COLUMNS, [_cells(row) for row in rows])
    say()
    print_labels(
        [("in use", one_line(choice.ref)), ("why", one_line(choice.reason)), ("paid by", choice.payer)]
    )


def _rows(config: Config, env: dict[str, str], found: tuple[Found, ...], chosen: str) -> list[Json]:
    """One row per model, configured ones first, each once."""
    from openclaw.app.discovery import providers_in_reach
    from openclaw.config import views
    from openclaw.models.catalog import OFFLINE_REF, resolve_target

    named: dict[str, str] = {}
    for one in views.provider_models(config):
        named.setdefault(f"{one.provider}/{one.model.id}", "config")
    for ref in config.agents.defaults.models:
        named.setdefault(ref, "config")
    for provider in found:
        for model in provider.models:
            named.setdefault(f"{provider.provider}/{model.name}", provider.where)
    if chosen != OFFLINE_REF:
        named.setdefault(chosen, "config")
    named.setdefault(OFFLINE_REF, "built in")
    providers = providers_in_reach(config, env, found)
    rows = []
    for ref, source in named.items():
        try:
            target = resolve_target(ref, providers)
        except InvalidRequest:
            continue  # an alias for a model that is no longer configured
        rows.append(_row(target, source, views.model_alias(config, ref), ref == chosen))
    return rows


def _row(target: ModelTarget, source: str, alias: str | None, in_use: bool) -> Json:
    price = target.price
    return {
        "ref": f"{target.provider}/{target.model}",
        "provider": target.provider,
        "model": target.model,
        "alias": alias,
        "api": target.api,
        "contextWindow": target.context_window,
        "maxTokens": target.max_tokens,
        "reasoning": target.reasoning,
        "images": target.images,
        "price": {"input": price.input, "output": price.output},
        "source": source,
        "inUse": in_use,
    }


def _cells(row: Json) -> list[str]:
    marks = [f"alias {row['alias']}" if row["alias"] else "", "in use" if row["inUse"] else ""]
    return [
        row["ref"],
        tokens(row["contextWindow"]),
        _dollars(row["price"]["input"]),
        _dollars(row["price"]["output"]),
        row["source"],
        ", ".join(mark for mark in marks if mark),
    ]


def _dollars(amount: float | None) -> str:
    return "-" if amount is None else f"{amount:g}"


# -- set -------------------------------------------------------------------------------------------


@models.command(name="set", short_help="Choose the model that agents use.")
@click.argument("model", metavar="MODEL")
@click.option("--agent", "agent_id", metavar="ID", help="Only for this agent of agents.list.")
@json_option
def set_(model: str, agent_id: str | None, as_json: bool) -> None:
    """Choose the model that agents use: PROVIDER/MODEL, or an alias.

    \b
    Examples:
      openclaw models set anthropic/claude-sonnet-5-5
      openclaw models set ollama/qwen3 --agent helper
    """
    from openclaw.app.discovery import choose_model, providers_in_reach
    from openclaw.app.model_setup import load_for_change, write_agent_model
    from openclaw.config import views
    from openclaw.models.catalog import resolve_target

    env = dict(os.environ)
    loaded = load_for_change(env)
    ref = views.resolve_alias(loaded.config, model)
    target = resolve_target(ref, providers_in_reach(loaded.config, env))
    chosen = f"{target.provider}/{target.model}"
    written = write_agent_model(loaded, chosen, agent_id, env)
    if as_json:
        print_json({"ok": True, "model": chosen, "agent": agent_id, "path": str(written.path)})
        return
    who = "every agent without a model of its own" if agent_id is None else f"the agent {agent_id}"
    say(f"{printable(chosen)} is now the model of {printable(who)}.")
    if agent_id is None:
        say(f"Paid by: {choose_model(written.config, env).payer}.")
    say("A running gateway uses it from the next turn. Try it with: openclaw models test")


# -- test ------------------------------------------------------------------------------------------


@models.command(short_help="Make one tiny call and show what it took.")
@click.argument("model", metavar="[MODEL]", required=False)
@timeout_option
@json_option
@click.pass_context
def test(ctx: click.Context, model: str | None, timeout_s: float, as_json: bool) -> None:
    """Make one tiny call to MODEL, or to the model in use, and show time, tokens and cost.

    \b
    Examples:
      openclaw models test
      openclaw models test ollama/qwen3 --timeout 60000
    """
    target = find_target(model)
    result = run_check(target, timeout_s)
    if as_json:
        print_json(check_body(target, result))
    elif result.failure is not None:
        note(f"{printable(result.failure.message)}")
    else:
        say(f"{printable(f'{target.provider}/{target.model}')} answers: {printable(result.said)}")
        print_labels(check_lines(result))
    ctx.exit(0 if result.ok else 1)


def find_target(model: str | None) -> ModelTarget:
    """The model that was named, or the one in use."""
    from openclaw.app.discovery import choose_model, find_models, providers_in_reach
    from openclaw.app.model_setup import load_for_change
    from openclaw.config import views
    from openclaw.models.catalog import resolve_target

    env = dict(os.environ)
    config = load_for_change(env).config
    found = asyncio.run(find_models(env))
    ref = choose_model(config, env, found).ref if model is None else views.resolve_alias(config, model)
    return resolve_target(ref, providers_in_reach(config, env, found))


def run_check(target: ModelTarget, timeout_s: float) -> CheckResult:
    """One tiny call, given up after a while. Raises Unavailable when it takes longer."""
    from openclaw.app.model_setup import check_target

    async def bounded() -> CheckResult:
        async with asyncio.timeout(timeout_s):
            return await check_target(target)

    try:
        return asyncio.run(bounded())
    except TimeoutError:
        raise Unavailable(
            f"{target.provider}/{target.model}: no answer within {timeout_s:g} s. "
            "A local server may still be loading the model; give it more time with --timeout."
        ) from None


def check_lines(result: CheckResult) -> list[tuple[str, str]]:
    """What a call took, in words."""
    first = "" if result.first_ms is None else f", first word after {result.first_ms} ms"
    lines = [("time", f"{result.took_ms} ms{first}")]
    usage = result.usage
    if usage is None:
        return [*lines, ("tokens", "the server does not say")]
    lines.append(("tokens", f"{usage.input + usage.cache_read + usage.cache_write} in, {usage.output} out"))
    return [*lines, ("cost", _cost(usage.cost.total))]


def _cost(dollars: float) -> str:
    return f"${dollars:.6f}" if dollars else "none, or its price is not known"


def check_body(target: ModelTarget, result: CheckResult) -> Json:
    """The result of a call as `--json` prints it."""
    usage = result.usage
    failure = result.failure
    return {
        "ok": result.ok,
        "model": f"{target.provider}/{target.model}",
        "said": result.said,
        "tookMs": result.took_ms,
        "firstMs": result.first_ms,
        "usage": None
        if usage is None
        else {
            "input": usage.input,
            "output": usage.output,
            "cacheRead": usage.cache_read,
            "cacheWrite": usage.cache_write,
            "costUsd": usage.cost.total,
        },
        "error": None
        if failure is None
        else {
            "type": failure.kind,
            "code": "UNAVAILABLE",
            "message": failure.message,
            "retryable": failure.retryable,
        },
    }
