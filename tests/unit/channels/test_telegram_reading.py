"""From an update to a message: who, where, what, and which updates are none."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from openclaw.channels.telegram.reading import FileRef, Ignored, Me, Moved, Said, number_of, read_update
from tests.channels.platform import Chat, Person
from tests.fakes.telegram_platform import message_of

Json = dict[str, Any]
ME = Me(7000, "House_bot", "telegram", "work")
ANN = Person("101", "Ann")
DIRECT = Chat("direct", "101")
GROUP = Chat("group", "-1001")
TOPIC = Chat("group", "-1001", "7")


def read(message: Json, **options: Any) -> Any:
    return read_update(json.dumps({"update_id": 5, "message": message}).encode(), ME, **options)


def said(chat: Chat = DIRECT, text: str = "hello", more: Json | None = None, **fields: Any) -> Said:
    found = read(message_of(ANN, chat, text, 12) | fields | (more or {}))
    assert isinstance(found, Said), found
    return found


@pytest.mark.spec("ORG-1", "ORG-4")
def test_a_direct_message() -> None:
    envelope = said(more={"from": {"id": 101, "first_name": "Ann", "last_name": "Lee"}}).envelope
    assert (envelope.channel, envelope.account_id, envelope.message_id) == ("telegram", "work", "12")
    assert (envelope.peer_kind, envelope.peer_id, envelope.thread_id) == ("direct", "101", None)
    assert (envelope.sender_id, envelope.sender_name) == ("101", "Ann Lee")
    assert (envelope.conversation_label, envelope.group_subject) == ("Ann Lee", None)
    assert envelope.text == "hello" and not envelope.was_mentioned and not envelope.has_media


@pytest.mark.spec("ORG-1", "ORG-4")
def test_a_group_message() -> None:
    envelope = said(GROUP).envelope
    assert (envelope.peer_kind, envelope.peer_id, envelope.thread_kind) == ("group", "-1001", None)
    assert (envelope.conversation_label, envelope.group_subject) == ("The house", "The house")
    assert not envelope.was_mentioned and not envelope.replied_to_us and envelope.mentions_detectable


@pytest.mark.spec("KEY-10", "ORG-1")
def test_a_topic_is_a_thread_of_its_own_and_its_beginning_is_not_a_quotation() -> None:
    found = said(TOPIC)
    envelope = found.envelope
    assert (envelope.thread_id, envelope.thread_kind, envelope.thread_label) == ("7", "topic", "Plans")
    assert envelope.peer_id == "-1001" and not envelope.replied_to_us and found.quoted is None


@pytest.mark.spec("KEY-10")
@pytest.mark.parametrize(
    "more", [{"message_thread_id": 9}, {"message_thread_id": 9, "is_topic_message": False}]
)
def test_a_chain_of_replies_and_the_general_topic_are_the_group_itself(more: Json) -> None:
    envelope = said(GROUP, **more).envelope
    assert envelope.thread_id is None and envelope.thread_kind is None and envelope.thread_label is None


# -- being called ----------------------------------------------------------------------------------


@pytest.mark.spec("ROUTE-3")
@pytest.mark.parametrize(
    ("text", "entities", "called"),
    [
        ("hey @House_bot now", [("mention", 4, 10)], True),
        ("hey @house_BOT now", [("mention", 4, 10)], True),
        ("hey @House_botx", [("mention", 4, 11)], False),
        ("hey @other_bot", [("mention", 4, 10)], False),
        ("😀 @House_bot", [("mention", 3, 10)], True),  # counted in UTF-16 units
        ("😀 @House_bot", [("mention", 2, 10)], False),
        ("hey @House_bot", [], False),  # Telegram marks mentions; text in code is none
        ("please /run@House_bot", [("bot_command", 7, 14)], True),
        ("please /run@other_bot", [("bot_command", 7, 14)], False),
        ("please /run", [("bot_command", 7, 4)], False),
        ("x", [("mention", -1, 10)], False),
        ("x", [("mention", 99, 10)], False),
        ("x", [("mention", 0, 0)], False),
    ],
)
def test_a_mention_is_what_telegram_marked(
    text: str, entities: list[tuple[str, int, int]], called: bool
) -> None:
    marks = [{"type": kind, "offset": offset, "length": length} for kind, offset, length in entities]
    assert said(GROUP, text, entities=marks).envelope.was_mentioned is called


@pytest.mark.spec("ROUTE-3")
@pytest.mark.parametrize(("user_id", "called"), [(7000, True), (7001, False)])
def test_a_mention_by_name_only(user_id: int, called: bool) -> None:
    mark = {"type": "text_mention", "offset": 0, "length": 5, "user": {"id": user_id, "first_name": "House"}}
    assert said(GROUP, "House?", entities=[mark]).envelope.was_mentioned is called


@pytest.mark.spec("ROUTE-3")
def test_a_caption_mentions_too() -> None:
    message = message_of(ANN, GROUP, "", 12) | {
        "caption": "@House_bot look", "caption_entities": [{"type": "mention", "offset": 0, "length": 10}],
        "photo": [{"file_id": "p", "width": 1, "height": 1}],
    }  # fmt: skip
    found = read(message)
    assert found.envelope.was_mentioned and found.envelope.text == "look" and found.envelope.has_media


@pytest.mark.spec("ROUTE-3")
@pytest.mark.parametrize(("author", "ours"), [(7000, True), (102, False)])
def test_an_answer_to_us_counts_as_a_call_and_quotes(author: int, ours: bool) -> None:
    reply = {
        "message_id": 3, "chat": {"id": -1001, "type": "group"}, "text": "earlier words",
        "from": {"id": author, "first_name": "Some", "last_name": "One"},
    }  # fmt: skip
    found = said(GROUP, reply_to_message=reply)
    assert found.envelope.replied_to_us is ours
    assert (found.quoted, found.quoted_sender) == ("earlier words", "Some One")


@pytest.mark.parametrize(
    ("reply", "more", "quoted"),
    [
        ({"caption": "a picture"}, {}, "a picture"),
        ({"text": "all of it"}, {"quote": {"text": "part"}}, "part"),
        ({"photo": [{"file_id": "x"}]}, {}, "[a file]"),
        ({"sticker": {"file_id": "x", "emoji": "🙂"}}, {}, "[Sticker 🙂]"),
        ({}, {}, None),
    ],
)
def test_what_an_answer_quotes(reply: Json, more: Json, quoted: str | None) -> None:
    head: Json = {
        "message_id": 3,
        "chat": {"id": 101, "type": "private"},
        "from": {"id": 1, "first_name": "Bo"},
    }
    found = said(DIRECT, reply_to_message=head | reply, **more)
    assert (found.quoted, found.quoted_sender) == (quoted, "Bo" if quoted else None)


def test_a_quotation_of_somebody_who_speaks_as_the_group() -> None:
    group = {"id": -1001, "type": "supergroup", "title": "The house"}
    reply = {"message_id": 3, "chat": group, "text": "a rule", "sender_chat": group}
    found = said(GROUP, reply_to_message=reply)
    assert (found.quoted, found.quoted_sender) == ("a rule", "The house")
    nobody = said(GROUP, reply_to_message={"message_id": 3, "chat": group, "text": "a rule"})
    assert (nobody.quoted, nobody.quoted_sender) == ("a rule", None)


# -- our name in front -----------------------------------------------------------------------------


@pytest.mark.spec("CMD-12", "LIFE-14")
@pytest.mark.parametrize(
    ("text", "read_as"),
    [
        ("/new@House_bot", "/new"),
        ("/new@HOUSE_BOT think hard", "/new think hard"),
        ("/status", "/status"),
        ("@House_bot /reset", "/reset"),
        ("@house_bot: stop", "stop"),
        ("@House_bot, please", "please"),
        ("@House_bot", "@House_bot"),
        ("@House_bots are nice", "@House_bots are nice"),
        ("@House_bot_2 hi", "@House_bot_2 hi"),
        ("well @House_bot", "well @House_bot"),
        ("/new@House_botx", None),
        ("/new@other_bot now", None),
        ("mail/new@other", "mail/new@other"),
        ("/path@other/x", "/path@other/x"),
    ],
)
def test_our_name_is_an_address_not_a_word(text: str, read_as: str | None) -> None:
    found = read(message_of(ANN, GROUP, text, 1))
    if read_as is None:
        assert found == Ignored("a command for another bot")
    else:
        assert found.envelope.text == read_as


@pytest.mark.spec("CMD-12", "ROUTE-3")
def test_a_command_that_names_us_calls_us() -> None:
    assert said(GROUP, "/status@House_bot").envelope.was_mentioned
    assert not said(GROUP, "/status").envelope.was_mentioned


# -- files and other things ------------------------------------------------------------------------


def test_the_largest_photo_that_may_be_fetched() -> None:
    sizes = [
        {"file_id": "small", "width": 90, "height": 90, "file_size": 900},
        {"file_id": "huge", "width": 9000, "height": 9000, "file_size": 101},
        {"file_id": "large", "width": 900, "height": 900, "file_size": 100},
    ]
    message = message_of(ANN, DIRECT, "", 1) | {"caption": "see", "photo": sizes}
    assert read(message).files == (FileRef("huge", "photo.jpg", "image/jpeg"),)
    assert read(message, largest_file=100).files == (FileRef("large", "photo.jpg", "image/jpeg"),)
    (file,) = read(message, largest_file=99).files
    assert file.file_id == "small" and "900 bytes" in str(file.problem)


@pytest.mark.parametrize(("size", "fits"), [(1024 * 1024, True), (1024 * 1024 + 1, False), (None, True)])
def test_a_document_has_a_limit(size: int | None, fits: bool) -> None:
    document = {"file_id": "d", "file_name": "plan.pdf", "mime_type": "application/pdf", "file_size": size}
    message = message_of(ANN, DIRECT, "", 1) | {"document": document}
    (file,) = read(message, largest_file=1024 * 1024).files
    assert (file.name, file.mime) == ("plan.pdf", "application/pdf")
    assert (file.problem is None) is fits
    if not fits:
        assert "1048577 bytes" in str(file.problem) and "1 MB" in str(file.problem)


@pytest.mark.parametrize(
    ("more", "text"),
    [
        ({"sticker": {"file_id": "s", "emoji": "🙂"}}, "[Sticker 🙂]"),
        ({"sticker": {"file_id": "s"}}, "[Sticker]"),
        ({"voice": {"file_id": "v", "duration": 12}}, "[Voice message, 12 s; its sound was not listened to]"),
        (
            {"audio": {"file_id": "a", "duration": 3, "title": "Song"}},
            "[Audio Song, 3 s; its sound was not listened to]",
        ),
        ({"audio": {"file_id": "a"}}, "[Audio without a title, 0 s; its sound was not listened to]"),
        ({"video": {"file_id": "v", "duration": 4}}, "[Video, 4 s; it was not looked at]"),
        ({"video_note": {"file_id": "v", "duration": 5}}, "[Video message, 5 s; it was not looked at]"),
        (
            {"animation": {"file_id": "g", "duration": 2}, "document": {"file_id": "g"}},
            "[Animation, 2 s; it was not looked at]",
        ),
        ({"location": {"latitude": 52.5, "longitude": 13.25}}, "[Location 52.50000, 13.25000]"),
        ({"contact": {"phone_number": "+49", "first_name": "Cy"}}, "[Contact Cy +49]"),
        ({"poll": {"question": "Which?"}}, "[Poll: Which?]"),
        ({"dice": {"emoji": "🎲", "value": 4}}, "[🎲 shows 4]"),
    ],
)  # fmt: skip
def test_things_without_words_are_one_line(more: Json, text: str) -> None:
    found = read(message_of(ANN, DIRECT, "", 1) | more)
    assert found.envelope.text == text and found.files == () and not found.envelope.has_media


def test_a_caption_stands_below_the_line() -> None:
    message = message_of(ANN, DIRECT, "", 1) | {"video": {"file_id": "v"}, "caption": "watch this"}
    assert read(message).envelope.text == "[Video, 0 s; it was not looked at]\nwatch this"


# -- what is not a message -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("update", "reason"),
    [
        ({"edited_message": message_of(ANN, DIRECT, "x", 1)}, "not a message"),
        ({"channel_post": message_of(ANN, DIRECT, "x", 1)}, "not a message"),
        ({"callback_query": {"id": "1"}}, "not a message"),
        ({}, "not a message"),
        ({"message": {"text": "no chat"}}, "malformed"),
        ({"message": 5}, "malformed"),
    ],
)
def test_other_updates_are_ignored(update: Json, reason: str) -> None:
    assert read_update(json.dumps({"update_id": 1} | update).encode(), ME) == Ignored(reason)


@pytest.mark.parametrize(
    ("more", "reason"),
    [
        ({"text": "", "new_chat_members": [{"id": 1}]}, "nothing was said"),
        ({"from": {"id": 9, "is_bot": True, "first_name": "Bot"}}, "not said by a person"),
        ({"from": None}, "not said by a person"),
        (
            {"is_automatic_forward": True, "sender_chat": {"id": -5, "type": "channel"}},
            "not said by a person",
        ),
        ({"chat": {"id": -5, "type": "channel"}}, "not a chat with people"),
        ({"chat": {"id": -5, "type": "moon"}}, "not a chat with people"),
    ],
)
def test_what_nobody_said_is_ignored(more: Json, reason: str) -> None:
    assert read(message_of(ANN, GROUP, "x", 1) | more) == Ignored(reason)


def test_someone_who_speaks_as_the_group() -> None:
    bot = {"id": 1087968824, "is_bot": True, "first_name": "Group"}
    group = {"id": -1001, "type": "supergroup", "title": "The house"}
    envelope = said(GROUP, more={"from": bot, "sender_chat": group}).envelope
    assert (envelope.sender_id, envelope.sender_name) == ("-1001", "The house")


def test_a_group_that_moved() -> None:
    assert read(message_of(ANN, GROUP, "", 1) | {"migrate_to_chat_id": -1002}) == Moved("-1001", "-1002")


# -- whatever comes --------------------------------------------------------------------------------


def test_broken_text_is_mended_at_the_door() -> None:
    raw = (
        b'{"update_id":1,"message":{"message_id":1,"chat":{"id":1,"type":"private"},'
        b'"from":{"id":1,"first_name":"A\\u0000\\nB"},"text":"x\\ud83d"}}'
    )
    found = read_update(raw, ME)
    assert isinstance(found, Said)
    assert found.envelope.text == "x\ufffd" and found.envelope.sender_name == "A B"


@pytest.mark.parametrize("raw", [b"", b"{", b"\xff", b"[" * 100_000, b'{"update_id":"x"}', b"null"])
def test_nonsense_is_ignored(raw: bytes) -> None:
    assert read_update(raw, ME) == Ignored("malformed")
    assert number_of(raw) is None


def test_the_number_of_an_update_is_read_even_when_nothing_else_can_be() -> None:
    assert number_of(b'{"update_id": 77, "message": 5}') == 77


JSONISH = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=10,
)
FIELDS = st.sampled_from(
    sorted(message_of(ANN, TOPIC, "x", 1, mention=True)) + ["photo", "document", "voice"]
)


@given(st.dictionaries(FIELDS, JSONISH, max_size=4))
@settings(max_examples=100, deadline=None)
def test_no_update_can_stop_the_reading(strange: Json) -> None:
    assert isinstance(read(message_of(ANN, TOPIC, "x", 1) | strange), Said | Moved | Ignored)


@given(st.binary(max_size=200))
@settings(max_examples=100, deadline=None)
def test_no_bytes_can_either(raw: bytes) -> None:
    assert isinstance(read_update(raw, ME), Said | Moved | Ignored)
