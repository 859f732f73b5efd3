"""Whose commands leave the sandbox."""

from __future__ import annotations

import pytest

from openclaw.domain.elevation import ELEVATED_TOOLS, Confined, Elevated, decide_elevation


@pytest.mark.spec("CMD-10")
@pytest.mark.parametrize(
    ("level", "owner", "decided"),
    [
        ("on", True, Elevated()),
        ("full", True, Elevated()),
        ("ask", True, Confined("needs-approval")),
        ("off", True, Confined("not-asked")),
        (None, True, Confined("not-asked")),
        ("on", False, Confined("owner-only")),
        ("full", False, Confined("owner-only")),
        ("ask", False, Confined("needs-approval")),
        ("yes", True, Confined("needs-approval")),
    ],
)
def test_only_an_owner_who_asked_is_let_out(
    level: str | None, owner: bool, decided: Elevated | Confined
) -> None:
    assert decide_elevation(level, caller_is_owner=owner) == decided


@pytest.mark.spec("CMD-10")
def test_only_commands_are_concerned() -> None:
    assert frozenset({"exec"}) == ELEVATED_TOOLS
