"""Keeps the files about the project alone: `python -m scripts.check_words`.

A file says what the product does and why. It does not say who or what wrote it, in which conversation, or
what somebody was asked to do: readers cannot use that, and it is wrong after the next change. The names of
models and providers are part of the product and stay allowed.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

# Each pattern is written so that it does not match its own line here.
FORBIDDEN = tuple(
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        r"\b(claude[ ]code|codex[ ]cli|gemini[ ]cli|cursor[ ]ai|aider[ ]chat|copilot[ ]chat)\b",
        r"\bco-authored[-]by:",
        r"\b(generated|written|created|made)[ ](by|with)[ ](an?[ ])?(ai|llm|language[ ]model|chat[ ]?bot)\b",
        r"\b(generated|written|created|made)[ ](by|with)[ ](chat[ ]?gpt|claude|gemini|copilot|codex)\b",
        r"\bas[ ]an[ ]ai\b",
        r"\bai[-]generated\b",
        r"\b(this|our|my)[ ](coding|work|chat)[ ]session\b",
        r"\bthe[ ](issue|brief|ticket|prompt)[ ](asks|says|wants|requires|demands)\b",
        r"\b(as|like)[ ](requested|asked)[ ](by|in)[ ]the[ ](user|issue|brief|prompt|task)\b",
        r"\b(per|from|see)[ ]the[ ]brief\b",
    )
)
SKIPPED_FOLDERS = frozenset({".git", ".venv", ".uv", "__pycache__", "build", "dist", "node_modules"})
SKIPPED_FILES = frozenset({"uv.lock"})


def list_files(root: Path) -> Iterator[Path]:
    """The files of the project: what git knows or would add; without git, everything but the tool folders."""
    if (root / ".git").exists():
        command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
        listed = subprocess.run(command, cwd=root, capture_output=True, check=True).stdout
        candidates = [root / name for name in listed.decode().split("\0") if name]
    else:
        candidates = sorted(root.rglob("*"))
    for path in candidates:
        skipped = path.name in SKIPPED_FILES or SKIPPED_FOLDERS & set(path.relative_to(root).parts)
        if path.is_file() and not skipped:
            yield path


def find_problems(root: Path) -> list[str]:
    """One line per forbidden word, with its place. Files that are not text are passed over."""
    problems = []
    for path in list_files(root):
        try:
            text = path.read_text(encoding="utf-8")
        except UnicodeDecodeError:
            continue
        for number, line in enumerate(text.splitlines(), 1):
            for pattern in FORBIDDEN:
                found = pattern.search(line)
                if found:
                    place = f"{path.relative_to(root)}:{number}"
                    problems.append(f"{place}: “{found[0]}” speaks of something other than the project")
    return problems


def main(arguments: Sequence[str] | None = None) -> int:
    given = sys.argv[1:] if arguments is None else arguments
    root = Path(given[0]) if given else Path(__file__).resolve().parent.parent
    problems = find_problems(root)
    print(
        "\n".join(problems)
        if problems
        else f"{sum(1 for _ in list_files(root))} files speak of the project alone"
    )
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
