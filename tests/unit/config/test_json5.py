"""The JSON5 reader by example: what it accepts, where it points, what it refuses."""

from __future__ import annotations

import math

import pytest

from openclaw.config.json5 import Json5Error, after_blanks, is_identifier, parse
from openclaw.config.nodes import Array, Object, Scalar, plain
from openclaw.errors import ConfigInvalid

pytestmark = pytest.mark.spec("CFG-1")


def value_of(text: str) -> object:
    return plain(parse(text).root)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("{a: 1, b: 2,}", {"a": 1, "b": 2}),
        ("[1, 2,]", [1, 2]),
        ("{}", {}),
        ("[]", []),
        ("{'a': 'it''s'}".replace("''", "\\'"), {"a": "it's"}),
        ("{$a: 1, _b: 2, c3: 3}", {"$a": 1, "_b": 2, "c3": 3}),
        ("{ünï: 1, नाम: 2}", {"ünï": 1, "नाम": 2}),
        ("{\\u0061b: 1}", {"ab": 1}),
        ("{a\\u200Db: 1}", {"a\u200db": 1}),
        ("{null: 1, true: 2, Infinity: 3}", {"null": 1, "true": 2, "Infinity": 3}),
        ("\ufeff{a: 1}", {"a": 1}),
        ("// one\n/* two */ {a: /* three */ 1, // four\n} // five", {"a": 1}),
        ("// to the end\u2028{a: 1}", {"a": 1}),
        ("/**/ {}", {}),
        ("\t\v\f\u00a0\u2003\u3000{}", {}),
    ],
)
def test_accepts_the_whole_syntax(text: str, value: object) -> None:
    assert value_of(text) == value


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("0", 0),
        ("-0", 0),
        ("+5", 5),
        ("0x1F", 31),
        ("-0Xff", -255),
        (".5", 0.5),
        ("5.", 5.0),
        ("-.5e3", -500.0),
        ("1.5E+3", 1500.0),
        ("1e2", 100.0),
        ("Infinity", math.inf),
        ("-Infinity", -math.inf),
        ("+Infinity", math.inf),
        ("123456789012345678901234567890", 123456789012345678901234567890),
        ("true", True),
        ("false", False),
        ("null", None),
    ],
)
def test_accepts_numbers_and_words(text: str, value: object) -> None:
    read = value_of(text)
    assert read == value
    assert type(read) is type(value)


@pytest.mark.parametrize("text", ["NaN", "-NaN", "+NaN"])
def test_accepts_not_a_number(text: str) -> None:
    read = value_of(text)
    assert isinstance(read, float)
    assert math.isnan(read)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        (r'"\b\f\n\r\t\v\0"', "\b\f\n\r\t\v\0"),
        (r'"\x41\u00e9"', "Aé"),
        (r'"\"\'\\\/"', "\"'\\/"),
        (r'"\a\q\²"', "aq²"),
        ('"a\\\nb"', "ab"),
        ('"a\\\r\nb"', "ab"),
        ('"a\\\rb"', "ab"),
        ('"a\\\u2028b\\\u2029c"', "abc"),
        ('"raw\u2028and\u2029"', "raw\u2028and\u2029"),
        (r'"\ud83d\ude00"', "😀"),
        ('"😀"', "😀"),
        ("'\"'", '"'),
        ('""', ""),
    ],
)
def test_accepts_strings(text: str, value: str) -> None:
    assert value_of(text) == value


def test_spans_are_exact() -> None:
    text = "{\n  // note\n  'key one': [10, {b: \"x\"}],\n}\n"
    document = parse(text, "file.json")
    root = document.root
    assert isinstance(root, Object)
    assert (root.start, root.end) == (0, len(text) - 1)
    member = root.members[0]
    assert text[member.key_start : member.key_end] == "'key one'"
    assert isinstance(member.value, Array)
    first, second = member.value.items
    assert isinstance(first, Scalar)
    assert text[first.start : first.end] == "10"
    assert isinstance(second, Object)
    assert text[second.start : second.end] == '{b: "x"}'
    inner = second.members[0].value
    assert text[inner.start : inner.end] == '"x"'
    assert (document.position(member.key_start).line, document.position(member.key_start).column) == (3, 3)
    assert (document.position(inner.start).line, document.position(inner.start).column) == (3, 23)


