"""Changing one setting in a text: the rest stays as the person wrote it."""

from __future__ import annotations

import math
import re

import pytest

from openclaw.config.credentials import REDACTED
from openclaw.config.edit import patch, set_value, unset
from openclaw.config.json5 import Json5Error, parse
from openclaw.config.nodes import plain

pytestmark = pytest.mark.spec("CFG-6")

FILE = """\
// my settings
{
  // who shares a session
  session: {
    dmScope: "main", // for now
    reset: { mode: "daily", atHour: 4 }, /* reset */
  },
  agents: { list: [ {id: "a"}, ] },
  gateway: {},
  empty: {
    // nothing yet
  }
  // the end
}
"""


def changed(path: str, value: object, text: str = FILE) -> tuple[list[str], list[str]]:
    """The lines that left and the lines that came."""
    before, after = text.splitlines(), set_value(text, path, value).splitlines()
    return [line for line in before if line not in after], [line for line in after if line not in before]


@pytest.mark.parametrize(
    ("path", "value", "left", "came"),
    [
        (
            "session.dmScope",
            "per-peer",
            ['    dmScope: "main", // for now'],
            ['    dmScope: "per-peer", // for now'],
        ),
        ("session.scope", "global", [], ['    scope: "global",']),
        (
            "session.reset.idleMinutes",
            5,
            ['    reset: { mode: "daily", atHour: 4 }, /* reset */'],
            ['    reset: { mode: "daily", atHour: 4, idleMinutes: 5 }, /* reset */'],
        ),
        ("empty.list", [1, "two", None, True], [], ['    list: [1, "two", null, true]']),
        ("gateway.port", 1, ["  gateway: {},"], ["  gateway: {", "    port: 1"]),
        (
            'empty["needs quotes"]',
            {"a-b": 1.5},
            [],
            ['    "needs quotes": {', '      "a-b": 1.5', "    }"],
        ),
        (
            "agents.list[0].name",
            "N",
            ['  agents: { list: [ {id: "a"}, ] },'],
            ['  agents: { list: [ {id: "a", name: "N"}, ] },'],
        ),
        (
            "agents.list.1",
            "b",
            ['  agents: { list: [ {id: "a"}, ] },'],
            ['  agents: { list: [ {id: "a"}, "b", ] },'],
        ),
    ],
)
def test_sets_one_value(path: str, value: object, left: list[str], came: list[str]) -> None:
    assert changed(path, value) == (left, came)


def test_creates_missing_parents_behind_the_last_comment() -> None:
    assert set_value(FILE, "new.deep.thing", False).endswith(
        """\
  empty: {
    // nothing yet
  },
  // the end
  new: {
    deep: {
      thing: false
    }
  }
}
"""
    )


def test_a_comment_behind_the_last_value_stays_with_it() -> None:
    text = "{\n  a: 1 // one\n}\n"
    assert set_value(text, "b", 2) == "{\n  a: 1, // one\n  b: 2\n}\n"


@pytest.mark.parametrize(
    ("text", "result"),
    [
        ("", '{\n  "a": {\n    "b": 1\n  }\n}\n'),
        ("  \n", '{\n  "a": {\n    "b": 1\n  }\n}\n'),
        ("{}", '{\n  "a": {\n    "b": 1\n  }\n}'),
        ("{ /* c */ }", '{ /* c */\n  "a": {\n    "b": 1\n  }\n}'),
        ('{"x": 1}', '{"x": 1, "a": {\n  "b": 1\n}}'),
        ('{\n\t"x": 1\n}', '{\n\t"x": 1,\n\t"a": {\n\t\t"b": 1\n\t}\n}'),
        ("{\r\n    x: 1,\r\n}", "{\r\n    x: 1,\r\n    a: {\r\n        b: 1\r\n    },\r\n}"),
        ("{x: 1,\n y: 2}", "{x: 1,\n y: 2,\n a: {\n  b: 1\n }}"),
        ("{a: null}", "{a: {\n  b: 1\n}}"),
        ("{a: {b: 0}}", "{a: {b: 1}}"),
        ("{'a': {'b': 2, },}", "{'a': {'b': 1, },}"),
    ],
)
def test_follows_the_style_of_the_file(text: str, result: str) -> None:
    assert set_value(text, "a.b", 1) == result


def test_a_comment_never_swallows_a_new_value() -> None:
    assert plain(parse(set_value("{a: 1 // c\u2028}", "b", 2)).root) == {"a": 1, "b": 2}
    assert plain(parse(set_value("{a: 1, // c\r}", "b", 2)).root) == {"a": 1, "b": 2}


def test_values_without_end_are_refused() -> None:
    endless: list[object] = []
    endless.append(endless)
    with pytest.raises(ValueError, match="nested deeper than 64 levels"):
        set_value("{}", "a", endless)


def test_equal_values_change_nothing() -> None:
    assert set_value(FILE, "session.reset", {"mode": "daily", "atHour": 4}) == FILE
    assert set_value("{a: 'x'}", "a", "x") == "{a: 'x'}"
    assert set_value("{a: 1}", "a", True) == "{a: true}"


@pytest.mark.parametrize(
    ("value", "written"),
    [
        (math.inf, "Infinity"),
        (-math.inf, "-Infinity"),
        (math.nan, "NaN"),
        (2**70, str(2**70)),
        ("tab\t\u2028é", '"tab\\t\u2028é"'),
        ([], "[]"),
        ({}, "{}"),
        (["x" * 90], '[\n  "' + "x" * 90 + '"\n]'),
        ([{"a": [1]}], "[\n  {\n    a: [1]\n  }\n]"),
        ((1, 2), "[1, 2]"),
    ],
)
def test_writes_every_kind_of_value(value: object, written: str) -> None:
    assert set_value("{k: 0}", "k", value) == "{k: " + written + "}"


