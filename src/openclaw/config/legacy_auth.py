"""Keys of model providers in the founding file layout: `auth-profiles.json`, read by `doctor` alone (DB-3).

Reading and choosing only: one key for each provider, or the reason why there is none. No reason and no
`repr` holds a key.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec
from msgspec import Struct

from openclaw.errors import InvalidRequest

MAX_BYTES = 4 << 20
MAX_KEY_CHARS = 4096


class ProviderKey(Struct, frozen=True):
    """The key to use with a provider, and the profile that held it."""

    provider: str
    profile: str
    value: str

    def __repr__(self) -> str:
        return f"ProviderKey({self.profile!r})"


class LegacyKeys(Struct, frozen=True):
    keys: tuple[ProviderKey, ...]
    problems: tuple[str, ...]


class _Profile(Struct, rename="camel"):
    provider: str
    type: str = "api_key"
    key: str | None = None
    token: str | None = None


class _File(Struct, rename="camel"):
    profiles: dict[str, Any]
    order: Any = None
    last_good: Any = None


def read_keys(data: bytes) -> LegacyKeys:
    """The keys of one file. Raises InvalidRequest when it is no such file at all."""
    try:
        if len(data) > MAX_BYTES:
            raise msgspec.DecodeError("too large")
        file = msgspec.json.decode(data, type=_File)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        raise InvalidRequest("this is no list of auth profiles") from None
    chosen: dict[str, ProviderKey] = {}
    problems: dict[str, list[str]] = {}
    for name in _in_order(file):
        try:
            profile = msgspec.convert(file.profiles[name], _Profile)
        except msgspec.ValidationError as error:
            problems.setdefault("", []).append(f"{name[:80]}: {error}")
            continue
        provider = profile.provider.strip().lower()
        found = _key_of(profile)
        if found is None:
            problems.setdefault(provider, []).append(f"{name[:80]}: {_reason(profile)}")
        elif provider not in chosen:
            chosen[provider] = ProviderKey(provider, name[:80], found)
    # What else a provider has does not matter where it has a key that works.
    told = [one for provider, ones in problems.items() if provider not in chosen for one in ones]
    return LegacyKeys(tuple(chosen.values()), tuple(told))


def _in_order(file: _File) -> list[str]:
    """What worked last, then what its owner preferred, then the default profiles, then the others."""
    good = [*file.last_good.values()] if isinstance(file.last_good, Mapping) else []
    wished = [*file.order.values()] if isinstance(file.order, Mapping) else []
    preferred = [name for names in wished if isinstance(names, list) for name in names]
    defaults = [name for name in file.profiles if name.endswith(":default")]
    ordered = (*good, *preferred, *defaults, *file.profiles)
    known = (name for name in ordered if isinstance(name, str) and name in file.profiles)
    return list(dict.fromkeys(known))


def _key_of(profile: _Profile) -> str | None:
    value = profile.key if profile.type == "api_key" else profile.token if profile.type == "token" else None
    text = (value or "").strip()
    usable = 0 < len(text) <= MAX_KEY_CHARS and text.isascii() and text.isprintable() and "${" not in text
    return text if usable and profile.provider.strip() else None


def _reason(profile: _Profile) -> str:
    if profile.type == "oauth":
        return "a sign-in cannot be carried over; get a key from the provider"
    return "it holds no key that can be used; set one with `openclaw models set`"
