"""Validation: every mistake at once, each with file, line, path and a reason that names the fix."""

from __future__ import annotations

import pytest

from openclaw.config.problems import MAX_LISTED, Problem
from openclaw.config.schema import Config
from tests.unit.config.reading import check, config_of, problems_of, warnings_of

SIX_MISTAKES = """\
// a file with six mistakes
{
  session: {
    idleMinuts: 30,                    // 1: a slip of the finger
    reset: {
      atHour: 24,                      // 2: out of range
      mode: "weekly",                  // 3: not a word we know
    },
  },
  agents: {
    list: [{ id: "home" }, { id: "work" }],
    defaults: { maxConcurrent: "four" }, // 4: wrong type
  },
  bindings: [
    { agentId: "wrok", match: { channel: "telegram" } }, // 5: no such agent
  ],
  models: {
    providers: { local: { apiKey: "${LOCAL_KEY}" } }, // 6: no such variable
  },
}
"""


@pytest.mark.spec("CFG-3")
def test_six_mistakes_give_exactly_six_messages() -> None:
    assert [str(problem) for problem in check(SIX_MISTAKES).problems] == [
        'openclaw.json:4 — session.idleMinuts: unknown key; did you mean "idleMinutes"?',
        "openclaw.json:6 — session.reset.atHour: expected a whole number from 0 to 23, found 24",
        'openclaw.json:7 — session.reset.mode: expected one of "daily", "idle", found "weekly"',
        "openclaw.json:12 — agents.defaults.maxConcurrent:"
        ' expected a whole number of at least 1, found "four"',
        'openclaw.json:15 — bindings[0].agentId: no agent "wrok" in agents.list; did you mean "work"?',
        "openclaw.json:18 — models.providers.local.apiKey: the environment variable LOCAL_KEY is not set"
        " (write $${LOCAL_KEY} for the text itself)",
    ]


@pytest.mark.spec("CFG-3")
def test_what_could_be_understood_is_kept_for_diagnosis() -> None:
    config = check(SIX_MISTAKES).config
    assert [agent.id for agent in config.agents.list] == ["home", "work"]
    assert config.session.reset is not None
    assert config.session.reset.at_hour is None
    assert config.agents.defaults.max_concurrent == 4


