"""The texts that models are given, as they lie in `domain/texts`: read once, when a module is imported."""

from __future__ import annotations

from importlib.resources import files


def text_of_file(name: str) -> str:
    return files("openclaw.domain").joinpath("texts", name).read_text(encoding="utf-8").strip()
