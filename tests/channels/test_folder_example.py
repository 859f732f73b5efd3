"""The suite against the example of the how-to, so that what it teaches is true."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from openclaw.channels import registry
from tests.channels.platform import Chat, Person, Shown
from tests.channels.suite import *  # noqa: F403


class FolderPlatform:
    channel = "folder"
    longest_text = 500
    ann = Person("ann", "Ann")
    bob = Person("bob", "Bob")

    def __init__(self, root: Path) -> None:
        self._root = root
        self._numbers = 0
        self.options: dict[str, Any] = {"path": str(root), "key": "sesame"}
        (root / "key.txt").write_text("sesame")
        for chat in ("people/ann", "people/bob", "groups/choir"):
            (root / chat).mkdir(parents=True)

    def direct(self, person: Person) -> Chat:
        return Chat("direct", person.id)

    def group(self) -> Chat:
        return Chat("group", "choir")

    def thread(self) -> Chat | None:
        return None

    def session_key(self, chat: Chat) -> str:
        return f"folder:{'dm' if chat.kind == 'direct' else 'group'}:{chat.id}"

    def _place(self, chat: Chat) -> Path:
        return self._root / ("people" if chat.kind == "direct" else "groups") / chat.id

    async def says(
        self, person: Person, chat: Chat, text: str, *, mention: bool = False, repeat: int = 1
    ) -> None:
        self._numbers += 1
        words = f"@agent {text}" if mention else text
        for number in range(repeat):
            # The same message under the same id in a file of another name, as a platform delivers again.
            path = self._place(chat) / f"{self._numbers:06d}.{person.id}.txt"
            path.with_suffix(f".{number}").write_text(words)
            path.with_suffix(f".{number}").rename(path)

    def shown(self) -> list[Shown]:
        found = []
        for path in sorted(self._root.glob("*/*/reply-*.txt"), key=lambda one: one.stat().st_mtime_ns):
            kind = "direct" if path.parent.parent.name == "people" else "group"
            found.append(Shown(Chat(kind, path.parent.name), path.read_text()))
        return found

    async def go_away(self) -> None:
        (self._root / "CLOSED").touch()

    async def come_back(self) -> None:
        (self._root / "CLOSED").unlink()

    def slow_down(self, times: int) -> None:
        """A folder is never too busy."""

    def forget_credentials(self) -> None:
        (self._root / "key.txt").write_text("another")


@pytest.fixture
def platform(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FolderPlatform:
    monkeypatch.setattr(registry, "BUILT_IN", {"folder": "examples.folder_connector:build"})
    monkeypatch.setattr("openclaw.channels.supervisor.FIRST_PAUSE_S", 0.02)
    root = tmp_path / "post"
    root.mkdir()
    return FolderPlatform(root)
