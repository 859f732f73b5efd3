"""OpenClaw: a session system for AI agents.

The package root stays empty of work: importing it loads no server library, no
database and no provider. Names of the public API are loaded when they are first used.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from openclaw.api.gateway import Gateway
    from openclaw.errors import OpenClawError

__version__ = "0.1.0"
__all__ = ["Gateway", "OpenClawError", "__version__"]

_LAZY: Final = {
    "Gateway": "openclaw.api.gateway:Gateway",
    "OpenClawError": "openclaw.errors:OpenClawError",
}


def __getattr__(name: str) -> Any:
    place = _LAZY.get(name)
    if place is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module, _, attribute = place.partition(":")
    return getattr(importlib.import_module(module), attribute)
