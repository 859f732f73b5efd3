"""The pictures of a soak."""

from __future__ import annotations

from pathlib import Path

from benchmarks.plots import Line, line_chart
from benchmarks.soak_judging import Record

MIB = 1 << 20


def draw_soak(folder: Path, record: Record) -> None:
    """`bench-soak-*.svg`: memory, what is held open, and the files, over the soak."""
    samples = record.samples
    minutes = [sample.at_s / 60 for sample in samples]

    def series(field: str, name: str, unit: float = 1.0) -> Line:
        return Line(name, minutes, [getattr(sample, field) / unit for sample in samples])

    turns = f"{record.turns:,} turns"
    folder.mkdir(parents=True, exist_ok=True)
    for name, title, axis, lines in (
        ("memory", "Memory", "MiB", [series("rss_bytes", "resident", MIB)]),
        ("held", "Held open", "", [
            series("descriptors", "descriptors"), series("tasks", "tasks"), series("threads", "threads"),
        ]),
        ("files", "Files", "MiB", [
            series("database_bytes", "database", MIB), series("wal_bytes", "its log", MIB),
        ]),
    ):  # fmt: skip
        picture = line_chart(f"{title} over {turns}", lines, x_name="minutes", y_name=axis)
        (folder / f"bench-soak-{name}.svg").write_text(picture, encoding="utf-8")
