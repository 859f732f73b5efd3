"""Device tokens as credentials, and when a device needs the owner's word."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from openclaw.protocol.auth import (
    AuthOk,
    AuthRefused,
    DeviceToken,
    HeldToken,
    decide_auth,
    digest_secret,
    find_shown_token,
    refuse_device,
    refuse_locked_out,
)
from openclaw.protocol.connect import Role
from openclaw.protocol.device import DeviceRefused
from openclaw.protocol.errors import ErrorShape
from openclaw.protocol.pairing import (
    ApprovedDevice,
    AskOwner,
    PairSilently,
    Welcome,
    decide_pairing,
    refuse_unpaired,
)
from openclaw.protocol.scopes import ADMIN, ALL_SCOPES, PAIRING, READ, WRITE, covers_scopes, holds_scope
from tests.unit.protocol.test_auth import BACKEND, DIGEST, detail, params_of
from tests.unit.protocol.wire import CLI, DEVICE, SECRET, verified

TOKEN = "V7DjwXIvRsAQNk1e_VU2hf6-J8hm9kXCA21gCPBHx20"
HELD = HeldToken(digest_secret(TOKEN), (READ, WRITE), 1_794_767_633_560)
OTHER = HeldToken(digest_secret("another"), ALL_SCOPES, 5)


def decide(tokens: tuple[HeldToken, ...] = (OTHER, HELD), **changes: Any) -> AuthOk | AuthRefused:
    overrides = {"device": DEVICE, "auth": {"token": TOKEN}} | changes.pop("params", {})
    known: dict[str, Any] = {"loopback": False, "origin": None, "allowed_origins": ()} | changes
    mode, digest = known.pop("mode", "token"), known.pop("digest", DIGEST)
    params = params_of(**overrides)
    return decide_auth(mode, digest, params, tokens=tokens, **({"device": verified(params)} | known))


@pytest.mark.spec("RPC-3")
class TestTokens:
    @pytest.mark.parametrize(
        "auth", [{"token": TOKEN}, {"deviceToken": TOKEN}, {"token": "stale", "deviceToken": TOKEN}]
    )
    def test_it_is_taken_in_either_field(self, auth: dict[str, str]) -> None:
        expected = AuthOk(
            "device-token",
            "operator",
            (READ, WRITE),
            (WRITE, READ),
            DEVICE["id"],
            DeviceToken(TOKEN, HELD.issued_at_ms),
        )
        assert decide(params={"auth": auth, "scopes": [ADMIN, WRITE, READ, "operator.zzz"]}) == expected

    @pytest.mark.parametrize(("mode", "digest"), [("token", None), ("password", DIGEST), ("none", None)])
    def test_it_opens_in_every_mode(self, mode: str, digest: bytes | None) -> None:
        outcome = decide(mode=mode, digest=digest)
        assert isinstance(outcome, AuthOk) and outcome.method == "device-token"

    @pytest.mark.parametrize("field", ["password", "bootstrapToken"])
    def test_it_is_nothing_in_another_field(self, field: str) -> None:
        assert isinstance(decide(params={"auth": {field: TOKEN}}), AuthRefused)

    def test_it_is_bound_to_the_device_and_never_stands_alone(self) -> None:
        assert isinstance(decide(device=None), AuthRefused)
        assert isinstance(decide(tokens=()), AuthRefused)
        assert isinstance(decide(tokens=(OTHER,)), AuthRefused)

    def test_the_secret_goes_before_the_token(self) -> None:
        outcome = decide(params={"auth": {"token": SECRET, "deviceToken": TOKEN}})
        assert outcome == AuthOk("token", "operator", ALL_SCOPES, (ADMIN, READ, WRITE), DEVICE["id"])

    def test_mode_none_needs_no_token_on_this_machine(self) -> None:
        outcome = decide(mode="none", digest=None, loopback=True)
        assert isinstance(outcome, AuthOk) and (outcome.method, outcome.held) == ("none", ALL_SCOPES)
        assert detail(decide(mode="none", digest=DIGEST, params={"auth": {"token": SECRET}})) == (
            "DEVICE_IDENTITY_REQUIRED"
        )

    @pytest.mark.parametrize(
        ("auth", "code", "retry"),
        [
            ({"deviceToken": "x"}, "AUTH_DEVICE_TOKEN_MISMATCH", False),
            ({"token": "x", "deviceToken": "y"}, "AUTH_DEVICE_TOKEN_MISMATCH", False),
            ({"token": "x"}, "AUTH_TOKEN_MISMATCH", True),
            ({"token": "x", "deviceToken": ""}, "AUTH_TOKEN_MISMATCH", True),
        ],
    )
    def test_clients_learn_which_credential_to_drop(
        self, auth: dict[str, str], code: str, retry: bool
    ) -> None:
        refused = decide(params={"auth": auth})
        assert detail(refused) == code
        assert detail(refused, "canRetryWithDeviceToken") is retry
        step = "retry_with_device_token" if retry else "update_auth_credentials"
        assert detail(refused, "recommendedNextStep") == step
        assert isinstance(refused, AuthRefused) and refused.wrong_guess

    def test_a_node_gets_no_scopes_by_its_token(self) -> None:
        node = HeldToken(digest_secret(TOKEN), (), 1)
        outcome = decide(tokens=(node,), params={"role": "node", "scopes": [ADMIN]})
        assert isinstance(outcome, AuthOk) and (outcome.role, outcome.scopes) == ("node", ())

    def test_a_bare_node_is_told_about_a_wrong_secret_first(self) -> None:
        bare: dict[str, Any] = {"role": "node", "device": None}
        assert detail(decide(params=bare | {"auth": {"token": "x"}})) == "AUTH_TOKEN_MISMATCH"
        assert detail(decide(params=bare | {"auth": {"token": SECRET}})) == "DEVICE_IDENTITY_REQUIRED"
        assert detail(decide(params=bare | {"auth": None})) == "DEVICE_IDENTITY_REQUIRED"
        assert detail(decide(digest=None, params=bare)) == "AUTH_TOKEN_NOT_CONFIGURED"
        own = decide(mode="none", digest=None, loopback=True, params=bare | {"client": BACKEND})
        assert detail(own) == "DEVICE_IDENTITY_REQUIRED"

    def test_a_token_beside_the_secret_is_recognised(self) -> None:
        params = params_of(auth={"token": SECRET, "deviceToken": TOKEN}, device=DEVICE)
        assert find_shown_token(params, (OTHER, HELD)) == DeviceToken(TOKEN, HELD.issued_at_ms)
        assert find_shown_token(params, (OTHER,)) is None
        assert find_shown_token(params_of(auth=None), (HELD,)) is None

    def test_neither_a_token_nor_a_secret_is_ever_printed(self) -> None:
        outcome = decide(params={"auth": {"token": SECRET, "deviceToken": TOKEN}})
        shown = repr((DeviceToken(TOKEN, 7), decide(), outcome, params_of(auth={"token": SECRET})))
        assert TOKEN not in shown and SECRET not in shown and "issued_at_ms=7" in shown

    @settings(max_examples=200, deadline=None)
    @given(
        st.lists(st.sampled_from([*ALL_SCOPES, "operator.zzz", ""]), max_size=6),
        st.lists(st.sampled_from(ALL_SCOPES), unique=True, max_size=4),
    )
    def test_nobody_gets_more_than_the_token_holds(self, asked: list[str], held: list[str]) -> None:
        token = HeldToken(digest_secret(TOKEN), tuple(held), 1)
        outcome = decide(tokens=(token,), params={"scopes": asked})
        assert isinstance(outcome, AuthOk)
        assert set(outcome.scopes) <= set(asked)
        assert all(holds_scope(held, scope) for scope in outcome.scopes)
        assert {scope for scope in asked if holds_scope(held, scope)} == set(outcome.scopes)


def ok(role: Role = "operator", scopes: tuple[str, ...] = (READ,)) -> AuthOk:
    return AuthOk("token", role, ALL_SCOPES, scopes, DEVICE["id"])


APPROVED = ApprovedDevice(("operator",), (READ, WRITE), "linux", "Linux")
PC = CLI | {"deviceFamily": "linux"}


@pytest.mark.spec("RPC-3")
class TestPairing:
    @pytest.mark.parametrize(
        ("auth", "client", "approved", "reason"),
        [
            (ok(), PC, None, "not-paired"),
            (ok("node", ()), PC, APPROVED, "role-upgrade"),
            (ok(scopes=(READ, PAIRING)), PC, APPROVED, "scope-upgrade"),
            (ok(scopes=(ADMIN,)), PC, APPROVED, "scope-upgrade"),
            (ok(), PC | {"platform": "darwin"}, APPROVED, "metadata-upgrade"),
            (ok(), PC | {"deviceFamily": "iPad"}, APPROVED, "metadata-upgrade"),
            (ok(), CLI, APPROVED, "metadata-upgrade"),
            (ok("node", ()), CLI, APPROVED, "role-upgrade"),
            (ok(scopes=(ADMIN,)), CLI, APPROVED, "scope-upgrade"),
        ],
    )
    def test_what_needs_the_owners_word(
        self, auth: AuthOk, client: dict[str, str], approved: ApprovedDevice | None, reason: Any
    ) -> None:
        params = params_of(client=client)
        assert decide_pairing(auth, params, approved, loopback=False) == AskOwner(reason)
        assert decide_pairing(auth, params, approved, loopback=True) == PairSilently(reason)

    @pytest.mark.parametrize(
        ("auth", "client", "approved"),
        [
            (ok(), PC, APPROVED),
            (ok(scopes=()), PC, APPROVED),
            (ok(scopes=(READ, WRITE)), PC | {"platform": " LINUX "}, APPROVED),
            (ok(scopes=ALL_SCOPES), PC, ApprovedDevice(("node", "operator"), (ADMIN,), "linux", "linux")),
            (ok("node", ()), CLI, ApprovedDevice(("operator", "node"), ())),
            (ok(), PC | {"platform": "anything"}, ApprovedDevice(("operator",), (READ,), None, " ")),
        ],
    )
    def test_what_was_approved_goes_ahead(
        self, auth: AuthOk, client: dict[str, str], approved: ApprovedDevice
    ) -> None:
        for loopback in (True, False):
            assert decide_pairing(auth, params_of(client=client), approved, loopback=loopback) == Welcome()

    @pytest.mark.parametrize(
        ("reason", "words"),
        [
            ("not-paired", "is not approved yet"),
            ("role-upgrade", "asks for another role"),
            ("scope-upgrade", "asks for more scopes"),
            ("metadata-upgrade", "another kind of device"),
        ],
    )
    def test_the_refusal_names_the_request_and_the_command(self, reason: Any, words: str) -> None:
        refused = refuse_unpaired(reason, "req-1")
        assert (refused.error.code, refused.close_code, refused.wrong_guess) == ("NOT_PAIRED", 1008, False)
        assert refused.error.details == {"code": "PAIRING_REQUIRED", "requestId": "req-1", "reason": reason}
        assert words in refused.error.message and "openclaw devices approve req-1" in refused.error.message
        full = refuse_unpaired(reason, None)
        assert full.error.details == {"code": "PAIRING_REQUIRED", "reason": reason}
        assert "too many devices wait" in full.error.message and "openclaw" not in full.error.message

    def test_covering_is_asked_of_every_scope(self) -> None:
        assert (
            covers_scopes((), ())
            and covers_scopes((WRITE,), (READ, WRITE))
            and covers_scopes((ADMIN,), ALL_SCOPES)
        )
        assert not covers_scopes((WRITE,), (READ, PAIRING))
        assert not covers_scopes((ADMIN,), ("operator.zzz",))


def test_a_refused_claim_is_not_a_guess() -> None:
    error = ErrorShape("INVALID_REQUEST", "device signature invalid")
    refused = refuse_device(DeviceRefused(error))
    assert (refused.error, refused.close_code, refused.wrong_guess) == (error, 1008, False)


def test_a_lockout_says_when_it_ends() -> None:
    refused = refuse_locked_out(1234)
    assert (refused.error.retryable, refused.error.retry_after_ms, refused.close_code) == (True, 1234, 1008)
    assert refused.error.message == "unauthorized: too many failed authentication attempts (retry later)"
    assert refused.error.details == {
        "code": "AUTH_RATE_LIMITED",
        "authReason": "rate_limited",
        "canRetryWithDeviceToken": False,
        "recommendedNextStep": "wait_then_retry",
    }
    assert not refused.wrong_guess
