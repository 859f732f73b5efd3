"""Keeps the written pages true: `python -m scripts.check_docs`.

Checked for README, CONTRIBUTING, CHANGELOG and everything under docs: relative links lead to a file (and to a
heading, where they name one), every page is reached from docs/index.md, and every command shown in a fenced
`sh` block is one that exists: a file of the project, a make target, or a command of docs/reference/cli.md.
That generated pages are current is checked by the scripts that generate them.
"""

from __future__ import annotations

import re
import shlex
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple
from urllib.parse import unquote

FRONT_PAGES = ("README.md", "CONTRIBUTING.md", "CHANGELOG.md")
INDEX = "docs/index.md"
COMMANDS = "docs/reference/cli.md"

LINK = re.compile(r"\[(?:[^\[\]]|\[[^\]]*\])*\]\((?P<target>[^()\s]+)\)|<img[^>]+src=\"(?P<image>[^\"]+)\"")
DEFINITION = re.compile(r"^\[[^\]]+\]:\s+(?P<target>\S+)")
FENCE = re.compile(r"^(?P<marks>```+|~~~+)(?P<language>\w*)")
HEADING = re.compile(r"^#{1,6}\s+(?P<text>.*?)\s*#*$")
ELSEWHERE = re.compile(r"^[a-z][a-z0-9+.-]*:", re.IGNORECASE)


class Line(NamedTuple):
    """One line of a page; `language` is that of the fenced block around it, None in running text."""

    number: int
    text: str
    language: str | None


def read_lines(text: str) -> Iterator[Line]:
    """The lines of a page without the fence marks themselves."""
    open_marks = ""
    language: str | None = None
    for number, line in enumerate(text.splitlines(), 1):
        fence = FENCE.match(line.strip())
        if not open_marks and fence:
            open_marks, language = fence["marks"], fence["language"]
        elif open_marks and line.strip().startswith(open_marks) and not line.strip().strip("`~"):
            open_marks, language = "", None
        else:
            yield Line(number, line, language)


def slugs(text: str) -> set[str]:
    """The anchors of a page's headings, formed as GitHub forms them."""
    found: list[str] = []
    for line in read_lines(text):
        heading = HEADING.match(line.text) if line.language is None else None
        if heading:
            plain = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading["text"]).replace("`", "").lower()
            found.append(re.sub(r"[^\w\- ]", "", plain).replace(" ", "-"))
    return {
        slug if found[:index].count(slug) == 0 else f"{slug}-{found[:index].count(slug)}"
        for index, slug in enumerate(found)
    }


def links(text: str) -> Iterator[tuple[int, str]]:
    """(line, target) of every link that points into the project; code is passed over."""
    for line in read_lines(text):
        if line.language is None:
            prose = re.sub(r"`[^`]*`", "", line.text)
            matches = [*LINK.finditer(prose), *DEFINITION.finditer(prose)]
            for match in matches:
                target = match["target"] or match.groupdict().get("image") or ""
                if target and not ELSEWHERE.match(target):
                    yield line.number, unquote(target)


def list_pages(root: Path) -> list[Path]:
    front = [root / name for name in FRONT_PAGES if (root / name).exists()]
    return front + sorted((root / "docs").rglob("*.md"))


def check_links(root: Path) -> list[str]:
    problems = []
    for page in list_pages(root):
        for number, target in links(page.read_text(encoding="utf-8")):
            place = f"{page.relative_to(root)}:{number}"
            file, _, anchor = target.partition("#")
            goal = (page.parent / file).resolve() if file else page
            if not goal.exists():
                problems.append(f"{place}: {target} leads nowhere")
            elif not goal.is_relative_to(root.resolve()):
                problems.append(f"{place}: {target} leads out of the project")
            elif anchor and goal.suffix == ".md" and anchor not in slugs(goal.read_text(encoding="utf-8")):
                problems.append(f"{place}: {file or 'this page'} has no heading for #{anchor}")
    return problems


def check_reach(root: Path) -> list[str]:
    """Every page under docs is reached by links from the index."""
    reached: set[Path] = set()
    to_read = [(root / INDEX).resolve()]
    while to_read:
        page = to_read.pop()
        if page in reached or page.suffix != ".md" or not page.exists():
            continue
        reached.add(page)
        targets = (target.partition("#")[0] for _, target in links(page.read_text(encoding="utf-8")))
        to_read += [(page.parent / target).resolve() for target in targets if target]
    pages = sorted((root / "docs").rglob("*.md"))
    return [
        f"{page.relative_to(root)}: no path of links from {INDEX}"
        for page in pages
        if page.resolve() not in reached
    ]


def check_commands(root: Path) -> list[str]:
    """The commands in `sh` blocks exist. Only names are looked at, not their options."""
    makefile = root / "Makefile"
    targets = (
        re.findall(r"^\.PHONY: (.*)$", makefile.read_text(encoding="utf-8"), re.M)
        if makefile.exists()
        else []
    )
    make_targets = set(" ".join(targets).split())
    reference = root / COMMANDS
    known = set()
    if reference.exists():
        known = {
            line[3:].strip("` ")
            for line in reference.read_text(encoding="utf-8").splitlines()
            if line[:3] == "## "
        }
    problems = []
    for page in list_pages(root):
        for line in read_lines(page.read_text(encoding="utf-8")):
            if line.language == "sh":
                reason = _judge_command(root, line.text, make_targets, known)
                if reason:
                    problems.append(f"{page.relative_to(root)}:{line.number}: {reason}")
    return problems


def _judge_command(root: Path, text: str, make_targets: set[str], known: set[str]) -> str:
    words = _words(text)
    if not words:
        return ""
    first = words[0].removeprefix("./")
    if first.startswith(("scripts/", ".ci/")) and not (root / first).is_file():
        return f"there is no {first}"
    if first == "make" and len(words) > 1 and words[1] not in make_targets:
        return f"make has no target {words[1]}"
    if first == "openclaw" or first.endswith("bin/openclaw") or first == "scripts/start":
        command = next((word for word in words[1:2] if re.fullmatch(r"[a-z][a-z-]*", word)), "")
        if command and f"openclaw {command}" not in known:
            return f"openclaw has no command {command}"
    return ""


def _words(text: str) -> list[str]:
    """The words of a shell line without prompt, comment and leading NAME=value."""
    try:
        words = shlex.split(text.strip().removeprefix("$ "), comments=True)
    except ValueError:
        return []
    while words and re.fullmatch(r"\w+=.*", words[0]):
        words.pop(0)
    return words


def find_problems(root: Path) -> list[str]:
    return check_links(root) + check_reach(root) + check_commands(root)


def main(arguments: Sequence[str] | None = None) -> int:
    given = sys.argv[1:] if arguments is None else arguments
    root = Path(given[0]) if given else Path(__file__).resolve().parent.parent
    problems = find_problems(root)
    print("\n".join(problems) if problems else f"{len(list_pages(root))} pages, links and commands in order")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
