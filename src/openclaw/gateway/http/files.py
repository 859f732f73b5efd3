"""The files of the web page, read once when the gateway starts.

A path is a key of a table, never a path of the disk, so nothing outside the folder can be asked for.
Scripts and sheets leave without their comments and most of their blanks: a quarter of the page is written
for its readers. Every line stays where it is, so that a browser's complaint names the line of the source.
"""

from __future__ import annotations

import hashlib
import mimetypes
import re
from collections.abc import Mapping
from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import Final

from aiohttp import web
from msgspec import Struct

PACKAGE: Final = "openclaw.web"
FOLDER: Final = "static"
INDEX: Final = "index.html"
# Where a browser looks for a page of its own; everything below them is a file or nothing.
FILE_FOLDERS: Final = ("assets", "fonts", "plugins", "v1", "tools", "sessions", "hooks", "api", "signin")
# Not left to the machine: a wrong table there would break the page under `nosniff`.
_TYPES: Final = {
    ".html": "text/html",
    ".js": "text/javascript",
    ".mjs": "text/javascript",
    ".css": "text/css",
    ".json": "application/json",
    ".svg": "image/svg+xml",
    ".png": "image/png",
    ".ico": "image/x-icon",
    ".woff2": "font/woff2",
    ".webmanifest": "application/manifest+json",
    ".txt": "text/plain",
}
# Blanks that mean nothing: around the marks of the grammar; in a sheet also after the colon of a property.
_IN_SHEETS: Final = re.compile(r" *([{};,]) *|(?<=[a-z]:) ")
_IN_SCRIPTS: Final = re.compile(r" *([{}()\[\],;=<>?:&|!*]+) *")
# What makes a line of a script hard to read for a pattern: texts that may hold marks, patterns, remarks.
_HARD: Final = frozenset("'`/\\")
_TEXT: Final = ("text/", "application/json", "application/manifest+json", "image/svg+xml")


class Page(Struct, frozen=True):
    data: bytes
    kind: str
    tag: str


class Pages(Struct, frozen=True):
    """The files by their path on the wire, without the leading slash."""

    by_path: Mapping[str, Page] = {}

    def answer(self, request: web.Request) -> web.Response | None:
        """The file that a GET names, or the page itself for a view of it; None when there is neither."""
        path = request.path.lstrip("/")
        page = self.by_path.get(path or INDEX)
        if page is None and self._is_view(request, path):
            page = self.by_path.get(INDEX)
        return None if page is None else _shown(request, page)

    def _is_view(self, request: web.Request, path: str) -> bool:
        """An address inside the page, which the page itself understands."""
        head, _, _ = path.partition("/")
        name = path.rpartition("/")[2]
        accepted = request.headers.get("Accept", "*/*")
        return head not in FILE_FOLDERS and "." not in name and ("text/html" in accepted or "*/*" in accepted)


def read_pages() -> Pages:
    """Read the folder that came with the package."""
    found: dict[str, Page] = {}
    _collect(files(PACKAGE) / FOLDER, "", found)
    return Pages(found)


def _collect(folder: Traversable, prefix: str, found: dict[str, Page]) -> None:
    for item in sorted(folder.iterdir(), key=lambda one: one.name):
        if item.name.startswith((".", "__")):
            continue
        if item.is_dir():
            _collect(item, f"{prefix}{item.name}/", found)
        else:
            data = item.read_bytes()
            if item.name.endswith((".js", ".css")):
                data = lighten(data.decode(), sheet=item.name.endswith(".css")).encode()
            tag = hashlib.sha256(data).hexdigest()[:32]
            found[prefix + item.name] = Page(data, _type_of(item.name), tag)


def lighten(source: str, *, sheet: bool = False) -> str:
    """A script or sheet without what only its readers need; the number of lines is the same.

    Comments go where one begins a line. Blanks go where they cannot mean anything: a line of a script that
    holds more than plain code and texts in double quotes keeps those inside of it. No text of the files may
    go over several lines.
    """
    lines: list[str] = []
    inside = False
    for line in source.split("\n"):
        words = line.strip()
        is_comment = inside or words.startswith(("/*", "//"))
        if is_comment and "*/" in words and not words.endswith("*/"):
            words, is_comment = words.partition("*/")[2].lstrip(), False  # code after a comment
            inside = False
        elif inside or words.startswith("/*"):
            inside = not words.endswith("*/")
        lines.append("" if is_comment else _tighten(words, sheet))
    return "\n".join(lines)


def _tighten(line: str, sheet: bool) -> str:
    if sheet:
        return _IN_SHEETS.sub(r"\1", line)
    parts = line.split('"')
    if _HARD.intersection(line) or len(parts) % 2 == 0:
        return line
    parts[::2] = [_IN_SCRIPTS.sub(r"\1", part) for part in parts[::2]]
    return '"'.join(parts)


def _type_of(name: str) -> str:
    suffix = "." + name.rpartition(".")[2].lower()
    return _TYPES.get(suffix) or mimetypes.guess_type(name)[0] or "application/octet-stream"


def _shown(request: web.Request, page: Page) -> web.Response:
    tag = f'"{page.tag}"'
    headers = {"ETag": tag, "Cache-Control": "no-cache"}
    known = {one.strip().removeprefix("W/") for one in request.headers.get("If-None-Match", "").split(",")}
    if tag in known:
        return web.Response(status=304, headers=headers)
    charset = "utf-8" if page.kind.startswith(_TEXT) else None
    return web.Response(body=page.data, content_type=page.kind, charset=charset, headers=headers)
