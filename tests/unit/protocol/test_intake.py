"""The door: UTF-8, nesting and lone surrogates, against slow but obvious references."""

from __future__ import annotations

import json
import time

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import Raw

from openclaw.errors import InvalidRequest
from openclaw.protocol.connect import OPERATOR
from openclaw.protocol.frames import Request
from openclaw.protocol.intake import (
    contains_nul,
    holds_huge_number,
    is_too_deep,
    replace_escaped_surrogates,
    replace_surrogates_in_text,
    replace_surrogates_in_value,
    to_utf8,
)
from openclaw.protocol.methods import admit_call
from openclaw.protocol.scopes import READ

any_text = st.text(
    alphabet=st.one_of(st.characters(), st.characters(categories=["Cs"]), st.sampled_from('"\\[]{}u'))
)
json_values = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(-9, 9), any_text),
    lambda inner: st.one_of(st.lists(inner, max_size=4), st.dictionaries(any_text, inner, max_size=4)),
    max_leaves=30,
)


def depth_of(value: object) -> int:
    if isinstance(value, dict):
        return 1 + max(map(depth_of, value.values()), default=0)
    if isinstance(value, list):
        return 1 + max(map(depth_of, value), default=0)
    return 0


def scrub(text: str) -> str:
    """Code unit by code unit, as a person would do it."""
    units = text.encode("utf-16-le", "surrogatepass")
    codes = [int.from_bytes(units[at : at + 2], "little") for at in range(0, len(units), 2)]
    out, at = "", 0
    while at < len(codes):
        if 0xD800 <= codes[at] < 0xDC00 and at + 1 < len(codes) and 0xDC00 <= codes[at + 1] < 0xE000:
            out += chr(0x10000 + ((codes[at] - 0xD800) << 10) + codes[at + 1] - 0xDC00)
            at += 2
            continue
        out += "\ufffd" if 0xD800 <= codes[at] < 0xE000 else chr(codes[at])
        at += 1
    return out


@pytest.mark.spec("RPC-1")
class TestSurrogates:
    @settings(max_examples=300, deadline=None)
    @given(any_text)
    def test_text_loses_only_lone_surrogates(self, text: str) -> None:
        assert replace_surrogates_in_text(text) == scrub(text)

    @settings(max_examples=300, deadline=None)
    @given(json_values)
    def test_escaped_json_decodes_to_the_scrubbed_value(self, value: object) -> None:
        escaped = json.dumps(value, ensure_ascii=True).encode()
        repaired = replace_escaped_surrogates(escaped)
        assert msgspec.json.decode(repaired) == replace_surrogates_in_value(value)

    @pytest.mark.parametrize(
        ("escaped", "repaired"),
        [
            (rb'"\ud800"', rb'"\ufffd"'),
            (rb'"\uDFFF"', rb'"\ufffd"'),
            (rb'"\ud83d\ude00"', rb'"\ud83d\ude00"'),
            (rb'"\ud83d\ud83d\ude00"', rb'"\ufffd\ud83d\ude00"'),
            (rb'"\ud83d\ude00\ude00"', rb'"\ud83d\ude00\ufffd"'),
            (rb'"\ude00\ud83d"', rb'"\ufffd\ufffd"'),
            (rb'"\\ud800"', rb'"\\ud800"'),
            (rb'"\\\ud800"', rb'"\\\ufffd"'),
            (rb'"\ud83d\\ude00"', rb'"\ufffd\\ude00"'),
            (rb'"plain"', rb'"plain"'),
        ],
    )
    def test_examples(self, escaped: bytes, repaired: bytes) -> None:
        assert replace_escaped_surrogates(escaped) == repaired

    def test_values_are_repaired_through_keys_lists_and_tuples(self) -> None:
        assert replace_surrogates_in_value({"\ud800": ["\udfff", ("ok", 1)]}) == {
            "\ufffd": ["\ufffd", ["ok", 1]]
        }


