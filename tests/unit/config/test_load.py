"""Finding and reading the file, hostile files included."""

from __future__ import annotations

import errno
import hashlib
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from openclaw.config.load import (
    MAX_FILE_BYTES,
    config_path,
    expand_path,
    load,
    load_or_raise,
    state_dir,
)
from openclaw.config.schema import Config
from openclaw.errors import ConfigInvalid


@pytest.mark.spec("CFG-1", "CFG-2")
def test_places() -> None:
    home = {"HOME": "/home/ann"}
    assert state_dir(home) == Path("/home/ann/.openclaw")
    assert config_path(home) == Path("/home/ann/.openclaw/openclaw.json")
    moved = {**home, "OPENCLAW_STATE_DIR": "~/claw"}
    assert state_dir(moved) == Path("/home/ann/claw")
    assert config_path(moved) == Path("/home/ann/claw/openclaw.json")
    pointed = {**moved, "OPENCLAW_CONFIG_PATH": "/etc/claw.json5"}
    assert config_path(pointed) == Path("/etc/claw.json5")
    assert state_dir(pointed) == Path("/home/ann/claw")
    blank = {**home, "OPENCLAW_STATE_DIR": " ", "OPENCLAW_CONFIG_PATH": ""}
    assert config_path(blank) == Path("/home/ann/.openclaw/openclaw.json")