@pytest.mark.parametrize(
    ("text", "line", "column", "reason"),
    [
        ("", 1, 1, "the file is empty; expected an object, at least {}"),
        ("// only\n/* comments */\n", 3, 1, "the file is empty; expected an object, at least {}"),
        ("{a: 1", 1, 6, 'expected "," or "}" after this value, found the end of the file'),
        ("[1 2]", 1, 4, 'expected "," or "]" after this value, found "2"'),
        ("{a: 1\n b: 2}", 2, 2, 'expected "," or "}" after this value, found "b"'),
        ("{a 1}", 1, 4, 'expected ":" after the key, found "1"'),
        ("{a:}", 1, 4, 'expected a value, found "}"'),
        ("{a:", 1, 4, "expected a value, found the end of the file"),
        ("{,}", 1, 2, 'expected a key or "}", found ","'),
        ("[,]", 1, 2, 'expected a value, found ","'),
        ("[1,,2]", 1, 4, 'expected a value, found ","'),
        ("{-100: 1}", 1, 2, "a key that starts with a digit or a sign needs quotes"),
        ("{12a: 1}", 1, 2, "a key that starts with a digit or a sign needs quotes"),
        ("{\\x41: 1}", 1, 2, "expected \\uHHHH in this key"),
        ("{\\u0020: 1}", 1, 2, "this escape is not allowed in a key without quotes"),
        ("{a\\u002d: 1}", 1, 3, "this escape is not allowed in a key without quotes"),
        ("{a\\u00: 1}", 1, 3, "expected 4 hexadecimal digits in this escape"),
        ("{} {}", 1, 4, 'expected the end of the file, found "{"'),
        ("{a: yes}", 1, 5, 'expected a value, found the word "yes" (text needs quotes)'),
        ("{a: True}", 1, 5, 'expected a value, found the word "True" (text needs quotes)'),
        ("{\n# note\n}", 2, 1, 'expected a key or "}", found "#" (comments start with //)'),
        ("[\x01]", 1, 2, "expected a value, found the character U+0001"),
        ("[010]", 1, 2, "this is not a number; text needs quotes, and numbers no leading zeros"),
        ("[0x]", 1, 2, "this is not a number; text needs quotes, and numbers no leading zeros"),
        ("[1_000]", 1, 2, "this is not a number; text needs quotes, and numbers no leading zeros"),
        ("[12:30]", 1, 4, 'expected "," or "]" after this value, found ":"'),
        ("[+]", 1, 2, "expected a number, found '+]'"),
        ("[-x]", 1, 2, "expected a number, found '-x]'"),
        ("[²]", 1, 2, "expected a number, found '²]'"),
        ('{a: "b', 1, 5, 'this text is never closed; expected " before the end of the line'),
        ("{a: 'b\n'}", 1, 5, "this text is never closed; expected ' before the end of the line"),
        ('["\\', 1, 3, "unknown escape; write \\xHH or \\uHHHH for a character code"),
        ('["\\1"]', 1, 3, "unknown escape; write \\xHH or \\uHHHH for a character code"),
        ('["\\01"]', 1, 3, "unknown escape; write \\xHH or \\uHHHH for a character code"),
        ('["\\xg0"]', 1, 3, "expected 2 hexadecimal digits in this escape"),
        ('["\\u12"]', 1, 3, "expected 4 hexadecimal digits in this escape"),
        ('["\\ud83d"]', 1, 2, "this text has half of a surrogate pair; write the character itself"),
        ("{a: 1} /* open", 1, 8, "this comment is never closed; expected */"),
        ("{a: 1, /*/ }", 1, 8, "this comment is never closed; expected */"),
        ("{a: /b}", 1, 5, 'expected a value, found "/"'),
    ],
)
def test_refuses_and_points_at_the_place(text: str, line: int, column: int, reason: str) -> None:
    with pytest.raises(Json5Error) as caught:
        parse(text, "openclaw.json")
    error = caught.value
    assert (error.position.line, error.position.column, error.reason) == (line, column, reason)
    first, *below = str(error).split("\n")
    assert first == f"openclaw.json:{line}:{column}: {reason}"
    there = text.splitlines()[line - 1] if line <= len(text.splitlines()) else ""
    assert len(below) == (2 if there.strip() else 0), "nothing is shown of an empty line"
    assert isinstance(error, ConfigInvalid)
    assert error.fields == {"line": line, "column": column, "reason": reason}


