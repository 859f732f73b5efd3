"""The changelog's newest release is the package's version: `python -m scripts.check_changelog`.

CHANGELOG.md opens with `## [Unreleased]`; the next heading is the version that `openclaw.__version__` names,
with its date; each version stands there once.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from pathlib import Path

HEADING = re.compile(r"^## \[(?P<version>[^\]]+)\](?P<rest>.*)$", re.MULTILINE)
VERSION = re.compile(r"""^__version__ = ["'](?P<version>[^"']+)["']""", re.MULTILINE)


def find_problems(root: Path) -> list[str]:
    source = (root / "src/openclaw/__init__.py").read_text(encoding="utf-8")
    found = VERSION.search(source)
    if found is None:
        return ['src/openclaw/__init__.py: no line __version__ = "…"']
    version = found["version"]
    headings = list(HEADING.finditer((root / "CHANGELOG.md").read_text(encoding="utf-8")))
    versions = [heading["version"] for heading in headings]
    problems = []
    if versions[:1] != ["Unreleased"]:
        problems.append("CHANGELOG.md: the first heading is not ## [Unreleased]")
    if versions[1:2] != [version]:
        newest = versions[1] if len(versions) > 1 else "none"
        problems.append(f"CHANGELOG.md: newest release is {newest}, the package is {version}")
    for heading in headings[1:]:
        if not re.fullmatch(r" - \d{4}-\d{2}-\d{2}", heading["rest"]):
            problems.append(f"CHANGELOG.md: [{heading['version']}] has no date (## [x.y.z] - YYYY-MM-DD)")
    problems += [
        f"CHANGELOG.md: [{twice}] stands there twice"
        for twice in sorted(set(versions))
        if versions.count(twice) > 1
    ]
    return problems


def main(arguments: Sequence[str] | None = None) -> int:
    given = sys.argv[1:] if arguments is None else arguments
    root = Path(given[0]) if given else Path(__file__).resolve().parent.parent
    problems = find_problems(root)
    print("\n".join(problems) if problems else "the changelog names the package's version")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
