"""One-time links and the sign-ins they become: once, for a while, bounded in number."""

from __future__ import annotations

import itertools
from functools import partial

from openclaw.gateway.http.signin import LINK_MS, MOST_LINKS, MOST_SIGNINS, SIGNED_IN_MS, Signins


class Desk:
    """Sign-ins with a clock that is set by hand and secrets that can be told apart."""

    def __init__(self) -> None:
        self.now_ms = 1_000_000
        numbers = itertools.count(1)
        self.signins = Signins(lambda: self.now_ms, lambda: f"secret-{next(numbers)}")

    def sign_in(self) -> str:
        value = self.signins.redeem(self.signins.make_link().code)
        assert value is not None
        return value


def test_a_link_works_once() -> None:
    desk = Desk()
    link = desk.signins.make_link()
    assert link.expires_at_ms == desk.now_ms + LINK_MS
    assert desk.signins.redeem("secret-9") is None
    value = desk.signins.redeem(link.code)
    assert value is not None
    assert value != link.code
    assert desk.signins.redeem(link.code) is None
    found = desk.signins.find(value)
    assert found is not None
    assert found.expires_at_ms == desk.now_ms + SIGNED_IN_MS
    assert value.encode() not in found.digest


def test_a_link_ends_after_a_minute_and_not_before() -> None:
    for late_ms, good in ((LINK_MS - 1, True), (LINK_MS, False)):
        desk = Desk()
        link = desk.signins.make_link()
        desk.now_ms += late_ms
        assert (desk.signins.redeem(link.code) is not None) is good


def test_a_sign_in_ends_in_time_and_closes_its_sockets() -> None:
    desk, closed = Desk(), list[str]()
    value = desk.sign_in()
    signin = desk.signins.find(value)
    assert signin is not None
    desk.signins.attach(signin, lambda: closed.append("socket"))
    desk.now_ms += SIGNED_IN_MS - 1
    assert desk.signins.find(value) == signin
    assert closed == []
    desk.now_ms += 1
    assert desk.signins.find(value) is None
    assert closed == ["socket"]


def test_nothing_else_is_a_sign_in() -> None:
    desk = Desk()
    link = desk.signins.make_link()
    for value in (None, "", "secret-7", link.code, "x" * 5000, "\ud800"):
        assert desk.signins.find(value) is None
    assert desk.signins.redeem("x" * 5000) is None
    assert desk.signins.redeem(link.code) is not None


def test_signing_out_ends_one_or_all() -> None:
    desk, closed = Desk(), list[str]()
    first, second = desk.sign_in(), desk.sign_in()
    for name, value in (("first", first), ("second", second)):
        signin = desk.signins.find(value)
        assert signin is not None
        desk.signins.attach(signin, partial(closed.append, name))
    one = desk.signins.find(first)
    assert one is not None
    assert desk.signins.end(one.digest) is True
    assert desk.signins.end(one.digest) is False
    assert closed == ["first"]
    assert desk.signins.find(first) is None
    unused = desk.signins.make_link()
    assert desk.signins.end_all() == 1
    assert closed == ["first", "second"]
    assert desk.signins.redeem(unused.code) is None


def test_a_socket_that_left_is_not_closed_again() -> None:
    desk, closed = Desk(), list[str]()
    signin = desk.signins.find(desk.sign_in())
    assert signin is not None
    detach = desk.signins.attach(signin, lambda: closed.append("gone"))
    desk.signins.attach(signin, lambda: closed.append("there"))
    detach()
    detach()
    desk.signins.end(signin.digest)
    assert closed == ["there"]


def test_the_oldest_goes_when_there_are_too_many() -> None:
    desk, closed = Desk(), list[str]()
    links = [desk.signins.make_link().code for _ in range(MOST_LINKS + 1)]
    assert desk.signins.redeem(links[0]) is None
    assert desk.signins.redeem(links[1]) is not None
    desk = Desk()
    first = desk.sign_in()
    signin = desk.signins.find(first)
    assert signin is not None
    desk.signins.attach(signin, lambda: closed.append("first"))
    others = [desk.sign_in() for _ in range(MOST_SIGNINS - 1)]
    assert desk.signins.find(first) is not None
    newest = desk.sign_in()
    assert desk.signins.find(first) is None
    assert closed == ["first"]
    assert desk.signins.find(others[0]) is not None
    assert desk.signins.find(newest) is not None


def test_two_gateways_on_one_machine_have_two_cookies() -> None:
    desk = Desk()
    desk.signins.name_after(18789)
    assert desk.signins.cookie_name == "openclaw_signin_18789"
