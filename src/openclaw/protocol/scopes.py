"""Operator scopes: what they are called, what they imply, what a connection gets.

Effective scopes are what the client asked for, as far as its credential holds
them (RPC-3). Nothing here knows a method; the table is in `methods`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Final

from openclaw.errors import Forbidden

READ: Final = "operator.read"
WRITE: Final = "operator.write"
ADMIN: Final = "operator.admin"
APPROVALS: Final = "operator.approvals"
QUESTIONS: Final = "operator.questions"
PAIRING: Final = "operator.pairing"
TALK: Final = "operator.talk"
TALK_SECRETS: Final = "operator.talk.secrets"

# The shared token and the password belong to the owner.
ALL_SCOPES: Final = (READ, WRITE, ADMIN, APPROVALS, QUESTIONS, PAIRING, TALK, TALK_SECRETS)


def holds_scope(held: Collection[str], scope: str) -> bool:
    """Whether `held` covers a known scope; an unknown one is never covered (RPC-3)."""
    if scope not in ALL_SCOPES:
        return False
    return scope in held or ADMIN in held or (scope == READ and WRITE in held)


def covers_scopes(held: Collection[str], wanted: Iterable[str]) -> bool:
    """Whether `held` covers every one of `wanted`."""
    return all(holds_scope(held, scope) for scope in wanted)


def effective_scopes(requested: Iterable[str], held: Collection[str]) -> tuple[str, ...]:
    """What was asked for and is held, in the order asked, each once (RPC-3)."""
    return tuple(dict.fromkeys(scope for scope in requested if holds_scope(held, scope)))


def check_scope(granted: Collection[str], required: str) -> None:
    """Raise Forbidden, shaped as clients know it, unless `required` is covered (RPC-3)."""
    if not holds_scope(granted, required):
        raise Forbidden(
            f"missing scope: {required}",
            code="MISSING_SCOPE",
            missing_scope=required,
            required_scopes=[required],
        )
