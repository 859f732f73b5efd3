"""Who may talk to an agent on a platform: the rules for direct chats (CMD-13, SPEC §10).

The channel's rules and what is known about a sender go in, a decision with its reason
comes out. Groups have their own gate in `routing`; codes and rows belong to others.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Literal

from msgspec import Struct

from openclaw.domain.groups import fold_listed_peer, fold_peer, fold_word
from openclaw.domain.keys import KeySettings
from openclaw.domain.routing import Envelope

DmPolicy = Literal["pairing", "allowlist", "open", "disabled"]
EVERYBODY = "*"
# Read aloud and typed by people: no letters that look like digits.
CODE_LETTERS = "ABCDEFGHJKLMNPQRSTUVWXYZ23456789"
CODE_LENGTH = 8


class DirectRules(Struct, frozen=True, kw_only=True):
    """The rules of one account for direct chats. `allow_from` names people; `*` is everybody."""

    policy: DmPolicy = "pairing"
    allow_from: Collection[str] = ()


class Standing(Struct, frozen=True):
    """What is known about a sender: let in by a person, and whether as an owner."""

    admitted: bool = False
    owner: bool = False


class Admit(Struct, frozen=True, tag="admit"):
    """The message is taken. `known` is false for somebody whom only an open door let in."""

    reason: Literal["listed", "paired", "open"]

    @property
    def known(self) -> bool:
        return self.reason != "open"


class AskToPair(Struct, frozen=True, tag="ask"):
    """The sender is a stranger: answer with a code that a person may approve."""


class Refuse(Struct, frozen=True, tag="refuse"):
    """The message is not taken and nobody is answered: a stranger learns nothing."""

    reason: Literal["disabled", "not_listed", "no_sender"]


DirectDecision = Admit | AskToPair | Refuse


def admit_direct(
    envelope: Envelope, rules: DirectRules, standing: Standing, settings: KeySettings
) -> DirectDecision:
    """Whether a direct message is taken.

    A person whom somebody let in stays in under every policy but `disabled`; `open` asks nobody.
    """
    if rules.policy == "disabled":
        return Refuse("disabled")
    sender = sender_of(envelope)
    if not sender:
        return Refuse("no_sender")
    if is_listed(sender, rules.allow_from, envelope.channel, settings):
        return Admit("listed")
    if standing.admitted:
        return Admit("paired")
    if rules.policy == "open" or EVERYBODY in rules.allow_from:
        return Admit("open")
    return AskToPair() if rules.policy == "pairing" else Refuse("not_listed")


def sender_of(envelope: Envelope) -> str:
    """Who wrote: in a direct chat the peer itself, when the platform names no sender apart."""
    return envelope.sender_id or (envelope.peer_id if envelope.peer_kind == "direct" else "")


def is_listed(sender_id: str, listed: Collection[str], channel: str, settings: KeySettings) -> bool:
    """Whether a list names this very person; `*` names nobody."""
    folded, case_sensitive = fold_word(channel), settings.case_sensitive_channels
    wanted = fold_peer(sender_id, folded, case_sensitive)
    return any(
        fold_listed_peer(entry, folded, case_sensitive) == wanted
        for entry in listed
        if entry.strip() != EVERYBODY
    )


def pairing_code(seed: str) -> str:
    """A code to read aloud, from an unguessable hexadecimal seed of at least 20 digits."""
    number = int(seed.replace("-", "")[:20], 16)
    letters = []
    for _ in range(CODE_LENGTH):
        number, letter = divmod(number, len(CODE_LETTERS))
        letters.append(CODE_LETTERS[letter])
    return "".join(letters)


def pairing_reply(code: str, channel: str) -> str:
    """What a stranger reads. It names no agent, no owner and no machine."""
    return (
        "This assistant does not know you yet.\n\n"
        f"Your pairing code: {code}\n\n"
        "Ask the person who runs it to approve you with:\n"
        f"openclaw pairing approve {channel} {code}"
    )