def test_excerpt_has_a_caret_below_the_place() -> None:
    with pytest.raises(Json5Error) as caught:
        parse("{\n  good: 1,\n  bad: oops,\r\n}")
    assert str(caught.value).splitlines()[1:] == ["      bad: oops,", "           ^"]


def test_excerpt_is_bounded_and_printable() -> None:
    with pytest.raises(Json5Error) as caught:
        parse('{a: "' + "\x1b[31m" + "x" * 10_000 + '", b: oops ' + "y" * 10_000)
    shown, caret = caught.value.excerpt.splitlines()
    assert len(shown) <= 4 + 80
    assert shown[caret.index("^") :].startswith("oops")
    with pytest.raises(Json5Error) as caught:
        parse("\x1b[31m{")
    assert "\x1b" not in caught.value.excerpt


@pytest.mark.parametrize(
    ("text", "lines"), [("{a: 1, 'a': 2}", (1, 1)), ('{\n  a: 1,\n  b: {},\n  "a": 3\n}', (2, 4))]
)
def test_duplicate_key_names_both_lines(text: str, lines: tuple[int, int]) -> None:
    with pytest.raises(Json5Error) as caught:
        parse(text)
    assert f"on line {lines[0]} and on line {lines[1]}" in caught.value.reason
    assert caught.value.position.line == lines[1]


def test_the_same_key_in_different_objects_is_fine() -> None:
    assert value_of("{a: {x: 1}, b: {x: 2}}") == {"a": {"x": 1}, "b": {"x": 2}}


@pytest.mark.parametrize("brackets", [("[", "]"), ("{a:", "}")])
def test_depth_is_bounded_at_64(brackets: tuple[str, str]) -> None:
    opening, closing = brackets
    inside = "" if opening == "[" else "1"
    assert parse(opening * 64 + inside + closing * 64)
    with pytest.raises(Json5Error) as caught:
        parse(opening * 65 + inside + closing * 65)
    assert caught.value.reason == "nested deeper than 64 levels"
    assert caught.value.position.column == 64 * len(opening) + 1


def test_depth_counts_open_levels_only() -> None:
    assert value_of("[" + "[],{}," * 200 + "]") == [[], {}] * 200


def test_nul_is_refused_by_name() -> None:
    with pytest.raises(Json5Error) as caught:
        parse("{a: 1,\n\0}")
    assert caught.value.position.line == 2
    assert "NUL" in caught.value.reason


def test_absurd_numbers_are_refused() -> None:
    assert value_of("9" * 400) == 10**400 - 1
    with pytest.raises(Json5Error) as caught:
        parse("9" * 401)
    assert caught.value.reason == "a number of more than 400 digits"


@pytest.mark.parametrize(
    "text",
    [
        "[" * 200_000,
        "{a:" * 100_000,
        '"' + "\\" * 400_001,
        "/*" * 200_000,
        "'" + "\\'" * 200_000,
        "//" + "x" * 400_000,
    ],
)
def test_hostile_texts_end_quickly(text: str) -> None:
    with pytest.raises(Json5Error):
        parse(text)


def test_after_blanks_stops_at_an_unclosed_comment() -> None:
    assert after_blanks(" // a\n /* b */ x", 0) == 15
    assert after_blanks(" /* open", 0) == 1
    assert after_blanks("   ", 0) == 3


@pytest.mark.parametrize(
    ("text", "fits"), [("a", True), ("$x_1", True), ("", False), ("1a", False), ("a-b", False), ("नाम", True)]
)
def test_is_identifier(text: str, fits: bool) -> None:
    assert is_identifier(text) is fits
