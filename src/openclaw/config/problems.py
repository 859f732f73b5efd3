"""What is wrong with a config file, said so that a person can fix it in one go (CFG-3)."""

from __future__ import annotations

from msgspec import Struct

from openclaw.config.nodes import Document, Path, format_path, nearest_offset

MAX_LISTED = 500


class Problem(Struct, frozen=True):
    """One mistake (or one warning). `line` is 0 when the file as a whole is meant."""

    file: str
    line: int
    path: str
    reason: str

    def __str__(self) -> str:
        where = f"{self.file}:{self.line}" if self.line else self.file
        return f"{where} — {self.path}: {self.reason}" if self.path else f"{where} — {self.reason}"


class Report:
    """Collects everything that was found in one document, in the order of the file.

    A hostile file can hold a million mistakes; the list is cut and says so.
    """

    def __init__(self, document: Document) -> None:
        self._document = document
        self._problems: list[tuple[int, Problem]] = []
        self._warnings: list[tuple[int, Problem]] = []
        self._unlisted = 0
        self._kept_items: dict[Path, tuple[int, ...]] = {}

    def renumber(self, path: Path, kept: tuple[int, ...]) -> None:
        """Note which items of a list were kept, so that later paths name the items of the file."""
        self._kept_items[path] = kept

    def has_problem_under(self, *path: str) -> bool:
        """Whether something below a path was refused already, so that a follow-up would only be noise."""
        prefix = format_path(path)
        return any(problem.path.startswith(prefix) for _, problem in self._problems)

    def problem(self, path: Path, reason: str, *, at: int | None = None) -> None:
        if len(self._problems) < MAX_LISTED:
            self._problems.append(self._entry(path, reason, at))
        else:
            self._unlisted += 1

    def warning(self, path: Path, reason: str, *, at: int | None = None) -> None:
        if len(self._warnings) < MAX_LISTED:
            self._warnings.append(self._entry(path, reason, at))

    def _entry(self, path: Path, reason: str, at: int | None) -> tuple[int, Problem]:
        document = self._document
        path = self._path_in_file(path) if at is None else path
        offset = nearest_offset(document.root, path) if at is None else at
        line = document.position(offset).line
        return offset, Problem(file=document.name, line=line, path=format_path(path), reason=reason)

    def _path_in_file(self, path: Path) -> Path:
        steps: Path = ()
        for step in path:
            kept = self._kept_items.get(steps)
            steps = (*steps, kept[step] if kept and isinstance(step, int) else step)
        return steps

    def problems(self) -> tuple[Problem, ...]:
        listed = _in_file_order(self._problems)
        if self._unlisted:
            more = Problem(
                self._document.name, 0, "", f"and {self._unlisted} more problems that are not listed"
            )
            return (*listed, more)
        return listed

    def warnings(self) -> tuple[Problem, ...]:
        return _in_file_order(self._warnings)


def _in_file_order(entries: list[tuple[int, Problem]]) -> tuple[Problem, ...]:
    return tuple(problem for _, problem in sorted(entries, key=lambda entry: entry[0]))