@pytest.mark.spec("RPC-1")
class TestDepth:
    @settings(max_examples=300, deadline=None)
    @given(json_values, st.integers(0, 6))
    def test_agrees_with_counting(self, value: object, limit: int) -> None:
        text = json.dumps(value, ensure_ascii=True).encode()
        assert is_too_deep(text, limit) is (depth_of(value) > limit)

    @pytest.mark.parametrize(("levels", "too_deep"), [(64, False), (65, True), (5000, True)])
    def test_the_bound_is_64(self, levels: int, too_deep: bool) -> None:
        assert is_too_deep(b"[" * levels + b"]" * levels) is too_deep
        assert is_too_deep(b'{"a":' * levels + b"1" + b"}" * levels) is too_deep

    def test_brackets_in_strings_and_wide_lists_do_not_count(self) -> None:
        assert not is_too_deep(b'["' + b"[" * 500 + b'"]')
        assert not is_too_deep(b'["\\"' + b"[" * 500 + b'\\\\"]')
        assert not is_too_deep(b"[" + b"[]," * 500 + b"[]]")

    def test_a_string_that_crosses_a_chunk_hides_its_brackets(self) -> None:
        assert not is_too_deep(b'["' + b"x" * 65_530 + b"[" * 200 + b'"]')
        assert is_too_deep(b'["' + b"x" * 65_530 + b'",' + b"[" * 200 + b"]" * 201)

    def test_hostile_shapes_stay_linear(self) -> None:
        size = 2_000_000
        shapes = (
            b"[" * size,
            b"[]" * (size // 2),
            b'"' * size,
            b'\\"' * (size // 2),
            b"]" * size,
            b"\\" * size,
        )
        started = time.process_time()
        for shape in shapes:
            is_too_deep(shape)
            replace_escaped_surrogates(shape)
        replace_escaped_surrogates(b"\\ud800" * (size // 6))
        assert time.process_time() - started < 5


@pytest.mark.spec("RPC-1")
def test_utf8_at_the_door() -> None:
    assert to_utf8("é\ud800") == "é\ufffd".encode()
    assert to_utf8("é".encode()) == "é".encode()
    assert to_utf8(b'{"a":"\xff"}') is None
    assert to_utf8(b"\xed\xa0\x80") is None


@pytest.mark.spec("RPC-2")
@pytest.mark.parametrize(
    ("text", "found"),
    [
        (rb'"\u0000"', True),
        (rb'"\\u0000"', False),
        (rb'"\\\u0000"', True),
        (rb'"\u0001"', False),
        (rb'"\\u0000 \u0000"', True),
    ],
)
def test_nul_is_found_only_where_it_is_one(text: bytes, found: bool) -> None:
    assert contains_nul(text) is found
    assert ("\0" in msgspec.json.decode(text)) is found


@pytest.mark.spec("RPC-2")
@pytest.mark.parametrize(
    ("text", "found"),
    [
        (b'{"a":9007199254740991}', False),
        (b'{"a":9007199254740992}', True),
        (b'{"a":-9007199254740991}', False),
        (b'{"a":-9007199254740992}', True),
        (b'{"a":[1,{"b":[true,18446744073709551616]}]}', True),
        (b'{"a":"9007199254740992"}', False),
        (b'{"a":"9007199254740992","b":[7]}', False),
        (b'{"9007199254740992":1}', False),
        (b'{"a":9007199254740992.5}', False),
        (b'{"a":900719925474099}', False),
        (b"{}", False),
    ],
)
def test_a_whole_number_beyond_53_bits_is_seen_outside_strings_only(text: bytes, found: bool) -> None:
    assert holds_huge_number(text) is found


@pytest.mark.spec("RPC-2")
def test_a_call_with_a_number_beyond_53_bits_is_refused_with_its_reason() -> None:
    def limited(offset: int) -> Request:
        params = Raw(b'{"sessionKey":"main","limit":5,"offset":%d}' % offset)
        return Request(type="req", id="1", method="chat.history", params=params)

    with pytest.raises(InvalidRequest, match=r"chat\.history params: numbers must lie within 53 bits"):
        admit_call(limited(1 << 53), OPERATOR, (READ,))
    assert admit_call(limited(7), OPERATOR, (READ,)) is not None
