"""Reads SQL out of the `.sql` files: `-- name: verb` starts a statement, the next name ends it.

Parameters are `$1`, `$2`, … and first appear in ascending order, so that one text
binds by position in both drivers. Where a database must say something differently, a
second file has the statement under the same name, and the driver looks it up.
"""

from __future__ import annotations

import re
from functools import cache
from importlib.resources import files

_NAME = re.compile(r"^-- name: (\w+)$", re.M)
_PARAMETER = re.compile(r"\$(\d+)")


def read_sql(file_name: str) -> str:
    return files("openclaw.store").joinpath("sql", file_name).read_text(encoding="utf-8")


@cache
def load_statements(file_name: str) -> dict[str, str]:
    """All named statements of a file. A parameter out of order is a programmer's error."""
    parts = _NAME.split(read_sql(file_name))
    statements = dict(zip(parts[1::2], (text.strip() for text in parts[2::2]), strict=True))
    for name, text in statements.items():
        seen = list(dict.fromkeys(int(number) for number in _PARAMETER.findall(text)))
        if seen != sorted(seen) or (seen and seen != list(range(1, seen[-1] + 1))):
            raise ValueError(f"{file_name}: {name}: parameters must first appear as $1, $2, …; found {seen}")
    return statements


def load_variants(file_name: str, variant_file_name: str) -> dict[str, str]:
    """What one database says differently: the statement of a file -> its variant, under the same name."""
    statements, variants = load_statements(file_name), load_statements(variant_file_name)
    unknown = variants.keys() - statements.keys()
    if unknown:
        raise ValueError(f"{variant_file_name}: {file_name} has no statements {sorted(unknown)}")
    return {statements[name]: text for name, text in variants.items()}
