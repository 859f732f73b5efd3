"""The generated pages show what the command and the schema say, and are compared byte for byte."""

from __future__ import annotations

from pathlib import Path

import click
import pytest

from openclaw.domain.commandtable import COMMANDS
from scripts import gen_chat_docs, gen_cli_docs, gen_config_docs
from scripts.generated_page import settle
from tests.tooling.trees import plant


def test_settle_writes_and_then_agrees(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    page = tmp_path / "deep" / "page.md"
    assert settle(page, "one\n", check=True) == 1
    assert not page.exists()
    assert settle(page, "one\n", check=False) == 0
    assert settle(page, "one\n", check=True) == 0
    capsys.readouterr()
    plant(tmp_path, {"deep/page.md": "one\nedited by hand\n"})
    assert settle(page, "one\n", check=True) == 1
    shown = capsys.readouterr().out
    assert "-edited by hand" in shown
    assert "out of date; run scripts/docs" in shown


class LazyGroup(click.Group):
    """Loads its command on demand, as the real one does."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return ["status", "secret"]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        option = click.Option(["--json"], is_flag=True, help="Print JSON.")
        return click.Command(cmd_name, params=[option], help="Shows it.", hidden=cmd_name == "secret")


def test_the_command_page_holds_every_visible_command() -> None:
    page = gen_cli_docs.render(LazyGroup("root", help="The door."))
    assert "## `openclaw`\n\n```text\nUsage: openclaw [OPTIONS] COMMAND [ARGS]..." in page
    assert "## `openclaw status`\n\n```text\nUsage: openclaw status [OPTIONS]" in page
    assert "Print JSON." in page
    assert "secret" not in page
    assert all(line == line.rstrip() for line in page.splitlines())


def test_the_chat_page_keeps_its_words_and_gets_every_command() -> None:
    page = f"# Title\n\nWords.\n\n{gen_chat_docs.BEGIN}\nold\n{gen_chat_docs.END}\n\nMore words.\n"
    fresh = gen_chat_docs.render(page)
    assert fresh.startswith("# Title\n\nWords.\n") and fresh.endswith("\n\nMore words.\n")
    assert "old" not in fresh.splitlines()
    assert gen_chat_docs.render(fresh) == fresh
    for command in COMMANDS:
        assert f"| `/{command.name}" in fresh
    assert "| `/undo <reset\\|compact>` | Take back the last reset or compaction. |" in fresh
    assert "Also `/id`. May stand inside a message. |" in fresh
    assert "| `/restart` | How to restart the gateway. Owners only. |" in fresh
    with pytest.raises(gen_chat_docs.MarksError, match="needs the lines"):
        gen_chat_docs.render(fresh.replace(gen_chat_docs.END, ""))


SCHEMA = {
    "$ref": "#/$defs/Config",
    "$defs": {
        "Config": {
            "type": "object",
            "properties": {
                "session": {"anyOf": [{"$ref": "#/$defs/Session"}, {"type": "null"}], "default": None},
                "port": {"type": "integer", "minimum": 1, "maximum": 65535, "default": 18789},
                "plugins": {"deprecated": True, "description": "ignored"},
            },
        },
        "Session": {
            "type": "object",
            "description": "How conversations\nare kept.",
            "properties": {
                "scope": {"enum": ["a|b", "c"], "default": "c"},
                "rules": {"type": "array", "items": {"$ref": "#/$defs/Rule"}, "default": []},
                "links": {
                    "type": "object",
                    "additionalProperties": {"type": "array", "items": {"type": "string"}},
                },
                "model": {"anyOf": [{"type": "string"}, {"$ref": "#/$defs/Rule"}]},
                "dm": {"$ref": "#/$defs/Rule", "deprecated": True},
            },
        },
        "Rule": {
            "type": "object",
            "properties": {
                "action": {"const": "deny"},
                "sub": {"$ref": "#/$defs/Rule"},
                "size": {"type": ["integer", "null"], "minimum": 0, "maximum": 2**53},
            },
        },
    },
}


def test_the_config_page_spells_out_every_key() -> None:
    page = gen_config_docs.render(SCHEMA)
    assert "## `session`\n\nHow conversations are kept.\n\n| Key |" in page
    assert '| `session.scope` | `"a\\|b"`, `"c"` | `"c"` |  |' in page
    assert '| `session.rules[].action` | `"deny"` |  |  |' in page
    assert "| `session.rules[].size` | integer ≥ 0 |  |  |" in page
    assert "| `session.links` | map of list of string |  |  |" in page
    assert "| `session.model` | string or object |  |  |" in page
    assert '| `session.model.action` | `"deny"` |  |  |' in page
    assert "## `port`\n\n| Key | Takes | Default | Meaning |\n| --- | --- | --- | --- |\n" in page
    assert "| `port` | integer 1–65535 | `18789` |  |" in page


def test_the_config_page_ends_where_a_shape_holds_itself() -> None:
    page = gen_config_docs.render(SCHEMA)
    assert "`session.rules[].sub` | object" in page
    assert "sub.sub" not in page


def test_older_spellings_and_ignored_sections_take_one_line() -> None:
    page = gen_config_docs.render(SCHEMA)
    assert "| `session.dm` | object |  | older spelling, still read |" in page
    assert "session.dm." not in page
    assert page.endswith("warning and has no effect:\n\n`plugins`.\n")
    assert "## `plugins`" not in page
