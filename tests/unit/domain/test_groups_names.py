"""What lists call a group (ENT-9)."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from openclaw.domain.groups import group_display_name


@pytest.mark.spec("ENT-9")
@pytest.mark.parametrize(
    ("room", "space", "subject", "group_id", "name"),
    [
        ("general", None, None, "c1", "slack:#general"),
        ("#General Chat", None, "ignored", "c1", "slack:#general-chat"),
        ("general", "ACME Corp", None, "c1", "slack:acme-corp#general"),
        ("#general", "acme", None, "c1", "slack:acme#general"),
        (None, None, "Family & Friends!", "c1", "slack:g-family-friends"),
        (None, None, "#ops", "c1", "slack:g-ops"),
        (None, None, "g-team", "c1", "slack:g-team"),
        (None, None, "a  b\tc", "c1", "slack:g-a-b-c"),
        (None, None, "x@y+z._-w", "c1", "slack:g-x@y+z._-w"),
        (None, None, "...--x--...", "c1", "slack:g-x"),
        (None, "Acme", None, "c1", "slack:g-acme"),
        (None, "Acme", "Team", "c1", "slack:g-team"),
        (None, None, "ครอบครัว ดี", "c1", "slack:g-ครอบครัว-ดี"),
        (None, None, "परिवार", "c1", "slack:g-परिवार"),
        (None, None, "!!!", "c1", "slack:g-c1"),
        ("  ", " ", " ", " C1 ", "slack:g-c1"),
        (None, None, None, "12345678901234", "slack:g-12345678901234"),
        (None, None, None, "123456789012345", "slack:g-123456...2345"),
        (None, None, None, "120363041234@g.us", "slack:g-120363...g.us"),
        (None, None, None, "!!", "slack"),
        (None, None, None, "", "slack"),
    ],
)
def test_display_name_of_a_group(
    room: str | None, space: str | None, subject: str | None, group_id: str, name: str
) -> None:
    shown = group_display_name(channel=" Slack ", group_id=group_id, room=room, space=space, subject=subject)
    assert shown == name


@pytest.mark.spec("ENT-9")
def test_a_thread_label_is_the_name() -> None:
    labelled = group_display_name(
        channel="slack", group_id="c1", room="general", thread_label="  Release 2.0 "
    )
    assert labelled == "Release 2.0"
    assert (
        group_display_name(channel="slack", group_id="c1", room="general", thread_label=" ")
        == "slack:#general"
    )


@pytest.mark.spec("ENT-9")
@settings(max_examples=200, deadline=None)
@given(room=st.none() | st.text(), subject=st.none() | st.text(), group_id=st.text())
def test_a_name_is_one_readable_token(room: str | None, subject: str | None, group_id: str) -> None:
    name = group_display_name(channel="irc", group_id=group_id, room=room, subject=subject)
    assert name == "irc" or name.startswith(("irc:#", "irc:g-"))
    assert not any(char.isspace() for char in name)
    assert "--" not in name.removeprefix("irc:g-")
    name.encode()