@pytest.mark.parametrize(
    ("path", "value", "complaint"),
    [
        ("", 1, "the path is empty"),
        ((), 1, "the path is empty"),
        ("session.dmScope.x", 1, "session.dmScope is not an object"),
        ("agents.list.x", 1, "agents.list is a list; 'x' is not a position in it"),
        ("agents.list[2]", 1, "agents.list has 1 items; 2 is not the next"),
        ("gateway.x", b"bytes", "a value of type bytes cannot be written"),
        ("gateway.x", "\ud800", "half of a surrogate pair"),
        ("gateway.x", {"\ud800": 1}, "half of a surrogate pair"),
    ],
)
def test_refuses_what_cannot_be_written(path: str | tuple[str, ...], value: object, complaint: str) -> None:
    with pytest.raises(ValueError, match=re.escape(complaint)):
        set_value(FILE, path, value)


def test_broken_texts_are_refused() -> None:
    with pytest.raises(Json5Error):
        set_value("{a: 1", "b", 2)
    with pytest.raises(Json5Error):
        unset("{a: 1", "a")
    for text in ("5", "null"):
        with pytest.raises(ValueError, match="the file is not an object"):
            set_value(text, "b", 2)


@pytest.mark.parametrize(
    ("path", "left", "came"),
    [
        ("session.dmScope", ['    dmScope: "main", // for now'], ["    // for now"]),
        (
            "session.reset.mode",
            ['    reset: { mode: "daily", atHour: 4 }, /* reset */'],
            ["    reset: { atHour: 4 }, /* reset */"],
        ),
        (
            "session.reset.atHour",
            ['    reset: { mode: "daily", atHour: 4 }, /* reset */'],
            ['    reset: { mode: "daily" }, /* reset */'],
        ),
        ("session.reset", ['    reset: { mode: "daily", atHour: 4 }, /* reset */'], ["    /* reset */"]),
        ("gateway", ["  gateway: {},"], []),
        ("agents.list[0]", ['  agents: { list: [ {id: "a"}, ] },'], ["  agents: { list: [ ] },"]),
        ("agents.list.0.id", ['  agents: { list: [ {id: "a"}, ] },'], ["  agents: { list: [ {}, ] },"]),
    ],
)
def test_unsets_one_value(path: str, left: list[str], came: list[str]) -> None:
    before, after = FILE.splitlines(), unset(FILE, path).splitlines()
    assert [line for line in before if line not in after] == left
    assert [line for line in after if line not in before] == came


@pytest.mark.parametrize(
    ("text", "path", "result"),
    [
        ("{a: 1, b: 2}", "a", "{b: 2}"),
        ("{a: 1, b: 2}", "b", "{a: 1}"),
        ("{a: 1}", "a", "{}"),
        ("{\n  a: 1,\n  b: 2\n}", "b", "{\n  a: 1\n}"),
        ("{\r\n  a: 1,\r\n  b: 2,\r\n}", "a", "{\r\n  b: 2,\r\n}"),
        ("{\n  a: 1, // one\n  b: 2\n}", "b", "{\n  a: 1 // one\n}"),
        ("{a: 1 /* c */, b: 2}", "a", "{/* c */ b: 2}"),
        ("[1, [2, 3]]", "[1][0]", "[1, [3]]"),
        ("{a: {b: 1}}", "a.c", "{a: {b: 1}}"),
        ("{a: {b: 1}}", "x.y.z", "{a: {b: 1}}"),
        ("", "a", ""),
    ],
)
def test_unset_leaves_a_good_text(text: str, path: str, result: str) -> None:
    assert unset(text, path) == result


def test_references_are_written_back_as_references() -> None:
    text = '{gateway: {auth: {token: "${TOKEN}", password: "p"}}, list: ["${A}", "x"], plain: "$${A}"}'
    env = {"TOKEN": "resolved-token", "A": "a"}
    tree = plain(parse(text).root)
    resolved = {
        "gateway": {"auth": {"token": "resolved-token", "password": "p", "mode": "token"}},
        "list": ["a", "x", "new"],
        "plain": "${A}",
    }
    for key, value in resolved.items():
        text = set_value(text, key, value, env=env)
    after = plain(parse(text).root)
    assert after["gateway"]["auth"] == {"token": "${TOKEN}", "password": "p", "mode": "token"}
    assert after["list"] == ["${A}", "x", "new"]
    assert after["plain"] == tree["plain"] == "$${A}"
    assert plain(parse(set_value(text, "list[0]", "b", env=env)).root)["list"][0] == "b"
    assert plain(parse(set_value(text, "list[0]", "", env={})).root)["list"][0] == ""


def test_a_hidden_secret_keeps_its_value() -> None:
    text = '{gateway: {auth: {token: "the-real-one", mode: "token"}}}'
    after = set_value(text, "gateway.auth", {"token": REDACTED, "mode": "password"})
    assert plain(parse(after).root)["gateway"]["auth"] == {"token": "the-real-one", "mode": "password"}


def test_patch_merges_removes_and_replaces() -> None:
    text = patch(
        FILE,
        {
            "session": {"dmScope": None, "scope": "global", "reset": {"atHour": 5}},
            "gateway": {"port": 1},
            "agents": {"list": [{"id": "z"}]},
            "empty": None,
            "hooks": {"path": "/h"},
            "absent": None,
        },
    )
    assert plain(parse(text).root) == {
        "session": {"reset": {"mode": "daily", "atHour": 5}, "scope": "global"},
        "agents": {"list": [{"id": "z"}]},
        "gateway": {"port": 1},
        "hooks": {"path": "/h"},
    }
    for comment in ("// my settings", "// who shares a session", "// for now", "/* reset */", "// the end"):
        assert comment in text
