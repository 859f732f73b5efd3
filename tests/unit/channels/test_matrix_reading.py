"""Events of Matrix as messages of the house: who, where, what, and whatever a stranger's server sends."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from openclaw.channels.inbound import route_of
from openclaw.channels.matrix.reading import FileRef, Ignored, Me, Said, mentions, read_event, with_answered
from openclaw.channels.matrix.rooms import Room
from openclaw.channels.matrix.wire import Event, event_of
from openclaw.config.schema import Config
from openclaw.domain.keys import format_key

ME = Me("@House:Hs.Org")
ANN = "@Ann:Hs.Org"
ROOM = "!AbCdEf:Hs.Org"
LARGEST = 1 << 20


def room(**fields: Any) -> Room:
    members = {ANN: "Ann", ME.user_id: "House Keeper", "@bob:hs.org": "Bob"}
    return Room(ROOM, **({"name": "The  house\n", "alias": "#house:hs.org", "members": members} | fields))


def said(content: dict[str, Any], **fields: Any) -> Event:
    given_ = {"type": "m.room.message", "sender": ANN, "event_id": "$EvT", "content": content}
    return Event(**(given_ | fields))


def text(body: str, **more: Any) -> Event:
    return said({"msgtype": "m.text", "body": body, **more})


def read(event: Event, *, direct: bool = False, place: Room | None = None) -> Any:
    return read_event(event, place or room(), ME, direct=direct, largest_file=LARGEST)


def key_of(reading: Said, scope: str = "per-channel-peer") -> str:
    config = msgspec.convert({"session": {"dmScope": scope}}, Config)
    return format_key(route_of(reading.envelope, config).key)


THREAD = {"rel_type": "m.thread", "event_id": "$RooT", "is_falling_back": True,
          "m.in_reply_to": {"event_id": "$Last"}}  # fmt: skip


@pytest.mark.spec("ORG-1", "ORG-4", "ORG-5", "ROUTE-2")
def test_words_in_a_room_say_where_and_who() -> None:
    envelope = read(text("  hello  ")).envelope
    assert (envelope.peer_kind, envelope.peer_id, envelope.reply_to) == ("channel", ROOM, ROOM)
    assert (envelope.sender_id, envelope.sender_name) == (ANN, "Ann")
    assert (envelope.from_, envelope.to, envelope.message_id) == (ANN, ROOM, "$EvT")
    assert (envelope.conversation_label, envelope.group_subject) == ("The house", "The house")
    assert envelope.group_channel == "#house:hs.org" and envelope.thread_id is None
    assert envelope.text == "hello" and not envelope.was_mentioned and not envelope.has_media
    unnamed = read(text("x"), place=Room(ROOM)).envelope
    assert (unnamed.sender_name, unnamed.conversation_label) == (ANN, ROOM)
    assert unnamed.group_subject is None


@pytest.mark.spec("ORG-1", "ORG-2", "KEY-5", "ROUTE-2")
def test_a_direct_chat_is_known_by_the_person_and_answered_in_its_room() -> None:
    reading = read(text("hello"), direct=True)
    envelope = reading.envelope
    assert (envelope.peer_kind, envelope.peer_id, envelope.reply_to) == ("direct", ANN, ROOM)
    assert envelope.conversation_label == "Ann" and envelope.group_subject is None
    assert envelope.group_channel is None and reading.room_id == ROOM
    assert key_of(reading) == "agent:main:matrix:dm:@Ann:Hs.Org"


@pytest.mark.spec("KEY-11", "KEY-20")
def test_rooms_and_threads_have_byte_exact_keys_of_their_own() -> None:
    assert key_of(read(text("x"))) == "agent:main:matrix:channel:!AbCdEf:Hs.Org"
    threaded = read(text("x", **{"m.relates_to": THREAD}))
    assert key_of(threaded) == "agent:main:matrix:channel:!AbCdEf:Hs.Org:thread:$RooT"
    assert (threaded.envelope.thread_kind, threaded.envelope.parent_peer_id) == ("thread", ROOM)
    assert threaded.answers is None, "what is named for clients without threads is no reply"
    direct = read(text("x", **{"m.relates_to": THREAD}), direct=True)
    assert key_of(direct) == "agent:main:matrix:dm:@Ann:Hs.Org:thread:$RooT"
    assert direct.envelope.parent_peer_id is None
    real = THREAD | {"is_falling_back": False}
    assert read(text("x", **{"m.relates_to": real})).answers == "$Last"


@pytest.mark.parametrize(
    ("event", "reason"),
    [
        (said({"msgtype": "m.notice", "body": "beep"}), "said by a bot"),
        (said({"msgtype": "m.text", "body": "x"}, sender=ME.user_id), "our own"),
        (said({"msgtype": "m.text", "body": "x"}, sender=""), "malformed"),
        (said({"msgtype": "m.text", "body": "x"}, event_id=""), "malformed"),
        (said({"msgtype": "m.text", "body": "x"}, state_key=""), "not a message"),
        (said({"ciphertext": "x"}, type="m.room.encrypted"), "encrypted"),
        (said({"key": "x"}, type="m.reaction"), "not a message"),
        (said({}), "nothing was said"),
        (text("   "), "nothing was said"),
        (text("* new", **{"m.relates_to": {"rel_type": "m.replace", "event_id": "$a"}}), "an edit"),
    ],
)
def test_what_is_no_message_to_an_agent_is_ignored(event: Event, reason: str) -> None:
    assert read(event) == Ignored(reason)


@pytest.mark.spec("ROUTE-3")
@pytest.mark.parametrize(
    ("event", "called"),
    [
        (text("hi", **{"m.mentions": {"user_ids": ["@x:y", ME.user_id]}}), True),
        (text("hi", **{"m.mentions": {"user_ids": ["@house:hs.org"]}}), False),
        (text("hi", **{"m.mentions": {"room": True}}), False),
        (text("hi", **{"m.mentions": {"user_ids": "@House:Hs.Org"}}), False),
        (text("hi", formatted_body='<a href="https://matrix.to/#/@House:Hs.Org">H</a>'), True),
        (text("hi", formatted_body='<a href="https://matrix.to/#/%40House%3AHs.Org">H</a>'), True),
        (text("hi", formatted_body='<a href="https://matrix.to/#/@House:Hs.Org.evil">H</a>'), False),
        (text("ask @house:hs.org about it"), True),
        (text("ask @house about it"), True),
        (text("ask @house:elsewhere.org"), False),
        (text("ask @housewife"), False),
        (text("house keeper, hello"), True),
        (text("the lighthouse keeper"), False),
        (text("lighthouse keeper and House Keeper"), True),
        (text("hello"), False),
        (text("> <@x:y> ask @house\n\nno"), False),
    ],
)
def test_who_is_called(event: Event, called: bool) -> None:
    assert mentions(event, room(), ME) is called
    assert read(event).envelope.was_mentioned is called


@pytest.mark.spec("CMD-12")
@pytest.mark.parametrize(
    ("body", "left"),
    [
        ("@House:Hs.Org: /new", "/new"),
        ("@house:hs.org /new", "/new"),
        ("House Keeper: hello", "hello"),
        ("House Keeper, hello", "hello"),
        ("House Keeper hello", "House Keeper hello"),
        ("@house hello", "hello"),
        ("@household hello", "@household hello"),
        ("@house:", "@house:"),
        ("hello @house", "hello @house"),
    ],
)
def test_our_name_in_front_is_not_part_of_the_words(body: str, left: str) -> None:
    assert read(text(body)).envelope.text == left


def test_a_name_of_one_letter_calls_nobody() -> None:
    place = room(members={ME.user_id: "H"})
    assert mentions(text("H hello"), place, ME) is False
    assert mentions(text("@House hello"), place, ME) is True


@pytest.mark.spec("ROUTE-3")
def test_a_reply_brings_what_it_answers_and_one_to_us_calls_us() -> None:
    event = text(
        "> <@x:y> old words\n> more\n\nnew words", **{"m.relates_to": {"m.in_reply_to": {"event_id": "$o"}}}
    )
    reading = read(event)
    assert reading.answers == "$o" and reading.envelope.text == "new words"
    ours = with_answered(reading, said({"body": "> <@a:b> q\n\nmy answer"}, sender=ME.user_id), room(), ME)
    assert ours.envelope.replied_to_us and (ours.quoted, ours.quoted_sender) == ("my answer", "House Keeper")
    theirs = with_answered(reading, said({}, sender="@cy:hs"), room(), ME)
    assert not theirs.envelope.replied_to_us
    assert (theirs.quoted, theirs.quoted_sender) == ("[a message]", "@cy:hs")
    plain = read(text("> a quotation of mine\nand words"))
    assert plain.envelope.text == "> a quotation of mine\nand words"


@pytest.mark.parametrize(
    ("event", "words"),
    [
        (said({"msgtype": "m.emote", "body": "waves"}), "* Ann waves"),
        (said({"msgtype": "m.location", "body": "b", "geo_uri": "geo:1,2"}), "[Location geo:1,2]"),
        (said({"msgtype": "m.location", "body": "here"}), "[Location here]"),
        (said({"body": "cat"}, type="m.sticker"), "[Sticker cat]"),
        (said({}, type="m.sticker"), "[Sticker]"),
        (said({"msgtype": "m.audio", "body": "a.ogg"}), "[Audio a.ogg; it was not listened to or looked at]"),
        (said({"msgtype": "m.video"}), "[Video without a name; it was not listened to or looked at]"),
        (said({"msgtype": "org.other", "body": "fallback"}), "fallback"),
    ],
)
def test_what_has_no_words_of_its_own_becomes_a_line(event: Event, words: str) -> None:
    reading = read(event)
    assert reading.envelope.text == words and reading.files == ()


def test_files_are_named_and_told_apart_from_captions() -> None:
    content = {"msgtype": "m.image", "body": "cat.png", "url": "mxc://hs.org/AbC_1",
               "info": {"mimetype": "image/png", "size": LARGEST}}  # fmt: skip
    reading = read(said(content))
    assert reading.files == (FileRef("hs.org", "AbC_1", "cat.png", "image/png"),)
    assert reading.envelope.text == "" and reading.envelope.has_media
    captioned = read(said(content | {"filename": "cat.png", "body": "look at her"}))
    assert captioned.envelope.text == "look at her" and captioned.files[0].name == "cat.png"
    assert read(said(content | {"filename": "cat.png"})).envelope.text == ""
    bare = read(said({"msgtype": "m.file", "url": "mxc://hs.org/x"}))
    assert bare.files == (FileRef("hs.org", "x", "file", "application/octet-stream"),)
    assert read(said({"msgtype": "m.image", "url": "mxc://hs.org/x"})).files[0].mime == "image/jpeg"


def test_files_that_will_not_be_fetched_say_why() -> None:
    content = {"msgtype": "m.file", "body": "a", "url": "mxc://h/x", "info": {"size": LARGEST + 1}}
    assert "at most 1 MB" in read(said(content)).files[0].problem
    for url in ("https://evil.example/x", "mxc://h/../x", "mxc://h", ""):
        (file,) = read(said(content | {"url": url})).files
        assert file.problem == "its address is not one of Matrix" and file.server == ""
    (locked,) = read(said(content | {"file": {"url": "mxc://h/x"}})).files
    assert locked.problem == "it is encrypted and cannot be read"


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | st.text(max_size=12),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3),
    max_leaves=8,
)
KEYS = st.sampled_from(
    ["msgtype", "body", "formatted_body", "m.mentions", "m.relates_to", "filename", "url", "info", "file"]
    + ["geo_uri", "user_ids", "rel_type", "event_id", "m.in_reply_to", "size", "mimetype", "is_falling_back"]
)
CONTENT = st.dictionaries(KEYS, JSON | st.dictionaries(KEYS, JSON, max_size=4), max_size=6)


@settings(max_examples=300, deadline=None)
@given(
    CONTENT,
    st.sampled_from(["m.text", "m.image", "m.file", "m.emote", "m.location", "m.audio"]),
    st.booleans(),
)
def test_no_content_is_too_odd(content: dict[str, Any], kind: str, direct: bool) -> None:
    raw = msgspec.json.encode(
        {"type": "m.room.message", "sender": ANN, "event_id": "$e", "content": {"msgtype": kind} | content}
    )
    event = event_of(raw)
    assert event is not None
    reading = read(event, direct=direct)
    assert isinstance(reading, Said | Ignored)
    if isinstance(reading, Said):
        assert reading.envelope.text.strip() or reading.files
        answered = with_answered(reading, event, room(), ME)
        assert answered.quoted
