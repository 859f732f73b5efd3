"""The package root: what it offers, and that it loads nothing before it is used."""

from __future__ import annotations

import subprocess
import sys

import pytest

import openclaw
from openclaw.api.gateway import Gateway
from openclaw.errors import OpenClawError

HEAVY = ("aiohttp", "apsw", "asyncio", "click", "mcp", "msgspec", "rich", "watchfiles", "websockets")


def loaded_by(statement: str) -> set[str]:
    program = f"{statement}\nimport sys\nprint('\\n'.join(sys.modules))"
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=120, check=True
    )
    return set(done.stdout.split())


def test_importing_it_loads_no_library() -> None:
    loaded = loaded_by("import openclaw; openclaw.__version__")
    assert not loaded & set(HEAVY)
    assert {name for name in loaded if name.startswith("openclaw")} == {"openclaw"}


def test_the_errors_are_had_without_the_server() -> None:
    loaded = loaded_by("import openclaw; openclaw.OpenClawError")
    assert "openclaw.errors" in loaded
    assert not loaded & set(HEAVY)


def test_a_client_of_the_library_loads_no_server() -> None:
    loaded = loaded_by("import openclaw.api.connection, openclaw.api.sessions, openclaw.api.events")
    assert "websockets" in loaded
    assert not loaded & {"aiohttp", "apsw", "mcp", "openclaw.app", "openclaw.gateway", "openclaw.store"}


def test_the_public_names() -> None:
    assert openclaw.Gateway is Gateway
    assert openclaw.OpenClawError is OpenClawError
    assert set(openclaw.__all__) == {"Gateway", "OpenClawError", "__version__"}
    misspelt = "Gatway"
    with pytest.raises(AttributeError, match="has no attribute 'Gatway'"):
        getattr(openclaw, misspelt)
