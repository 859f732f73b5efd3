"""What is known about rooms, and answers of homeservers that are odd."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from openclaw.channels.matrix import rooms as tables
from openclaw.channels.matrix.api import load_requests, without_token
from openclaw.channels.matrix.rooms import Invitation, Room, RoomTable, invitations, is_own_arrival
from openclaw.channels.matrix.wire import Event, Members, Sync, event_of, read_events, read_sync
from openclaw.channels.matrix.writing import Piece, edit_content, text_content
from openclaw.errors import InvalidRequest

ME = "@House:Hs"


def sync(**parts: Any) -> Sync:
    found = read_sync(msgspec.json.encode({"next_batch": "s1", **parts}))
    assert found is not None
    return found


def state(kind: str, key: str, **content: Any) -> dict[str, Any]:
    return {"type": kind, "state_key": key, "sender": "@a:b", "event_id": "$s", "content": content}


def member(user: str, membership: str = "join", name: str = "") -> dict[str, Any]:
    return state("m.room.member", user, membership=membership, displayname=name)


def joined(*events: dict[str, Any], **summary: int) -> dict[str, Any]:
    counts = {f"m.{name}_member_count": value for name, value in summary.items()}
    return {"state": {"events": list(events)}, "summary": counts}


@pytest.mark.parametrize(
    ("room", "direct"),
    [
        (joined(member(ME), member("@a:b")), True),
        (joined(member(ME), member("@a:b", "invite")), True),
        (joined(member(ME), member("@a:b"), member("@c:d")), False),
        (joined(member(ME), member("@a:b"), member("@c:d"), member("@c:d", "leave")), True),
        (joined(member(ME)), False),
        (joined(member(ME), joined=2, invited=0), True),
        (joined(member(ME), joined=2, invited=1), False),
        (joined(member(ME), joined=1, invited=1), True),
        (joined(member(ME), member("@a:b"), joined=3), False),
    ],
)
def test_two_people_make_a_direct_chat(room: dict[str, Any], direct: bool) -> None:
    table = RoomTable()
    table.take(sync(rooms={"join": {"!r": room}}))
    assert table.is_direct(table.room("!r")) is direct


def test_what_the_account_marked_is_direct_until_it_is_not() -> None:
    table = RoomTable()
    crowd = joined(*(member(f"@{number}:h") for number in range(5)))
    marks = {"type": "m.direct", "content": {"@a:b": ["!r", 7], "@odd:b": "!x"}}
    table.take(sync(rooms={"join": {"!r": crowd}}, account_data={"events": [{"type": "m.other"}, marks]}))
    assert table.is_direct(table.room("!r")) and table.direct_room("@a:b") == "!r"
    table.take(sync(account_data={"events": [{"type": "m.direct", "content": {}}]}))
    assert not table.is_direct(table.room("!r")) and table.direct_room("@a:b") is None


def test_a_direct_chat_is_found_by_the_person_and_forgotten_when_it_is_left() -> None:
    table = RoomTable()
    pair = joined(member(ME), member("@a:b"))
    table.take(
        sync(rooms={"join": {"!old": pair, "!new": pair, "!other": joined(member(ME), member("@c:d"))}})
    )
    assert table.direct_room("@a:b") == "!new" and table.direct_room("@x:y") is None
    table.take(sync(rooms={"leave": {"!new": {}, "!never": {}}}))
    assert table.direct_room("@a:b") == "!old"


def test_rooms_learn_their_names() -> None:
    room = Room("!r")
    for event in read_events(
        msgspec.Raw(msgspec.json.encode(one))
        for one in (
            state("m.room.name", "", name="Garden"),
            state("m.room.canonical_alias", "", alias="#garden:h"),
            state("m.room.topic", "", topic="x"),
            member("@a:b", name="Ann"),
            {"type": "m.room.name", "content": {"name": "no state"}},
        )
    ):
        room.learn(event)
    assert (room.name, room.alias, room.name_of("@a:b"), room.name_of("@x:y")) == (
        "Garden",
        "#garden:h",
        "Ann",
        "",
    )
    room.count(Members({"@a:b": {"display_name": "Other"}, "@c:d": {"display_name": 7}}))
    assert room.size == 2 and room.members == {"@a:b": "Ann", "@c:d": ""}


def test_a_first_sync_tells_a_part_in_its_timelines() -> None:
    room = joined(member(ME)) | {"timeline": {"events": [state("m.room.name", "", name="Garden")]}}
    for first, name in ((False, ""), (True, "Garden")):
        table = RoomTable()
        table.take(sync(rooms={"join": {"!r": room}}), first=first)
        assert table.room("!r").name == name


def test_a_crowd_is_not_remembered_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tables, "MOST_MEMBERS", 2)
    room = Room("!r")
    for user in ("@a:b", "@c:d", "@e:f", "@a:b"):
        room.learn(
            Event(type="m.room.member", state_key=user, content={"membership": "join", "displayname": user})
        )
    assert list(room.members) == ["@a:b", "@c:d"]


def test_invitations_name_the_one_who_invites() -> None:
    mine = state("m.room.member", ME, membership="invite", is_direct=True)
    other = state("m.room.member", "@x:y", membership="invite")
    given_ = {
        "!a": {"invite_state": {"events": [other, mine]}},
        "!b": {"invite_state": {"events": [other]}},
        "!c": {},
    }
    assert invitations(sync(rooms={"invite": given_}), ME) == (Invitation("!a", "@a:b", True),)


@pytest.mark.parametrize(
    ("membership", "before", "key", "arrived"),
    [
        ("join", None, ME, True),
        ("join", "invite", ME, True),
        ("join", "join", ME, False),
        ("leave", None, ME, False),
        ("join", None, "@x:y", False),
    ],
)
def test_coming_in_is_told_from_a_new_name(
    membership: str, before: str | None, key: str, arrived: bool
) -> None:
    unsigned = {} if before is None else {"prev_content": {"membership": before}}
    event = Event(type="m.room.member", state_key=key, content={"membership": membership}, unsigned=unsigned)
    assert is_own_arrival(event, ME) is arrived


# -- odd answers -----------------------------------------------------------------------------------


@pytest.mark.parametrize("data", [b"", b"[]", b"{}", b'{"next_batch": 7}', b"\xff", b"[" * 200_000])
def test_an_answer_that_is_no_sync_is_none(data: bytes) -> None:
    assert read_sync(data) is None


def test_one_odd_event_does_not_spoil_the_others() -> None:
    odd: list[Any] = [
        7,
        None,
        "x",
        {"type": 5},
        {"content": []},
        {"content": {"body": "x"}, "sender": "@a:b", "type": "m"},
    ]
    room = {"timeline": {"events": odd}}
    (event,) = read_events(sync(rooms={"join": {"!r": room}}).rooms.join["!r"].timeline.events)
    assert event.text("body") == "x" and event.text("other") == "" and event.age_ms == 0
    assert Event(unsigned={"age": 5.5}).age_ms == 5 and Event(unsigned={"age": "x"}).age_ms == 0
    lone = event_of(b'{"type": "m", "content": {"body": "a\\ud800b"}}')
    assert lone is not None and lone.text("body") == "a\ufffdb"


@settings(max_examples=200, deadline=None)
@given(st.binary(max_size=60) | st.text(max_size=60).map(str.encode))
def test_no_bytes_are_too_odd(data: bytes) -> None:
    assert event_of(data) is None or isinstance(event_of(data), Event)
    assert read_sync(data) is None


@pytest.mark.parametrize(
    ("path", "left"),
    [
        ("/sync?access_token=&since=s1", "/sync?since=s1"),
        ("/sync?since=a%2Bb&access_token=secret&timeout=0", "/sync?since=a%2Bb&timeout=0"),
        ("/join/%21r?access_token=secret", "/join/%21r"),
        ("/plain", "/plain"),
    ],
)
def test_a_credential_never_stands_in_an_address(path: str, left: str) -> None:
    assert without_token(path) == left


async def test_a_missing_library_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> Any:
        raise ModuleNotFoundError(f"No module named {name!r}")

    monkeypatch.setattr("openclaw.channels.matrix.api.import_module", missing)
    with pytest.raises(InvalidRequest, match=r"openclaw\[matrix\]"):
        await load_requests()
    monkeypatch.setattr("openclaw.channels.matrix.api.import_module", lambda name: type(name, (), {"Api": 7}))
    assert await load_requests() == 7


def test_form_that_would_not_fit_is_left_away() -> None:
    large = Piece("words", "<b>" + "x" * 60_000 + "</b>")
    assert "formatted_body" not in text_content(large, "$r") and text_content(large, "$r")["m.relates_to"]
    edit = edit_content(large, "$e")
    assert edit["m.new_content"] == {"msgtype": "m.text", "body": "words", "m.mentions": {}}
