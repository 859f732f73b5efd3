"""Repair of provider text, and the arguments of tool calls."""

from __future__ import annotations

import json

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from openclaw.domain.transcript import ToolCallBlock
from openclaw.models.cleaning import INVALID_JSON_KEY, decode_leniently, parse_arguments


def is_clean(text: str) -> bool:
    return "\0" not in text and not any("\ud800" <= letter <= "\udfff" for letter in text)


def test_lenient_decoding_repairs_text_and_refuses_the_rest() -> None:
    assert decode_leniently(b'{"a": "x\xffy"}')["a"].startswith("x")
    assert is_clean(decode_leniently(b'"\\ud83d"'))
    assert decode_leniently('"\\ud83d\\ude00"') == "😀"
    assert decode_leniently(b'"a\tb"') == "a\tb"
    for refused in (b"", b"{", b"NaN", b"[Infinity]", b"nonsense", b"[" * 65 + b"]" * 65, b"[" * 100_000):
        with pytest.raises(ValueError):
            decode_leniently(refused)


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        ("", {}),
        ("  \n", {}),
        ("null", {}),
        ("{}", {}),
        ('{"a": [1, {"b": null}]}', {"a": [1, {"b": None}]}),
        ('{"big": 123456789012345678901234567890}', {"big": 123456789012345678901234567890}),
        ('{"raw\nline": 1}', {"raw\nline": 1}),
        ('{"a": 1', {INVALID_JSON_KEY: '{"a": 1'}),
        ("[1]", {INVALID_JSON_KEY: "[1]"}),
        ('"text"', {INVALID_JSON_KEY: '"text"'}),
        ("7", {INVALID_JSON_KEY: "7"}),
        ('{"a": NaN}', {INVALID_JSON_KEY: '{"a": NaN}'}),
        ("not json", {INVALID_JSON_KEY: "not json"}),
    ],
)
def test_arguments(raw: str, expected: dict[str, object]) -> None:
    assert parse_arguments(raw) == expected


def test_broken_arguments_are_kept_up_to_2000_characters() -> None:
    assert parse_arguments("x" * 2000) == {INVALID_JSON_KEY: "x" * 2000}
    assert parse_arguments("x" * 2001) == {INVALID_JSON_KEY: "x" * 2000}


def test_arguments_nested_too_deep_are_broken_not_fatal() -> None:
    assert set(parse_arguments('{"a":' * 64 + "1" + "}" * 64)) == {"a"}
    for depth in (65, 500, 990, 5_000, 200_000):
        assert set(parse_arguments('{"a":' * depth + "1" + "}" * depth)) == {INVALID_JSON_KEY}
        assert parse_arguments("[" * depth) == {INVALID_JSON_KEY: "[" * min(depth, 2000)}


def test_a_number_too_long_for_python_is_broken_not_fatal() -> None:
    parsed = parse_arguments('{"n": ' + "9" * 10_000 + "}")
    assert msgspec.json.encode(ToolCallBlock("id", "tool", parsed))


@pytest.mark.parametrize("escape", ["\\ud800", "\\udc00\\ud800", "\\u0000", "\ud800", "\0"])
def test_bad_characters_in_arguments_are_cleaned(escape: str) -> None:
    parsed = parse_arguments('{"path": "a' + escape + 'b"}')
    assert parsed["path"][0] == "a"
    assert parsed["path"][-1] == "b"
    assert is_clean(parsed["path"])


@settings(max_examples=200, deadline=None)
@given(st.text(max_size=60) | st.dictionaries(st.text(max_size=5), st.text(max_size=9)).map(json.dumps))
def test_whatever_a_model_writes_can_be_stored(raw: str) -> None:
    block = ToolCallBlock("id", "tool", parse_arguments(raw))
    assert msgspec.json.decode(msgspec.json.encode(block), type=ToolCallBlock) == block
