"""Properties of session keys that hold for any text, hostile text included."""

from __future__ import annotations

import unicodedata
from typing import get_args

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from openclaw.domain.groups import fold_word
from openclaw.domain.keys import (
    KeySettings,
    KeyShape,
    SessionKey,
    SessionKind,
    canonical_key,
    chat_type_of_key,
    display_key,
    format_key,
    is_listed,
    looks_like_session_id,
    parse_key,
    session_kind,
    split_thread,
    strip_agent,
    verify_key,
)
from openclaw.errors import InvalidSessionKey

TRICKY = (
    "agent main MAIN work global unknown current cron run hook node node- node-x subagent dm direct group "
    "channel room slash thread topic telegram matrix signal Matrix AbC ｇｒｏｕｐ ｔｈｒｅａｄ ＡＧＥＮＴ "
    ": :: ： a/b+c= J\u030c İ ẞ ΑΣ ﷺ"
)
WORDS = TRICKY.split(" ")
SEGMENT = st.one_of(st.sampled_from(WORDS), st.text(max_size=6), st.just(""), st.just(" "))
TEXT = st.lists(SEGMENT, max_size=8).map(":".join)
ANY_SETTINGS = st.sampled_from(
    [
        KeySettings(),
        KeySettings(main_key="work"),
        KeySettings(scope="global"),
        KeySettings(case_sensitive_channels=frozenset({"telegram"})),
    ]
)
MANY = settings(max_examples=300, deadline=None)


@pytest.mark.spec("KEY-20", "KEY-22")
@MANY
@given(text=TEXT, key_settings=ANY_SETTINGS)
def test_reading_a_written_key_gives_the_key_again(text: str, key_settings: KeySettings) -> None:
    try:
        key = parse_key(f"agent:main:{text}", key_settings)
    except InvalidSessionKey:
        return
    written = format_key(key)
    assert parse_key(written, key_settings) == key
    assert len(written) <= 512
    assert verify_key(key, key_settings) is key


@pytest.mark.spec("KEY-2", "KEY-16", "KEY-20", "KEY-23")
@MANY
@given(text=TEXT, key_settings=ANY_SETTINGS, provider=st.sampled_from([None, "telegram", "matrix"]))
def test_canonicalising_twice_changes_nothing(
    text: str, key_settings: KeySettings, provider: str | None
) -> None:
    try:
        key = canonical_key(
            text, agent_id="ops", settings=key_settings, current="agent:ops:x", provider=provider
        )
    except InvalidSessionKey:
        return
    written = format_key(key)
    assert canonical_key(written, agent_id="somebody", settings=key_settings) == key
    if written.isascii() and key.channel not in key_settings.case_sensitive_channels:
        assert canonical_key(written.upper(), agent_id="somebody", settings=key_settings) == key
    if is_listed(key, key_settings):
        shown = display_key(key, agent_id="ops", settings=key_settings)
        assert canonical_key(shown, agent_id="ops", settings=key_settings) == key


def _parsed(text: str) -> SessionKey:
    return parse_key(text, KeySettings())


def _canonical(text: str) -> SessionKey:
    return canonical_key(text, agent_id=text, settings=KeySettings(), current=text)


@pytest.mark.spec("KEY-22", "KEY-24", "KEY-26")
@MANY
@given(text=st.one_of(TEXT, st.text(), st.text(alphabet=st.characters(categories=["Cs", "Cc", "Cf", "Lu"]))))
def test_no_text_can_crash_the_reader(text: str) -> None:
    for read in (_parsed, _canonical):
        try:
            key = read(text)
        except InvalidSessionKey as refused:
            assert refused.message.startswith("session key ")
            refused.message.encode()
        else:
            assert session_kind(key, chat_type_of_key(key), KeySettings()) in get_args(SessionKind)
    assert text.endswith(strip_agent(text))
    split = split_thread(text)
    assert text.startswith(split.base)
    assert (split.thread_kind is None) == (split.thread_id is None) == (split.base == text)
    looks_like_session_id(text)


@pytest.mark.spec("KEY-24")
@MANY
@given(text=TEXT)
def test_text_and_key_agree_on_the_thread(text: str) -> None:
    written = f"agent:main:{text}"
    try:
        key = parse_key(written, KeySettings(case_sensitive_channels=frozenset()))
    except InvalidSessionKey:
        return
    split = split_thread(format_key(key))
    assert split.thread_kind == key.thread_kind
    assert split.thread_id == key.thread_id


ID_TEXT = st.one_of(st.text(min_size=1, max_size=12), st.lists(SEGMENT, min_size=1, max_size=4).map(":".join))


@pytest.mark.spec("KEY-9", "KEY-10", "KEY-11", "KEY-20")
@MANY
@given(
    shape=st.sampled_from([KeyShape.direct, KeyShape.group, KeyShape.channel, KeyShape.slash]),
    channel=st.sampled_from(["telegram", "matrix", "signal"]),
    first=st.tuples(ID_TEXT, st.none() | ID_TEXT),
    second=st.tuples(ID_TEXT, st.none() | ID_TEXT),
)
def test_two_conversations_never_share_a_text(
    shape: KeyShape, channel: str, first: tuple[str, str | None], second: tuple[str, str | None]
) -> None:
    texts = []
    for peer_id, thread_id in (first, second):
        key = SessionKey(
            shape,
            "main",
            channel=channel,
            peer_id=peer_id,
            thread_kind="thread" if thread_id is not None else None,
            thread_id=thread_id,
        )
        try:
            texts.append(format_key(verify_key(key, KeySettings())))
        except InvalidSessionKey:
            return
    assume(first != second)
    assert texts[0] != texts[1]


@pytest.mark.spec("KEY-20")
@MANY
@given(text=st.one_of(st.text(), st.sampled_from(WORDS)))
def test_folding_twice_changes_nothing(text: str) -> None:
    folded = fold_word(text)
    assert fold_word(folded) == folded
    assert folded == folded.strip()
    assert unicodedata.is_normalized("NFKC", folded)


@pytest.mark.spec("KEY-20")
def test_no_single_character_folds_in_two_steps() -> None:
    changing = [
        char
        for char in map(chr, range(0x110000))
        if char != char.lower() or not unicodedata.is_normalized("NFKC", char)
    ]
    assert len(changing) > 5000
    assert [char for char in changing if fold_word(once := fold_word(char)) != once] == []
