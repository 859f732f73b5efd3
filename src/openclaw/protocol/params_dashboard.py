"""The parameters of methods that sign browsers in and out. Shapes only; both need the owner's scope."""

from __future__ import annotations

from openclaw.protocol.connect import ClosedObject


class DashboardLinkParams(ClosedObject, frozen=True, kw_only=True):
    """A link that signs one browser in."""


class DashboardSignoutParams(ClosedObject, frozen=True, kw_only=True):
    """Every browser, and every link that nobody has used yet."""
