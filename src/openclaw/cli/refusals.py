"""Sentences for a connection that was not made: what happened, and the exact fix (PITFALLS H4)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec import Struct

from openclaw.cli.failures import (
    GatewayFailure,
    GatewayUnreachable,
    NotLetIn,
    RequestRefused,
    VersionsDiffer,
)
from openclaw.cli.place import PASSWORD_NAME, TOKEN_NAME, Place
from openclaw.domain.terminaltext import age
from openclaw.protocol.connect import PROTOCOL_VERSION

_AUTH_CODES = ("AUTH_", "DEVICE_", "PAIRING_", "CONTROL_UI_")


class Refusal(Struct, frozen=True):
    """The `error` object of a response, read leniently: a newer gateway may say more."""

    code: str
    message: str
    details: Mapping[str, Any] = {}
    retryable: bool = False
    retry_after_ms: int | None = None

    @property
    def detail_code(self) -> str:
        return str(self.details.get("code") or "")


def read_refusal(error: object) -> Refusal:
    """Whatever a response carries as its error."""
    given = error if isinstance(error, dict) else {}
    details = given.get("details")
    wait = given.get("retryAfterMs")
    return Refusal(
        code=str(given.get("code") or "UNAVAILABLE"),
        message=str(given.get("message") or "the gateway gave no reason"),
        details=details if isinstance(details, dict) else {},
        retryable=given.get("retryable") is True,
        retry_after_ms=wait if isinstance(wait, int) and wait >= 0 else None,
    )


def call_refused(refusal: Refusal) -> RequestRefused:
    """The gateway answered a call with an error."""
    return RequestRefused(refusal.message, wire_code=refusal.code, may_retry=refusal.retryable)


def connection_refused(place: Place, refusal: Refusal) -> GatewayFailure:
    """The gateway answered `connect` with an error."""
    code = refusal.detail_code
    if code == "PROTOCOL_MISMATCH":
        theirs = refusal.details.get("expectedProtocol", "another version")
        return VersionsDiffer(
            f"this openclaw speaks protocol {PROTOCOL_VERSION}, the gateway at {place.shown_url} speaks"
            f" {theirs} — upgrade the older of the two"
        )
    if code == "AUTH_RATE_LIMITED":
        wait = f" in {age(refusal.retry_after_ms)}" if refusal.retry_after_ms else " later"
        return NotLetIn(
            f"the gateway at {place.shown_url} shut this address out after too many wrong secrets — correct"
            f" the secret, then try again{wait}",
            wire_code=code,
            may_retry=True,
        )
    if code == "PAIRING_REQUIRED":
        return NotLetIn(f"the gateway at {place.shown_url} says: {refusal.message}", wire_code=code)
    if code.startswith(_AUTH_CODES) or refusal.code == "NOT_PAIRED":
        return NotLetIn(
            f"the gateway at {place.shown_url} did not let this client in — {_credential_fix(place)}",
            wire_code=code or refusal.code,
        )
    return RequestRefused(
        f"the gateway at {place.shown_url} refused the connection: {refusal.message}",
        wire_code=code or refusal.code,
        may_retry=refusal.retryable,
    )


def _credential_fix(place: Place) -> str:
    what = "password" if place.password and not place.token else "token"
    variable = PASSWORD_NAME if what == "password" else TOKEN_NAME
    if place.source == "flag":
        return f"--{what} is not its gateway.auth.{what}; use the one in the config of that gateway"
    if place.source == "env":
        return f"{variable} is not its gateway.auth.{what}; correct the variable or unset it"
    if place.source == "remote":
        return f"gateway.remote.{what} in {place.config_path} is not its gateway.auth.{what}; copy it again"
    if place.source == "config":
        return (
            f"gateway.auth.{what} in {place.config_path} is not the one it was started with; restart the"
            f" gateway, or set {variable} if it runs with another config"
        )
    if place.remote:
        return f"set gateway.remote.token in {place.config_path} to its gateway.auth.token"
    if place.config_path:
        return f"no token is set in {place.config_path}; give its gateway.auth.token with {TOKEN_NAME}"
    return f"give its gateway.auth.token with --token or {TOKEN_NAME}"


def not_running(place: Place) -> GatewayUnreachable:
    """Nobody listens there."""
    fix = "start one with `openclaw gateway run`" if place.on_this_machine else "is it running there?"
    return GatewayUnreachable(f"no gateway at {place.shown_url} — {fix}")


def not_reachable(place: Place, reason: str) -> GatewayUnreachable:
    """The network says no."""
    return GatewayUnreachable(f"cannot reach {place.shown_url}: {reason}")
