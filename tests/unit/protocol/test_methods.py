"""The table of methods: refusals, and what patches need. Who may call what is in `test_scope_matrix`."""

from __future__ import annotations

import msgspec
import pytest
from msgspec import Raw

from openclaw.errors import Forbidden, InvalidRequest
from openclaw.protocol.connect import ClosedObject, Role
from openclaw.protocol.errors import wire_error
from openclaw.protocol.frames import Request
from openclaw.protocol.methods import METHODS, MethodSpec, admit_call, decode_params, required_scope
from openclaw.protocol.params import HealthParams
from openclaw.protocol.results import Health
from openclaw.protocol.scopes import ADMIN, ALL_SCOPES, READ, WRITE
from tests.unit.protocol.cases import PATCH_WITH_ADMIN, PATCH_WITH_WRITE
from tests.unit.protocol.scope_table import EXAMPLES

KEY = "agent:main:main"
GUARDS = {"agentId": "main", "expectedSessionId": "s", "expectedMarkedUnreadAt": None}


def call(method: str, params: object, scopes: tuple[str, ...], role: Role = "operator") -> ClosedObject:
    frame = Request("req", "1", method, Raw(msgspec.json.encode(params)))
    return admit_call(frame, role, scopes)


@pytest.mark.spec("RPC-4")
def test_the_founding_methods_have_rows() -> None:
    assert {"sessions.list", "sessions.patch", "chat.history", "chat.send", "agent", "agent.wait"} <= set(
        METHODS
    )
    assert METHODS["agent"].second_result is not None
    assert [name for name, spec in METHODS.items() if spec.second_result] == ["agent"]


@pytest.mark.spec("RPC-3")
class TestAdmission:
    def test_the_refusal_has_the_shape_that_clients_read(self) -> None:
        with pytest.raises(Forbidden) as caught:
            call("chat.send", EXAMPLES["chat.send"], (READ,))
        assert msgspec.to_builtins(wire_error(caught.value)) == {
            "code": "FORBIDDEN",
            "message": "missing scope: operator.write",
            "details": {
                "code": "MISSING_SCOPE",
                "missingScope": "operator.write",
                "requiredScopes": ["operator.write"],
            },
        }

    def test_a_method_without_a_row_is_denied_even_to_admins(self) -> None:
        for method in ("no.such.method", "connect", "config.got", "", "HEALTH", "health "):
            with pytest.raises(InvalidRequest, match=f"unknown method: {method}"):
                call(method, {}, ALL_SCOPES)

    def test_nodes_call_nothing(self) -> None:
        for method in (*METHODS, "no.such.method"):
            with pytest.raises(InvalidRequest, match="unauthorized role: node"):
                call(method, EXAMPLES.get(method, {}), ALL_SCOPES, role="node")

    def test_a_stranger_learns_nothing_about_parameters(self) -> None:
        with pytest.raises(Forbidden):
            call("chat.send", {"nonsense": True}, (READ,))

    def test_another_table_can_be_given(self) -> None:
        table = {"ping": MethodSpec(HealthParams, Health, ADMIN)}
        frame = Request("req", "1", "ping", Raw(b'{"probe":true}'))
        assert admit_call(frame, "operator", (ADMIN,), table) == HealthParams(probe=True)
        with pytest.raises(InvalidRequest, match="unknown method: health"):
            admit_call(Request("req", "1", "health"), "operator", (ADMIN,), table)


@pytest.mark.spec("RPC-3", "RPC-7")
class TestPatchScope:
    @pytest.mark.parametrize("value_or_null", [True, False])
    @pytest.mark.parametrize("name", sorted(PATCH_WITH_WRITE))
    def test_organising_needs_write(self, name: str, value_or_null: bool) -> None:
        patch = {"key": KEY, name: PATCH_WITH_WRITE[name] if value_or_null else None} | GUARDS
        assert call("sessions.patch", patch, (WRITE,))

    @pytest.mark.parametrize("value_or_null", [True, False])
    @pytest.mark.parametrize("name", sorted(PATCH_WITH_ADMIN))
    def test_everything_else_needs_admin(self, name: str, value_or_null: bool) -> None:
        patch = {"key": KEY, "label": "l", name: PATCH_WITH_ADMIN[name] if value_or_null else None}
        with pytest.raises(Forbidden, match=r"missing scope: operator\.admin"):
            call("sessions.patch", patch, (WRITE, READ))
        assert call("sessions.patch", patch, (ADMIN,))

    def test_no_field_is_left_out(self) -> None:
        decoded = decode_params("sessions.patch", Raw(msgspec.json.encode({"key": KEY})))
        names = {field.encode_name for field in msgspec.structs.fields(decoded)}
        guards = {name for name in names if name.startswith("expected")}
        assert names - guards - {"key", "agentId"} == set(PATCH_WITH_WRITE) | set(PATCH_WITH_ADMIN)
        assert required_scope("sessions.patch", decoded) == WRITE
        assert required_scope("health", HealthParams()) == READ
