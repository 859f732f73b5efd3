"""The databases of the conformance suite, so that importing is tried on every one of them."""

from __future__ import annotations

from tests.conformance.conftest import database as database
