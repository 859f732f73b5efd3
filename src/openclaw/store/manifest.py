"""What a backup says of itself. Read by those who ask for backups and never touch a database file."""

from __future__ import annotations

from collections.abc import Callable

from msgspec import Struct

# Pages done and all of them; called from a thread.
Progress = Callable[[int, int], None]


class Manifest(Struct, frozen=True, rename="camel", forbid_unknown_fields=False):
    """What a backup holds. The point it stands for: every input up to `last_admission`, no later one.

    Whatever was acknowledged before `created_at` is in it.
    """

    format: int
    schema_version: int
    openclaw: str
    created_at: int
    last_admission: int
    last_entry_no: int
    rows: dict[str, int]
    size: int
    sha256: str
