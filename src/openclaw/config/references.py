"""`${NAME}` inside string values: taken from an environment that is handed in, never from the process.

`$${` stands for a literal `${`. What a reference resolves to is treated as a secret
and is never written back: the file keeps the reference.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from msgspec import Struct

_REFERENCE = re.compile(r"\$(?:\$(?=\{)|\{([A-Za-z_][A-Za-z0-9_]*)\})")

# Facts about the machine that people use in paths. Masking them as secrets would garble
# every path in every tool result.
_NOT_SECRET = frozenset(
    {
        "HOME",
        "USER",
        "LOGNAME",
        "USERNAME",
        "USERPROFILE",
        "HOSTNAME",
        "PWD",
        "PATH",
        "SHELL",
        "TMPDIR",
        "TEMP",
    }
    | {"TMP", "LANG", "TZ", "APPDATA", "LOCALAPPDATA", "OPENCLAW_STATE_DIR", "OPENCLAW_CONFIG_PATH"}
    | {"XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME", "XDG_CACHE_HOME", "XDG_RUNTIME_DIR"}
)


class Expansion(Struct, frozen=True):
    """A string with its references resolved."""

    text: str
    names: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()


def expand(text: str, env: Mapping[str, str]) -> Expansion:
    """Resolve every reference. An unset or empty variable is missing and leaves its reference in place."""
    if "$" not in text:
        return Expansion(text)
    names: list[str] = []
    missing: list[str] = []

    def replace(match: re.Match[str]) -> str:
        name = match.group(1)
        if name is None:
            return "$"
        names.append(name)
        value = env.get(name, "")
        if not value:
            missing.append(name)
            return match.group()
        return value

    expanded = _REFERENCE.sub(replace, text)
    return Expansion(expanded, tuple(dict.fromkeys(names)), tuple(dict.fromkeys(missing)))


def has_references(text: str) -> bool:
    return any(match.group(1) for match in _REFERENCE.finditer(text))


def secret_values(names: tuple[str, ...], env: Mapping[str, str]) -> frozenset[str]:
    """The values behind these names that deserve to be kept secret (TRX-11)."""
    return frozenset(env[name] for name in names if name not in _NOT_SECRET and env.get(name))
