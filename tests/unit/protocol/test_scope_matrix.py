"""The authorisation matrix: every method with every scope, through a real connection.

`scope_table`, written by hand, says who may. The product must agree in every cell, and have no method and
no event without a row.
"""

from __future__ import annotations

from typing import Any

import pytest

from openclaw.gateway.handlers.table import HANDLERS
from openclaw.protocol.connection import Call, Connection, Reply
from openclaw.protocol.events import EVENTS, may_receive
from openclaw.protocol.methods import METHODS
from openclaw.protocol.params import SessionsPatchParams
from openclaw.protocol.scopes import ADMIN, ALL_SCOPES, READ, WRITE
from tests.unit.protocol.cases import PATCH_WITH_ADMIN, PATCH_WITH_WRITE
from tests.unit.protocol.scope_table import ADMITTED, COLUMNS, EXAMPLES, RECEIVED
from tests.unit.protocol.wire import NOW_MS, open_connection, read, request

HOW_TO = "add a row to TABLE (and an example, if it needs parameters) in tests/unit/protocol/scope_table.py"
HOW_TO_EVENT = "add a row to EVENT_TABLE in tests/unit/protocol/scope_table.py"
KEY = "agent:main:main"


def answer(connection: Connection, method: str, params: dict[str, Any]) -> dict[str, Any] | None:
    """None when the call goes ahead, else the error that its client reads."""
    outcome = connection.receive(request(method, params), NOW_MS)
    if isinstance(outcome, Call):
        assert outcome.request.method == method
        return None
    assert isinstance(outcome, Reply)
    error: dict[str, Any] = read(outcome.frame)["error"]
    return error


def least_scope(method: str) -> str:
    """The scope that a refusal names: the smallest of those that admit the method."""
    (least,) = [scope for scope in (READ, WRITE, ADMIN) if scope in ADMITTED[method]][:1]
    return next((scope for scope in ADMITTED[method] - {READ, WRITE, ADMIN}), least)


@pytest.mark.spec("RPC-3")
class TestMethods:
    def test_every_method_stands_in_the_table(self) -> None:
        missing, gone = sorted(METHODS.keys() - ADMITTED.keys()), sorted(ADMITTED.keys() - METHODS.keys())
        assert not missing, f"no row for {', '.join(missing)}: {HOW_TO}"
        assert not gone, f"rows for methods that do not exist: {', '.join(gone)}"
        assert set(COLUMNS) == set(ALL_SCOPES)
        assert not EXAMPLES.keys() - METHODS.keys()

    def test_every_method_has_a_handler_and_the_other_way_round(self) -> None:
        assert HANDLERS.keys() == METHODS.keys()

    @pytest.mark.parametrize("scope", COLUMNS)
    def test_every_cell(self, scope: str) -> None:
        for method, admitted in ADMITTED.items():
            error = answer(open_connection(scopes=(scope,)), method, EXAMPLES.get(method, {}))
            if scope in admitted:
                assert error is None, (
                    f"{method} with {scope} is refused: {error}. If the parameters: {HOW_TO}"
                )
                continue
            assert error is not None, f"{method} goes ahead with {scope} alone"
            assert error["code"] == "FORBIDDEN", f"{method} with {scope}: {error}"
            named = least_scope(method)
            expected = {"code": "MISSING_SCOPE", "missingScope": named, "requiredScopes": [named]}
            assert error["details"] == expected, f"{method} with {scope}"

    def test_without_a_scope_nothing_goes_ahead(self) -> None:
        for method in METHODS:
            for scopes in ((), ("operator.zzz", "admin", "*", "OPERATOR.ADMIN", "")):
                error = answer(open_connection(scopes=scopes), method, EXAMPLES.get(method, {}))
                assert error is not None and error["code"] == "FORBIDDEN", method

    def test_a_node_calls_nothing_whatever_it_asked_for(self) -> None:
        for method in (*METHODS, "no.such.method", "connect "):
            node = open_connection(scopes=ALL_SCOPES, role="node")
            error = answer(node, method, EXAMPLES.get(method, {}))
            assert error == {"code": "INVALID_REQUEST", "message": "unauthorized role: node"}, method

    def test_an_owner_calls_everything_but_what_does_not_exist(self) -> None:
        for method in METHODS:
            assert answer(open_connection(scopes=ALL_SCOPES), method, EXAMPLES.get(method, {})) is None
        for method in ("no.such.method", "HEALTH", "health ", ""):
            error = answer(open_connection(scopes=ALL_SCOPES), method, {})
            assert error is not None and error["code"] == "INVALID_REQUEST"

    def test_scopes_are_not_asked_of_the_parameters(self) -> None:
        """A caller without the scope learns nothing about the parameters."""
        for method, admitted in ADMITTED.items():
            if READ not in admitted:
                error = answer(open_connection(scopes=(READ,)), method, {"nonsense": True})
                assert error is not None and error["code"] == "FORBIDDEN", method


@pytest.mark.spec("RPC-3", "RPC-7")
class TestPatchFields:
    def test_every_field_is_judged(self) -> None:
        assert not PATCH_WITH_WRITE.keys() & PATCH_WITH_ADMIN.keys()
        fields = SessionsPatchParams.__struct_encode_fields__
        addressing = {"key", "agentId"} | {name for name in fields if name.startswith("expected")}
        unjudged = set(fields) - addressing - PATCH_WITH_WRITE.keys() - PATCH_WITH_ADMIN.keys()
        assert not unjudged, f"say in cases.py which scope these patch fields need: {sorted(unjudged)}"

    @pytest.mark.parametrize("scope", COLUMNS)
    def test_every_field_with_every_scope(self, scope: str) -> None:
        for name, value in (PATCH_WITH_WRITE | PATCH_WITH_ADMIN).items():
            needed = WRITE if name in PATCH_WITH_WRITE else ADMIN
            for given in (value, None):
                error = answer(open_connection(scopes=(scope,)), "sessions.patch", {"key": KEY, name: given})
                if scope in (ADMIN, needed):
                    assert error is None, (name, scope, error)
                else:
                    assert error is not None and error["code"] == "FORBIDDEN", (name, scope)
                    assert error["details"]["missingScope"] == (WRITE if scope != WRITE else needed)

    def test_one_field_of_an_admin_makes_a_patch_an_admins(self) -> None:
        mixed = {"key": KEY, "label": "l", "sendPolicy": "deny"}
        assert answer(open_connection(scopes=(WRITE,)), "sessions.patch", mixed) is not None
        assert answer(open_connection(scopes=(ADMIN,)), "sessions.patch", mixed) is None


@pytest.mark.spec("RPC-3")
class TestEvents:
    def test_every_event_stands_in_the_table(self) -> None:
        missing = sorted(EVENTS.keys() - RECEIVED.keys())
        assert not missing, f"no row for {', '.join(missing)}: {HOW_TO_EVENT}"
        assert not RECEIVED.keys() - EVENTS.keys()

    def test_every_cell(self) -> None:
        for event, takers in RECEIVED.items():
            assert {scope for scope in COLUMNS if may_receive(event, (scope,))} == takers, event
            assert may_receive(event, ()) is (takers == set(COLUMNS)), event
