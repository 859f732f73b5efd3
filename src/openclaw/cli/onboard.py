"""`openclaw onboard`: ask for a model, test it, write the config. Nothing is written before the end.

All answers can be given as flags; what is missing is asked for on a terminal and
is a clear mistake elsewhere.
"""

from __future__ import annotations

import asyncio
import os
import sys
from typing import TYPE_CHECKING, Any

import click
from msgspec import Struct

from openclaw.cli.models import check_body, check_lines, run_check
from openclaw.cli.options import json_option
from openclaw.cli.render import note, print_json, print_labels, say
from openclaw.domain.terminaltext import one_line, printable
from openclaw.errors import InvalidRequest

if TYPE_CHECKING:
    from openclaw.app.model_setup import ModelSetup
    from openclaw.engine.ports import ModelTarget
    from openclaw.models.checking import CheckResult
    from openclaw.models.discovery import Found

TEST_TIMEOUT_S = 60.0
_APIS = ("openai-completions", "anthropic-messages")


class Answers(Struct, frozen=True, kw_only=True):
    """What the person said on the command line; None where nothing."""

    provider: str | None
    model: str | None
    api_key: str | None
    api_key_env: str | None
    base_url: str | None
    api: str | None

    def __repr__(self) -> str:
        return f"Answers({self.provider}/{self.model})"  # never the key


@click.command(short_help="Set up a model: ask, test, write the config.")
@click.option("--provider", metavar="NAME", help="anthropic, openai, openrouter, ollama, … or a new name.")
@click.option("--model", metavar="NAME", help="The provider's name of the model.")
@click.option("--api-key", metavar="KEY", help="The key itself; - reads it from standard input.")
@click.option("--api-key-env", metavar="VAR", help="Keep only a reference to this environment variable.")
@click.option("--base-url", metavar="URL", help="Where the server is, for a provider of your own.")
@click.option("--api", type=click.Choice(_APIS), help="What the server speaks.")
@click.option("--skip-test", is_flag=True, help="Write without making a call.")
@click.option("--non-interactive", is_flag=True, help="Ask nothing; what is missing is a mistake.")
@json_option
@click.pass_context
def onboard(
    ctx: click.Context,
    provider: str | None,
    model: str | None,
    api_key: str | None,
    api_key_env: str | None,
    base_url: str | None,
    api: str | None,
    skip_test: bool,
    non_interactive: bool,
    as_json: bool,
) -> None:
    """Set up the model that agents use: asks for a key or an address, tests it, and
    writes the config, which only you can read. Ctrl-C leaves everything as it was.

    \b
    Examples:
      openclaw onboard
      openclaw onboard --provider anthropic --api-key-env ANTHROPIC_API_KEY
      openclaw onboard --provider ollama --model qwen3 --non-interactive
      openclaw onboard --provider work --base-url https://llm.example/v1 --model big
    """
    from openclaw.app.model_setup import load_for_change, write_setup

    asking = not (non_interactive or as_json) and sys.stdin.isatty()
    env = dict(os.environ)
    loaded = load_for_change(env)
    answers = Answers(
        provider=provider,
        model=model,
        api_key=_key_from(api_key),
        api_key_env=api_key_env,
        base_url=base_url,
        api=api,
    )
    setup = complete(answers, env, asking=asking)
    target = target_of(setup, env)
    result = None if skip_test else run_check(target, TEST_TIMEOUT_S)
    if result is not None and not result.ok and not _go_on(result, asking, as_json):
        if as_json:
            print_json(check_body(target, result))
        else:
            note("Nothing was written.")
        ctx.exit(1)
    written = write_setup(loaded, setup, env)
    _tell(setup, target, result, str(written.path), as_json)


def _key_from(api_key: str | None) -> str | None:
    return sys.stdin.readline().strip() if api_key == "-" else api_key


def _go_on(result: CheckResult, asking: bool, as_json: bool) -> bool:
    """After a failed test only a person may say that it is written all the same."""
    assert result.failure is not None
    if not as_json:
        note(printable(result.failure.message))
    return asking and click.confirm("The test failed. Write it anyway?", default=False, err=True)


def _tell(
    setup: ModelSetup, target: ModelTarget, result: CheckResult | None, path: str, as_json: bool
) -> None:
    if as_json:
        tested = None if result is None else check_body(target, result)
        print_json({"ok": True, "model": setup.ref, "path": path, "test": tested})
        return
    if result is not None and result.ok:
        say(f"{printable(setup.ref)} answers: {printable(result.said)}")
        print_labels(check_lines(result))
    say(f"Written to {path}, which only you can read.")
    say("Start the gateway with: openclaw")


# -- completing the answers ------------------------------------------------------------------------


