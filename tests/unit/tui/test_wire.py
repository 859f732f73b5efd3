"""Which refusals are worth waiting for."""

from __future__ import annotations

import pytest

from openclaw.api.failures import GatewayGone, refusal_of
from openclaw.errors import OpenClawError, Unavailable
from openclaw.tui.shades import is_dark
from openclaw.tui.wire import detail_code, outlook_of


@pytest.mark.parametrize(
    ("refusal", "outlook"),
    [
        (GatewayGone(), "waiting"),
        (Unavailable("starting"), "waiting"),
        (refusal_of({"code": "NOT_PAIRED", "details": {"code": "PAIRING_REQUIRED"}}), "approval"),
        (refusal_of({"code": "INVALID_REQUEST", "details": {"code": "AUTH_RATE_LIMITED"}}), "waiting"),
        (refusal_of({"code": "INVALID_REQUEST", "details": {"code": "AUTH_TOKEN_MISMATCH"}}), "over"),
        (refusal_of({"code": "INVALID_REQUEST", "details": {"code": "PROTOCOL_MISMATCH"}}), "over"),
        (refusal_of({"code": "NOT_PAIRED"}), "over"),
        (refusal_of({"code": "INVALID_REQUEST", "details": "odd"}), "over"),
        (OpenClawError("anything else"), "waiting"),
    ],
)
def test_outlooks(refusal: OpenClawError, outlook: str) -> None:
    assert outlook_of(refusal) == outlook


def test_detail_codes_are_read_leniently() -> None:
    assert detail_code(OpenClawError("x", details={"code": "A"})) == "A"
    assert detail_code(OpenClawError("x", details={})) == detail_code(OpenClawError("x")) == ""


@pytest.mark.parametrize(
    ("colours", "dark"),
    [
        ("", True),
        ("15;0", True),
        ("0;15", False),
        ("0;default;15", False),
        ("7;8", True),
        ("0;7", False),
        ("odd", True),
    ],
)
def test_a_light_terminal_says_so(colours: str, dark: bool) -> None:
    assert is_dark({"COLORFGBG": colours}) is dark
    assert is_dark({}) is True
