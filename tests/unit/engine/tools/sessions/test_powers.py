"""Who waits for whom: a wait that would close a circle is seen, through however many others."""

from __future__ import annotations

import pytest

from openclaw.engine.tools.sessions.powers import Powers


@pytest.mark.spec("QUE-1")
def test_circles_are_seen_through_several_waits_at_once() -> None:
    powers = Powers.__new__(Powers)
    powers.waiting = {"a": ["b", "c"], "c": ["d", "a"], "d": ["e"]}
    assert powers.closes_circle("a", "a")
    assert powers.closes_circle("e", "a")  # a waits for c, c for d, d for e
    assert powers.closes_circle("b", "a")
    assert powers.closes_circle("d", "c")
    assert not powers.closes_circle("a", "e")
    assert not powers.closes_circle("f", "a")
    assert not powers.closes_circle("a", "b")
    powers.waiting = {}
    assert not powers.closes_circle("a", "b")
