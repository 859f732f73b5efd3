"""Files that a reply brings along: lines `MEDIA:<path>` in what the model wrote (pure).

A line counts only by itself and outside of code blocks; whatever else mentions a path is text. What
the path leads to, and whether it may be sent, is asked where files are read.
"""

from __future__ import annotations

from msgspec import Struct

MARK = "MEDIA:"
MOST_FILES = 10
LONGEST_PATH = 1024
_FENCE = "```"
_QUOTES = "`\"'"
_UNKNOWN_TYPE = "application/octet-stream"
_TYPES = {
    "png": "image/png", "jpg": "image/jpeg", "jpeg": "image/jpeg", "gif": "image/gif", "webp": "image/webp",
    "svg": "image/svg+xml", "pdf": "application/pdf", "txt": "text/plain", "log": "text/plain",
    "md": "text/markdown", "csv": "text/csv", "html": "text/html", "json": "application/json",
    "zip": "application/zip", "gz": "application/gzip", "mp3": "audio/mpeg", "ogg": "audio/ogg",
    "wav": "audio/wav", "mp4": "video/mp4",
}  # fmt: skip


class MediaFile(Struct, frozen=True):
    """A file as a delivery names it: relative to the workspace `root` of the agent that wrote the reply."""

    name: str
    mime: str
    path: str
    root: str = ""


class MediaReading(Struct, frozen=True):
    """A reply without its `MEDIA:` lines, and the paths in their order."""

    text: str
    paths: tuple[str, ...] = ()


def take_media(text: str) -> MediaReading:
    """Part a reply from the files it names. A text without any comes back unchanged."""
    if MARK not in text:
        return MediaReading(text)
    kept: list[str] = []
    paths: list[str] = []
    in_code = False
    for line in text.split("\n"):
        bare = line.strip()
        if bare.startswith(_FENCE):
            in_code = not in_code
        path = "" if in_code or not bare.startswith(MARK) else _path(bare[len(MARK) :])
        if path and len(paths) < MOST_FILES:
            paths.append(path)
        else:
            kept.append(line)
    if not paths:
        return MediaReading(text)
    return MediaReading("\n".join(kept).strip("\n"), tuple(paths))


def _path(rest: str) -> str:
    path = rest.strip().strip(_QUOTES).strip()
    return path if len(path) <= LONGEST_PATH else ""


def media_file(path: str, root: str) -> MediaFile:
    """How a delivery names a file: by its last part, with the type that the name announces."""
    name = path.rstrip("/").rpartition("/")[2] or "file"
    suffix = name.rpartition(".")[2].lower() if "." in name else ""
    return MediaFile(name, _TYPES.get(suffix, _UNKNOWN_TYPE), path, root)


def refusal_note(name: str, reason: str) -> str:
    """What people read in place of a file that was not sent."""
    return f"[{name} was not sent: {reason}]"
