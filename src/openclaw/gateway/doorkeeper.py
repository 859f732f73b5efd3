"""Who is let in: lockouts, device claims, credentials and pairing, in this order.

The decisions are pure and stand in `protocol`; this room gives them the rows, the
time and the address, and keeps what they decide in one commit. It never logs what a
client showed.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
from collections.abc import Callable

from msgspec import Struct, structs

from openclaw.engine.ports import Clock, Ids
from openclaw.gateway.client import Client
from openclaw.gateway.deviceview import show_request
from openclaw.gateway.hub import Hub
from openclaw.protocol.auth import (
    POLICY_VIOLATION,
    TRY_AGAIN_LATER,
    AuthMode,
    AuthOk,
    AuthRefused,
    DeviceToken,
    HeldToken,
    decide_auth,
    digest_secret,
    find_shown_token,
    matches_secret,
    refuse_device,
    refuse_locked_out,
)
from openclaw.protocol.budget import TokenBucket
from openclaw.protocol.connect import NODE, ConnectParams
from openclaw.protocol.device import DeviceRefused, VerifiedDevice, verify_device
from openclaw.protocol.errors import UNAVAILABLE, ErrorShape
from openclaw.protocol.guesses import GuessLimiter, GuessLimits, guess_source
from openclaw.protocol.pairing import (
    ApprovedDevice,
    AskOwner,
    PairSilently,
    Welcome,
    decide_pairing,
    refuse_unpaired,
)
from openclaw.protocol.scopes import effective_scopes
from openclaw.store import devices
from openclaw.store.database import Transaction
from openclaw.store.devices import Device, DeviceFacts, Devices, Grant, NewRequest, PairRequest, TokenRow

log = logging.getLogger("openclaw.gateway")
TOKEN_BYTES = 32
# Lines about refused connections: so many at once, and one every ten seconds after that.
NOTES_BURST = 60
NOTES_PER_SECOND = 0.1

DEVICES_CHANGED = AuthRefused(
    ErrorShape(
        UNAVAILABLE,
        "the paired devices changed while this one connected; try again",
        retryable=True,
        retry_after_ms=500,
    ),
    close_code=TRY_AGAIN_LATER,
)


class DoorSettings(Struct, frozen=True):
    """Which secret opens. Without a `secret_digest` only tokens of devices do, unless the mode is "none"."""

    auth_mode: AuthMode
    secret_digest: bytes | None
    allowed_origins: frozenset[str] = frozenset()
    guesses: GuessLimits = GuessLimits()


class Visitor(Struct, frozen=True):
    """Where a connection comes from. `loopback` only when the socket is local and nothing was forwarded.

    Guesses of one that speaks to a `webhook` are counted apart.
    """

    address: str
    loopback: bool
    origin: str | None = None
    webhook: bool = False


class Admission(Struct, frozen=True):
    """A client that may come in, and the state of the list of devices that says so."""

    auth: AuthOk
    epoch: int


class _Judged(Struct, frozen=True):
    auth: AuthOk
    pairing: Welcome | PairSilently | AskOwner
    device: Device | None
    tokens: tuple[HeldToken, ...]


class Doorkeeper:
    def __init__(
        self,
        book: Devices,
        settings: DoorSettings,
        hub: Hub,
        clock: Clock,
        ids: Ids,
        new_token: Callable[[], str] = lambda: secrets.token_urlsafe(TOKEN_BYTES),
    ) -> None:
        self.book = book
        self.settings = settings
        self.new_token = new_token
        self._hub = hub
        self._clock = clock
        self._ids = ids
        self._limiter = GuessLimiter(settings.guesses)
        self._notes = TokenBucket(NOTES_BURST, NOTES_PER_SECOND, self._tick_ms())
        self._unnoted = 0
        self._epoch = 0

    # -- sockets -------------------------------------------------------------------------------

    async def admit(self, params: ConnectParams, nonce: str, visitor: Visitor) -> Admission | AuthRefused:
        """Decide about a `connect` on a connection that was challenged with `nonce` (RPC-1, RPC-3)."""
        epoch = self._epoch
        refused = self.check_lockout(visitor)
        if refused is not None:
            return refused
        outcome = await self._decide(params, nonce, visitor)
        if isinstance(outcome, AuthRefused):
            if outcome.wrong_guess:
                self.count_guess(visitor)
            self._note_refusal(visitor, outcome)
            return outcome
        return Admission(outcome, epoch)

    def is_current(self, admission: Admission) -> bool:
        """Whether no device was removed or revoked since the admission was decided."""
        return admission.auth.device_id is None or admission.epoch == self._epoch

    def disconnect(
        self, device_id: str, reason: str, *, role: str | None = None, but: Client | None = None
    ) -> int:
        """Close the device's sockets at once, all or those of one role, except `but`; how many.

        Also turns away a socket of it that is just being let in.
        """
        self._epoch += 1
        gone = [
            one
            for one in self._hub.clients()
            if one is not but
            and one.connection.device_id == device_id
            and role in (None, one.connection.role)
        ]
        for client in gone:
            _hang_up(client, reason)
        return len(gone)

    def connected(self) -> frozenset[str]:
        """The ids of all devices that are connected now."""
        held = (client.connection.device_id for client in self._hub.clients())
        return frozenset(device_id for device_id in held if device_id is not None)

    # -- guesses -------------------------------------------------------------------------------

    def check_lockout(self, visitor: Visitor) -> AuthRefused | None:
        """The refusal for an address that guessed wrong too often; ask before anything else."""
        source = self._source(visitor)
        wait_ms = None if source is None else self._limiter.wait_ms(source, self._tick_ms())
        return None if wait_ms is None else refuse_locked_out(wait_ms)

    def count_guess(self, visitor: Visitor) -> None:
        """A wrong secret came from there; a missing one is not a guess."""
        source = self._source(visitor)
        if source is not None and self._limiter.count(source, self._tick_ms()):
            wait_s = self.settings.guesses.lockout_ms // 1000
            log.warning("too many wrong secrets from %s: it is shut out for %d s", source, wait_s)

    def check_secret(self, offered: str, visitor: Visitor) -> bool | AuthRefused:
        """Whether `offered` is the shared secret, counted like a guess on a socket; for plain requests."""
        return self._compare(offered, self.settings.secret_digest, visitor)

    def check_hook_token(self, offered: str, token: str, visitor: Visitor) -> bool | AuthRefused:
        """The same for the `token` of webhooks; a program with an old one does not shut its owner out."""
        return self._compare(offered, digest_secret(token), structs.replace(visitor, webhook=True))

    def _compare(self, offered: str, digest: bytes | None, visitor: Visitor) -> bool | AuthRefused:
        locked = self.check_lockout(visitor)
        if locked is not None:
            return locked
        right = digest is not None and matches_secret([offered], digest)
        if not right:
            self.count_guess(visitor)
        return right

    def _note_refusal(self, visitor: Visitor, refused: AuthRefused) -> None:
        """One line per refusal, as long as there are few: nobody fills a disk from outside (PITFALLS C9)."""
        if not self._notes.take(self._tick_ms()):
            self._unnoted += 1
            return
        if self._unnoted:
            log.warning("%d more refused connections were not noted one by one", self._unnoted)
            self._unnoted = 0
        log.warning("refused a connection from %s: %s", visitor.address, refused.error.message)

    def _source(self, visitor: Visitor) -> str | None:
        source = guess_source(
            visitor.address,
            browser=visitor.origin is not None,
            loopback=visitor.loopback,
            limits=self.settings.guesses,
        )
        return f"{source} (webhooks)" if source is not None and visitor.webhook else source

    def _tick_ms(self) -> int:
        return int(self._clock.monotonic() * 1000)

    # -- deciding ------------------------------------------------------------------------------

    async def _decide(self, params: ConnectParams, nonce: str, visitor: Visitor) -> AuthOk | AuthRefused:
        if params.device is None:
            return self._judge_credential(params, visitor, None, ())
        # The first claim loads a library; every one costs a fraction of a millisecond.
        device = await asyncio.to_thread(
            verify_device, params.device, params, nonce=nonce, now_ms=self._clock.now_ms()
        )
        if isinstance(device, DeviceRefused):
            return refuse_device(device)
        # Refusals are found without writing, so that a stranger costs no commit.
        judged = await self.book.database.read(lambda tx: self._judge(tx, params, visitor, device))
        if isinstance(judged, AuthRefused):
            return judged
        return await self._settle(params, visitor, device)

    def _judge_credential(
        self,
        params: ConnectParams,
        visitor: Visitor,
        device: VerifiedDevice | None,
        tokens: tuple[HeldToken, ...],
    ) -> AuthOk | AuthRefused:
        return decide_auth(
            self.settings.auth_mode,
            self.settings.secret_digest,
            params,
            loopback=visitor.loopback,
            origin=visitor.origin,
            allowed_origins=self.settings.allowed_origins,
            device=device,
            tokens=tokens,
        )

    def _judge(
        self, tx: Transaction, params: ConnectParams, visitor: Visitor, device: VerifiedDevice
    ) -> _Judged | AuthRefused:
        known = devices.find_device(tx, device.device_id)
        tokens = () if known is None else _held_tokens(known, params.role)
        auth = self._judge_credential(params, visitor, device, tokens)
        if isinstance(auth, AuthRefused):
            return auth
        pairing = decide_pairing(auth, params, _approved(known), loopback=visitor.loopback)
        return _Judged(auth, pairing, known, tokens)

    async def _settle(
        self, params: ConnectParams, visitor: Visitor, device: VerifiedDevice
    ) -> AuthOk | AuthRefused:
        """Judge again inside the commit that keeps the outcome: rows may have changed since."""
        now_ms, request_id = self._clock.now_ms(), self._ids.uuid()
        new = DeviceToken(self.new_token(), now_ms)

        def unit(tx: Transaction) -> AuthOk | AuthRefused | tuple[AskOwner, PairRequest | None]:
            judged = self._judge(tx, params, visitor, device)
            if isinstance(judged, AuthRefused):
                return judged
            if isinstance(judged.pairing, AskOwner):
                asked = _request_of(params, visitor, device, judged)
                return judged.pairing, devices.ask_owner(tx, asked, request_id, now_ms)
            return _keep(tx, judged, params, device, new, now_ms)

        outcome = await self.book.database.write(unit)
        if not isinstance(outcome, tuple):
            return outcome
        asks, request = outcome
        if request is not None and request.request_id == request_id:
            log.info("a device waits for approval: openclaw devices approve %s", request.request_id)
            self._hub.broadcast("device.pair.requested", show_request(request))
        return refuse_unpaired(asks.reason, request.request_id if request else None)


def _keep(
    tx: Transaction,
    judged: _Judged,
    params: ConnectParams,
    device: VerifiedDevice,
    new: DeviceToken,
    now_ms: int,
) -> AuthOk:
    """What is known of the device from now on, and the token that it may use instead of the secret."""
    auth, known = judged.auth, judged.device
    grant = Grant((auth.role,), auth.scopes)
    paired_now = isinstance(judged.pairing, PairSilently)
    devices.put_device(
        tx,
        Device(
            device.device_id,
            device.public_key,
            _facts(params),
            grant if known is None else known.grant.joined(grant) if paired_now else known.grant,
            "silent" if known is None else known.approved_via,
            created_at=now_ms if known is None else known.created_at,
            approved_at=now_ms if known is None or paired_now else known.approved_at,
            last_seen_at=now_ms,
            last_seen_reason="device-token-auth" if auth.method == "device-token" else "connect",
        ),
    )
    shown = auth.token or find_shown_token(params, judged.tokens)
    if shown is not None:
        devices.use_token(tx, digest_secret(shown.value).hex(), now_ms)
        return _with_token(auth, shown)
    row = TokenRow(digest_secret(new.value).hex(), device.device_id, auth.role, auth.scopes, now_ms, now_ms)
    devices.add_token(tx, row)
    return _with_token(auth, new)


def _with_token(auth: AuthOk, token: DeviceToken) -> AuthOk:
    return AuthOk(auth.method, auth.role, auth.held, auth.scopes, auth.device_id, token)


def _held_tokens(known: Device, role: str) -> tuple[HeldToken, ...]:
    """The device's tokens for a role; none holds more than the device is allowed now (RPC-3)."""
    if role not in known.grant.roles:
        return ()
    return tuple(
        HeldToken(
            bytes.fromhex(token.token_hash),
            effective_scopes(token.scopes, known.grant.scopes),
            token.created_at,
        )
        for token in known.tokens
        if token.role == role
    )


def _approved(known: Device | None) -> ApprovedDevice | None:
    if known is None:
        return None
    return ApprovedDevice(
        known.grant.roles, known.grant.scopes, known.facts.platform, known.facts.device_family
    )


def _facts(params: ConnectParams) -> DeviceFacts:
    client = params.client
    return DeviceFacts(client.platform, client.id, client.mode, client.display_name, client.device_family)


def _request_of(
    params: ConnectParams, visitor: Visitor, device: VerifiedDevice, judged: _Judged
) -> NewRequest:
    assert isinstance(judged.pairing, AskOwner)
    auth = judged.auth
    return NewRequest(
        device.device_id,
        device.public_key,
        _facts(params),
        auth.role,
        () if auth.role == NODE else auth.scopes,
        judged.pairing.reason,
        visitor.address,
    )


def _hang_up(client: Client, reason: str) -> None:
    closing = client.connection.close(POLICY_VIOLATION, reason)
    client.close(closing.code, closing.reason)