@pytest.mark.spec("CFG-3")
@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("[]", ": expected an object at the top of the file, found a list"),
        ('"x"', ': expected an object at the top of the file, found "x"'),
        ("{sesion: {}}", 'sesion: unknown key; did you mean "session"?'),
        ("{zzz: 1}", "zzz: unknown key"),
        ("{" + "s" * 70 + ": 1}", "s" * 70 + ": unknown key"),
        ("{session: []}", "session: expected an object, found a list"),
        ("{session: null}", "session: expected an object, found null"),
        ("{session: {scope: 1}}", 'session.scope: expected one of "global", "per-sender", found 1'),
        ("{session: {resetTriggers: '/new'}}", 'session.resetTriggers: expected a list, found "/new"'),
        (
            "{session: {resetTriggers: ['']}}",
            'session.resetTriggers[0]: expected a non-empty string, found ""',
        ),
        ("{session: {store: '  '}}", 'session.store: expected a non-empty string, found "  "'),
        ("{cron: {enabled: 'yes'}}", 'cron.enabled: expected true or false, found "yes"'),
        ("{cron: {enabled: {}}}", "cron.enabled: expected true or false, found an object"),
        ("{gateway: {port: 0}}", "gateway.port: expected a whole number from 1 to 65535, found 0"),
        ("{gateway: {port: 1.5}}", "gateway.port: expected a whole number from 1 to 65535, found 1.5"),
        ("{gateway: {port: true}}", "gateway.port: expected a whole number from 1 to 65535, found true"),
        ("{gateway: {port: NaN}}", "gateway.port: expected a whole number from 1 to 65535, found nan"),
        (
            "{gateway: {port: 1e300}}",
            "gateway.port: expected a whole number from 1 to 65535, found a very large number",
        ),
        (
            "{agents: {defaults: {contextPruning: {softTrimRatio: 1.01}}}}",
            "agents.defaults.contextPruning.softTrimRatio: expected a number from 0 to 1, found 1.01",
        ),
        (
            "{agents: {defaults: {budget: {perDayUsd: -1}}}}",
            "agents.defaults.budget.perDayUsd: expected a number of at least 0, found -1",
        ),
        (
            "{session: {maintenance: {pruneAfter: 'soon'}}}",
            "session.maintenance.pruneAfter: expected a number of days or a duration such as"
            ' "30m", found "soon"',
        ),
        (
            "{session: {idleMinutes: 0}}",
            "session.idleMinutes: expected a number of minutes (at least 1) or a duration such as"
            ' "30m", found 0',
        ),
        (
            "{session: {maintenance: {maxDiskBytes: '5tb'}}}",
            'session.maintenance.maxDiskBytes: expected a size such as "512mb", found "5tb"',
        ),
        ("{commands: {native: 'atuo'}}", 'commands.native: expected true or false or "auto", found "atuo"'),
        (
            "{agents: {list: [{id: 'a b'}]}}",
            "agents.list[0].id: expected an agent id (letters, digits, _ and -, at most 64,"
            ' first a letter or digit), found "a b"',
        ),
        ("{agents: {list: [{name: 'x'}]}}", "agents.list[0].id: required, but missing"),
        ("{agents: {list: {}}}", "agents.list: expected a list, found an object"),
        (
            "{agents: {defaults: {model: 5}}}",
            "agents.defaults.model: expected a non-empty string or an object, found 5",
        ),
        ("{channels: {' ': {}}}", 'channels[" "]: a name must not be blank or hold NUL'),
        ('{channels: {"a\\0": {}}}', 'channels["a\\u0000"]: a name must not be blank or hold NUL'),
        ('{session: {store: "a\\0b"}}', "session.store: the text holds a NUL character; remove it"),
        ("{$schema: 5}", "$schema: expected a string, found 5"),
        ("{session: {$schema: 'x'}}", "session.$schema: unknown key"),
        (
            "{channels: {t: {allowFrom: [1.5]}}}",
            "channels.t.allowFrom[0]: expected a non-empty string, found 1.5",
        ),
    ],
)
def test_one_mistake_one_message(text: str, problem: str) -> None:
    assert problems_of(text) == [problem]


@pytest.mark.spec("CFG-3")
def test_long_values_are_cut_in_messages() -> None:
    [problem] = problems_of("{session: {scope: '" + "x" * 500 + "'}}")
    assert problem.endswith('found "' + "x" * 40 + '…"')


@pytest.mark.spec("CFG-3", "TRX-11")
@pytest.mark.parametrize("value", ["123456789", "['hunter2hunter2']", "''"])
def test_messages_never_show_a_secret(value: str) -> None:
    [problem] = problems_of(f"{{gateway: {{auth: {{token: {value}}}}}}}")
    assert "hunter2" not in problem
    assert "123456789" not in problem
    assert problem.startswith("gateway.auth.token: expected a non-empty string, found")


@pytest.mark.spec("CFG-3")
def test_a_secret_object_of_another_implementation_gets_a_hint() -> None:
    [problem] = problems_of('{hooks: {token: {source: "env", provider: "default", id: "X"}}}')
    assert problem.endswith('found an object (to take a value from the environment, write "${NAME}")')


@pytest.mark.spec("CFG-3")
def test_root_schema_string_is_tolerated() -> None:
    assert config_of('{$schema: "https://example.invalid/s.json"}') == Config()


@pytest.mark.spec("CFG-3")
@pytest.mark.parametrize(
    ("text", "path"),
    [
        ('{$include: "./x.json5"}', "$include"),
        ('{agents: {$include: "./x.json5"}}', "agents.$include"),
        ('{channels: {$include: "./x.json5"}}', "channels.$include"),
        ('{channels: {telegram: {$include: "./x.json5"}}}', "channels.telegram.$include"),
        ('{channels: {telegram: {custom: {$include: "./x.json5"}}}}', "channels.telegram.custom.$include"),
    ],
)
def test_include_is_refused_by_name(text: str, path: str) -> None:
    assert problems_of(text) == [f"{path}: not supported; write the settings into this file"]


