"""The table of settings that only other implementations know."""

from __future__ import annotations

import pytest
from msgspec import Struct, inspect

from openclaw.config.foreign import FOREIGN_KEYS, is_foreign
from openclaw.config.kinds import fields_of, options_of, unwrap
from openclaw.config.schema import Config
from tests.unit.config.reading import check, config_of, problems_of, warnings_of

pytestmark = pytest.mark.spec("CFG-3")

# As the tools of another implementation write it on a fresh machine.
WRITTEN_BY_A_WIZARD = """{
  "meta": {"lastTouchedVersion": "2026.3.1"},
  "wizard": {"lastRunCommand": "onboard"},
  "auth": {"profiles": {"anthropic:default": {"provider": "anthropic", "mode": "api_key"}}},
  "agents": {"defaults": {"workspace": "/w", "skipBootstrap": true, "maxConcurrent": 4,
    "subagents": {"maxConcurrent": 8}, "compaction": {"mode": "safeguard"}},
    "list": [{"id": "main", "params": {}, "heartbeat": {"every": "0m", "lightContext": true}}]},
  "messages": {"ackReactionScope": "group-mentions"},
  "commands": {"native": "auto", "nativeSkills": "auto"},
  "hooks": {"internal": {"enabled": true}},
  "gateway": {"port": 18789, "mode": "local", "bind": "loopback", "tailscale": {"mode": "off"},
    "auth": {"mode": "token", "token": "0123456789abcdef0123456789abcdef"}},
  "channels": {"telegram": {"enabled": true, "botToken": "123:abc", "streamMode": "partial"},
    "modelByChannel": {"telegram": {"1": "x"}}},
  "plugins": {"entries": {"telegram": {"enabled": true}}},
}"""


def test_a_file_of_another_implementation_starts_here() -> None:
    config = config_of(WRITTEN_BY_A_WIZARD)
    assert config.agents.defaults.workspace == "/w"
    assert config.agents.defaults.compaction.mode == "safeguard"
    assert config.channels["telegram"].extra == {"botToken": "123:abc", "streamMode": "partial"}
    assert "modelByChannel" not in config.channels
    ignored = {warning.path for warning in check(WRITTEN_BY_A_WIZARD).warnings}
    assert ignored == {
        "meta",
        "wizard",
        "auth",
        "plugins",
        "agents.defaults.skipBootstrap",
        "agents.list[0].params",
        "agents.list[0].heartbeat.lightContext",
        "messages.ackReactionScope",
        "commands.nativeSkills",
        "gateway.tailscale",
        "channels.modelByChannel",
    }


def test_inline_environment_is_explained() -> None:
    assert warnings_of("{env: {A: 'b'}}") == [
        "env: ignored: set these variables in the environment of the gateway instead"
    ]


@pytest.mark.parametrize("key", ["exec", "fs", "elevated"])
def test_limits_are_never_dropped_in_passing(key: str) -> None:
    assert problems_of(f"{{tools: {{{key}: {{}}}}}}") == [f"tools.{key}: unknown key"]


def test_the_table_holds_only_keys_that_are_not_ours() -> None:
    for pattern, names in FOREIGN_KEYS.items():
        fields = (
            {field.encode_name for field in fields_of(_section_at(pattern))}
            if pattern != ("channels",)
            else set()
        )
        assert not fields & names, pattern


def test_patterns_match_their_own_depth_only() -> None:
    assert is_foreign((), "plugins")
    assert not is_foreign(("session",), "plugins")
    assert is_foreign(("agents", "list", 3), "runtime")
    assert not is_foreign(("agents", "list"), "runtime")


def _section_at(pattern: tuple[str, ...]) -> type[Struct]:
    """The struct that a pattern leads to; fails when the pattern leads nowhere."""
    section: type[Struct] = Config
    kind: inspect.Type = inspect.type_info(Config)
    for step in pattern:
        if step == "*":
            [kind] = [element for option in options_of(kind) if (element := _element(option)) is not None]
        else:
            [kind] = [field.type for field in fields_of(section) if field.encode_name == step]
        for option in options_of(kind):
            bare, _ = unwrap(option)
            if isinstance(bare, inspect.StructType):
                section = bare.cls
    return section


def _element(kind: inspect.Type) -> inspect.Type | None:
    bare, _ = unwrap(kind)
    if isinstance(bare, inspect.DictType):
        return bare.value_type
    return bare.item_type if isinstance(bare, inspect.VarTupleType) else None
