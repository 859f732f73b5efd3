"""Whether the terminal is dark or light, as far as it says so. Pure."""

from __future__ import annotations

from collections.abc import Mapping

# In the sixteen colours of terminals these are the light backgrounds.
_LIGHT = ("7", "15")


def is_dark(env: Mapping[str, str]) -> bool:
    """COLORFGBG is "foreground;background", or with something between; without it a terminal is dark."""
    background = env.get("COLORFGBG", "").rpartition(";")[2].strip()
    return background not in _LIGHT
