"""Scopes: implication and intersection."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from openclaw.errors import Forbidden
from openclaw.protocol.scopes import (
    ADMIN,
    ALL_SCOPES,
    APPROVALS,
    PAIRING,
    READ,
    TALK,
    TALK_SECRETS,
    WRITE,
    check_scope,
    effective_scopes,
    holds_scope,
)

scope_words = st.one_of(st.sampled_from(ALL_SCOPES), st.just("operator.zzz"), st.text(max_size=4))
scope_lists = st.lists(scope_words, max_size=8)


@pytest.mark.spec("RPC-3")
class TestScopes:
    def test_admin_covers_write_covers_read(self) -> None:
        assert all(holds_scope([ADMIN], scope) for scope in ALL_SCOPES)
        assert [scope for scope in ALL_SCOPES if holds_scope([WRITE], scope)] == [READ, WRITE]
        assert [scope for scope in ALL_SCOPES if holds_scope([READ], scope)] == [READ]
        assert [scope for scope in ALL_SCOPES if holds_scope([TALK], scope)] == [TALK]
        assert not holds_scope([TALK], TALK_SECRETS)
        assert [scope for scope in ALL_SCOPES if holds_scope([], scope)] == []

    def test_the_shared_secret_grants_what_was_asked(self) -> None:
        asked = [ADMIN, READ, WRITE, APPROVALS, PAIRING]
        assert effective_scopes(asked, ALL_SCOPES) == tuple(asked)
        assert effective_scopes([READ], ALL_SCOPES) == (READ,)
        assert effective_scopes([READ, READ, "operator.zzz"], ALL_SCOPES) == (READ,)
        assert effective_scopes(asked, ()) == ()
        assert effective_scopes((), ALL_SCOPES) == ()

    def test_nobody_gets_more_than_the_credential_holds(self) -> None:
        assert effective_scopes([ADMIN, WRITE, READ], [WRITE]) == (WRITE, READ)
        assert effective_scopes([ADMIN], [READ]) == ()

    @settings(max_examples=300, deadline=None)
    @given(scope_lists, scope_lists)
    def test_is_an_intersection(self, asked: list[str], held: list[str]) -> None:
        granted = effective_scopes(asked, held)
        assert set(granted) <= set(asked) & set(ALL_SCOPES)
        assert len(set(granted)) == len(granted)
        for scope in ALL_SCOPES:
            assert not holds_scope(granted, scope) or holds_scope(held, scope)
            assert not holds_scope(granted, scope) or holds_scope(asked, scope)
            if scope in asked and holds_scope(held, scope):
                assert scope in granted

    def test_check(self) -> None:
        check_scope([WRITE], READ)
        with pytest.raises(Forbidden) as caught:
            check_scope([READ], ADMIN)
        assert caught.value.message == "missing scope: operator.admin"
        assert caught.value.fields == {
            "code": "MISSING_SCOPE",
            "missing_scope": ADMIN,
            "required_scopes": [ADMIN],
        }
        with pytest.raises(Forbidden):
            check_scope(["operator.zzz"], "operator.zzz")
