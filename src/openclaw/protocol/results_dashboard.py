"""The answers of methods that sign browsers in and out."""

from __future__ import annotations

from openclaw.protocol.results import Answer


class DashboardLink(Answer, frozen=True, kw_only=True):
    """`path` belongs behind the address by which the asker knows this gateway. It is good once."""

    path: str
    expires_at: int


class DashboardSignedOut(Answer, frozen=True, kw_only=True):
    ok: bool
    ended: int