@pytest.mark.spec("CFG-2")
def test_home_expands_and_paths_become_absolute(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    assert expand_path("~", {"HOME": "/h"}) == Path("/h")
    assert expand_path("~/a/b", {"HOME": "/h"}) == Path("/h/a/b")
    assert expand_path("~/a", {"USERPROFILE": "/u"}) == Path("/u/a")
    assert expand_path("a/~/b", {"HOME": "/h"}) == tmp_path / "a/~/b"
    assert expand_path("~other/x", {"HOME": "/h"}) == tmp_path / "~other/x"
    assert expand_path("~/x", {}) == Path.home() / "x"


@pytest.mark.spec("CFG-1")
def test_a_missing_file_is_a_good_configuration(tmp_path: Path) -> None:
    loaded = load_or_raise(tmp_path / "openclaw.json", {})
    assert (loaded.config, loaded.exists, loaded.raw_text, loaded.hash) == (Config(), False, "", "")
    dangling = tmp_path / "link.json"
    dangling.symlink_to(tmp_path / "nowhere")
    assert load(dangling, {}).exists is False


@pytest.mark.spec("CFG-1", "CFG-2")
def test_a_good_file(tmp_path: Path) -> None:
    path = tmp_path / "openclaw.json"
    raw = "\ufeff// ¡hola!\n{session: {mainKey: '${NAME}'}, plugins: {}}\n".encode()
    path.write_bytes(raw)
    loaded = load_or_raise(path, {"NAME": "primary"})
    assert loaded.config.session.main_key == "primary"
    assert (loaded.exists, loaded.path, loaded.hash) == (True, path, hashlib.sha256(raw).hexdigest())
    assert loaded.raw_text.encode() == raw
    assert loaded.references == {"session.mainKey": "${NAME}"}
    assert loaded.referenced_secrets == {"primary"}
    assert [str(warning) for warning in loaded.warnings] == [
        f"{path}:2 — plugins: ignored: this setting belongs to another implementation"
    ]


@pytest.mark.spec("CFG-3")
def test_an_invalid_file_raises_with_all_problems(tmp_path: Path) -> None:
    path = tmp_path / "openclaw.json"
    path.write_text("{\n  sesion: {},\n  gateway: {port: 'x'},\n}")
    with pytest.raises(ConfigInvalid) as caught:
        load_or_raise(path, {})
    assert str(caught.value).splitlines() == [
        f'{path}:2 — sesion: unknown key; did you mean "session"?',
        f'{path}:3 — gateway.port: expected a whole number from 1 to 65535, found "x"',
    ]
    assert caught.value.fields["problems"] == load(path, {}).problems
    assert caught.value.code == "CONFIG_INVALID"


@pytest.mark.spec("CFG-3")
@pytest.mark.parametrize(
    ("raw", "line", "reason"),
    [
        (b"", 1, "column 1: the file is empty; expected an object, at least {}"),
        (b" \n\n", 3, "column 1: the file is empty; expected an object, at least {}"),
        (b"\xef\xbb\xbf", 1, "column 2: the file is empty; expected an object, at least {}"),
        (b"{}\n\x00", 2, "column 1: found a NUL character; this does not look like a text file"),
        (b"[" * 65 + b"]" * 65, 1, "column 65: nested deeper than 64 levels"),
        (b"{a: 'b", 1, "column 5: this text is never closed; expected ' before the end of the line"),
        (b"{} /* b", 1, "column 4: this comment is never closed; expected */"),
        (b"{a: 1,\na: 2}", 2, "column 1: the key a stands twice in this object, on line 1 and on line 2;"),
        (b"{a: 1,\n\xff}", 2, "not valid UTF-8; save the file as UTF-8"),
        ("{a: 1}".encode("utf-16"), 1, "not valid UTF-8; save the file as UTF-8"),
        (b"\xed\xa0\x80", 1, "not valid UTF-8; save the file as UTF-8"),
    ],
)
def test_hostile_texts(tmp_path: Path, raw: bytes, line: int, reason: str) -> None:
    path = tmp_path / "openclaw.json"
    path.write_bytes(raw)
    loaded = load(path, {})
    [problem] = loaded.problems
    assert (problem.file, problem.line, problem.path) == (str(path), line, "")
    assert problem.reason.startswith(reason)
    assert (loaded.config, loaded.exists) == (Config(), True)
    assert loaded.hash == hashlib.sha256(raw).hexdigest()


@pytest.fixture
def ordinary_user() -> Iterator[None]:
    """Permissions mean nothing to root; become somebody else for the length of a test."""
    if os.geteuid() != 0:
        yield
        return
    os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(0)


def reason_of(path: Path) -> str:
    [problem] = load(path, {}).problems
    assert (problem.line, problem.file) == (0, str(path))
    return problem.reason


@pytest.mark.spec("CFG-3")
def test_an_unreadable_file(tmp_path: Path, request: pytest.FixtureRequest) -> None:
    path = tmp_path / "openclaw.json"
    path.write_text("{}")
    path.chmod(0)
    request.getfixturevalue("ordinary_user")
    assert reason_of(path) == "may not be read by this user; check its owner and mode"


@pytest.mark.spec("CFG-3")
def test_files_that_are_no_files(tmp_path: Path) -> None:
    assert reason_of(tmp_path) == "not a file; point OPENCLAW_CONFIG_PATH at one"
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    assert reason_of(pipe) == "not a file; point OPENCLAW_CONFIG_PATH at one"
    loop = tmp_path / "loop"
    loop.symlink_to(loop)
    assert reason_of(loop) == f"cannot be read ({os.strerror(errno.ELOOP)})"


@pytest.mark.spec("CFG-3")
def test_a_path_with_nul_is_refused(tmp_path: Path) -> None:
    assert reason_of(tmp_path / "a\0b") == "cannot be read (ValueError)"


@pytest.mark.spec("CFG-3")
def test_huge_files_are_not_even_parsed(tmp_path: Path) -> None:
    path = tmp_path / "openclaw.json"
    path.write_bytes(b"{}" + b" " * (MAX_FILE_BYTES - 2))
    assert load(path, {}).problems == ()
    path.write_bytes(b"{}" + b" " * (5 * 1024**2))
    assert reason_of(path) == "larger than 4 MiB; this is not a config file"


@pytest.mark.spec("CFG-2")
def test_the_process_environment_does_not_matter(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENCLAW_STATE_DIR", "/elsewhere")
    assert state_dir({"HOME": "/h"}) == Path("/h/.openclaw")


@pytest.mark.spec("CFG-4")
def test_reading_a_config_loads_neither_the_event_loop_nor_the_watcher() -> None:
    code = (
        "import sys, openclaw.config.views, openclaw.config.write, openclaw.config.jsonschema;"
        "print({'asyncio', 'watchfiles'} & set(sys.modules))"
    )
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert shown.stdout.strip() == "set()"