@pytest.mark.spec("CFG-11")
def test_both_spellings_of_a_key_at_once_are_a_mistake() -> None:
    reason = 'an older name of "direct", which is set too; keep one of the two'
    assert problems_of("{session: {resetByType: {dm: {}, direct: {}}}}") == [
        f"session.resetByType.dm: {reason}"
    ]
    assert problems_of("{session: {resetByType: {direct: {}, dm: {}}}}") == [
        f"session.resetByType.dm: {reason}"
    ]


@pytest.mark.spec("CFG-3")
def test_paths_name_the_items_of_the_file_after_some_were_refused() -> None:
    text = "{agents: {list: [\n{id: 5},\n{id: 'a'},\n{id: 'A'}]}}"
    found = [(problem.line, problem.path) for problem in check(text).problems]
    assert found == [(2, "agents.list[0].id"), (4, "agents.list[2].id")]


@pytest.mark.spec("CFG-3")
def test_one_cause_gives_one_message() -> None:
    """A refused agent does not also make its bindings wrong, nor a refused token the bind address."""
    text = "{agents: {list: [{id: '!'}]}, bindings: [{agentId: 'x', match: {channel: 'c'}}]}"
    assert [problem.path for problem in check(text).problems] == ["agents.list[0].id"]
    text = "{gateway: {bind: 'lan', auth: {token: '${NO_SUCH}'}}}"
    assert [problem.path for problem in check(text).problems] == ["gateway.auth.token"]


@pytest.mark.spec("CFG-3")
def test_a_hostile_number_of_mistakes_is_bounded() -> None:
    text = "{" + ",".join(f"k{index}: {index}" for index in range(20_000)) + "}"
    problems = check(text).problems
    assert len(problems) == MAX_LISTED + 1
    assert str(problems[-1]) == f"openclaw.json — and {20_000 - MAX_LISTED} more problems that are not listed"
    sections = "{channels: {" + ",".join(f"c{index}: {{groups: 1}}" for index in range(600)) + "}}"
    assert len(check(sections).problems) == MAX_LISTED + 1
    ignored = "{agents: {list: [" + ",".join(f"{{id: 'a{index}', params: 1}}" for index in range(600)) + "]}}"
    assert len(check(ignored).warnings) == MAX_LISTED


@pytest.mark.spec("CFG-3")
def test_problems_read_with_and_without_a_place() -> None:
    assert str(Problem("f", 3, "a.b", "why")) == "f:3 — a.b: why"
    assert str(Problem("f", 3, "", "why")) == "f:3 — why"
    assert str(Problem("f", 0, "", "why")) == "f — why"


@pytest.mark.spec("CFG-3")
def test_null_unsets_what_is_optional() -> None:
    assert config_of("{session: {dmScope: null, idleMinutes: null}, store: {url: null}}") == Config()


@pytest.mark.spec("CFG-3")
def test_whole_numbers_may_be_written_with_a_point() -> None:
    config = config_of("{gateway: {port: 18790.0}, session: {reset: {atHour: 0x4}}}")
    assert (config.gateway.port, type(config.gateway.port)) == (18790, int)
    assert config.session.reset is not None
    assert config.session.reset.at_hour == 4


@pytest.mark.spec("CFG-3")
def test_syntax_errors_are_one_problem_with_place_and_excerpt() -> None:
    [problem] = check("{\n  a: 1\n  b: 2\n}").problems
    assert (problem.line, problem.path) == (3, "")
    assert problem.reason == 'column 3: expected "," or "}" after this value, found "b"\n      b: 2\n      ^'


@pytest.mark.spec("CFG-3")
@pytest.mark.parametrize(
    "section", ["plugins", "skills", "browser", "talk", "ui", "wizard", "meta", "secrets"]
)
def test_sections_of_other_implementations_give_one_warning_each(section: str) -> None:
    text = f'{{{section}: {{ a: {{ b: "${{NOT_SET}}" }}, c: [1, 2] }} }}'
    assert warnings_of(text) == [f"{section}: ignored: this setting belongs to another implementation"]
    assert config_of(text) == Config()