def complete(answers: Answers, env: dict[str, str], *, asking: bool) -> ModelSetup:
    """Everything that has to be written; what is missing is asked for, or refused with its flag."""
    from openclaw.app.discovery import find_models
    from openclaw.app.model_setup import ModelSetup
    from openclaw.models.known import address_in_environment, known_provider

    found = asyncio.run(find_models(env))
    name = answers.provider or _ask_provider(found, asking)
    known = known_provider(name)
    if known is None and not answers.base_url:
        _require(asking, f"{name[:80]!r} is not a known provider; say where it is with --base-url")
        answers_url = str(click.prompt("Base URL (such as https://llm.example/v1)", err=True))
    else:
        answers_url = answers.base_url or ""
    reached = next((one for one in found if one.provider == name), None)
    api_key = _key(name, answers, env, needed=known is not None and not known.is_local, asking=asking)
    model = answers.model or _ask_model(name, reached, known.default_model if known else "", asking)
    base_url = answers_url
    if known is not None and not base_url:
        base_url = address_in_environment(known, env) if known.is_local else known.base_url
    return ModelSetup(
        provider=name,
        model=model,
        api=answers.api or (known.api if known else _APIS[0]),
        base_url=base_url,
        api_key=api_key,
        listed=_listed(model, reached),
    )


def _listed(model: str, reached: Found | None) -> dict[str, Any] | None:
    """The figures of a model that a local server told of, for the provider's list."""
    from openclaw.app.discovery import LOCAL_CONTEXT_WINDOW, LOCAL_MAX_TOKENS

    if reached is None or reached.source != "local":
        return None
    window = next((one.context_window for one in reached.models if one.name == model), None)
    window = window or LOCAL_CONTEXT_WINDOW
    entry: dict[str, Any] = {"id": model, "contextWindow": window}
    return entry | {
        "maxTokens": max(1, min(LOCAL_MAX_TOKENS, window // 2)),
        "cost": {"input": 0, "output": 0},
    }


def _ask_provider(found: tuple[Found, ...], asking: bool) -> str:
    from openclaw.models.known import PROVIDERS

    names = ", ".join(provider.name for provider in PROVIDERS)
    _require(asking, f"say which provider with --provider: {names}, or a name of your own with --base-url")
    for one in found:
        note(f"within reach: {one.title} ({one_line(one.where)}), {one.payer}")
    default = found[0].provider if found else "anthropic"
    note(f"providers: {names}; or a name of your own")
    return str(click.prompt("Provider", default=default, err=True)).strip()


def _ask_model(name: str, reached: Found | None, default: str, asking: bool) -> str:
    default = reached.models[0].name if reached is not None else default
    if not asking:
        _require(bool(default), f"say which model of {name[:80]} with --model")
        return default
    if reached is not None and reached.source == "local":
        note("it offers: " + ", ".join(one_line(model.name) for model in reached.models[:20]))
    return str(click.prompt("Model", default=default or None, err=True)).strip()


def _key(name: str, answers: Answers, env: dict[str, str], *, needed: bool, asking: bool) -> str:
    """The key as it is written: itself, or a reference to the variable that holds it."""
    from openclaw.config.references import expand
    from openclaw.models.known import key_in_environment, known_provider

    if answers.api_key and answers.api_key_env:
        raise InvalidRequest("--api-key and --api-key-env exclude one another")
    if answers.api_key:
        return _checked_key(answers.api_key)
    known = known_provider(name)
    variable = answers.api_key_env
    # A key goes by itself to its provider's own address, to another one only when a person says so.
    if variable is None and known is not None and not answers.base_url:
        variable = key_in_environment(known, env)
    if variable:
        reference = "${" + variable + "}"
        if expand(reference, env).text in (reference, ""):
            raise InvalidRequest(f"{variable[:80]} is not set in the environment; set it, or use --api-key")
        return reference
    if not asking:
        _require(not needed, f"{name[:80]} needs a key: use --api-key-env or --api-key")
        return ""
    if not needed and known is not None:
        return ""
    typed = click.prompt(
        "API key (not shown)" if needed else "API key (not shown; empty for none)",
        default=None if needed else "",
        hide_input=True,
        show_default=False,
        err=True,
    )
    return _checked_key(str(typed)) if typed else ""


def _checked_key(key: str) -> str:
    key = key.strip()
    if not key or not (key.isascii() and key.isprintable()):
        raise InvalidRequest("the API key holds characters that no key has; copy it again")
    if "${" in key:
        raise InvalidRequest("this is a reference, not a key; name the variable with --api-key-env")
    return key


def _require(condition: bool, what: str) -> None:
    if not condition:
        raise InvalidRequest(what)


def target_of(setup: ModelSetup, env: dict[str, str]) -> ModelTarget:
    """What the gateway would call after this setup."""
    from openclaw.config.references import expand
    from openclaw.models.catalog import ProviderInfo, resolve_target

    key = expand(setup.api_key, env).text if setup.api_key else ""
    provider = ProviderInfo(api=setup.api, base_url=setup.base_url, api_key=key)
    return resolve_target(setup.ref, {setup.provider: provider})
