"""What the tests of the page need is found, fetched within bounds, or said to be missing: no run breaks."""

from __future__ import annotations

import ast
import base64
import hashlib
import io
import os
import tarfile
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread

import pytest

from scripts import check_web, web_tools
from scripts.run_checks import LEFT_OUT
from tests.tooling.trees import PROJECT, plant

SCRIPT = b"var axe = 1;\n"
APT = """#!/bin/sh
echo "$@" >> "{log}"
case "$*" in
*update*) exit {update} ;;
*--download-only*) exit {download} ;;
*) cp "{stub}" "{bin}/testium" ;;
esac
"""


def packed(content: bytes) -> bytes:
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w:gz") as files:
        head = tarfile.TarInfo("package/axe.min.js")
        head.size = len(content)
        files.addfile(head, io.BytesIO(content))
    return made.getvalue()


@pytest.fixture
def registry(monkeypatch: pytest.MonkeyPatch) -> Iterator[HTTPServer]:
    """A registry on loopback that has one archive, the one that is expected."""
    archive = packed(SCRIPT)
    monkeypatch.setattr(web_tools, "AXE_SHA512", base64.b64encode(hashlib.sha512(archive).digest()).decode())

    class Answer(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            known = self.path == f"/mirror/{web_tools.AXE_PATH}"
            self.send_response(200 if known else 404)
            self.end_headers()
            self.wfile.write(archive if known else b"")

        def log_message(self, *_: object) -> None:
            """Says nothing."""

    server = HTTPServer(("127.0.0.1", 0), Answer)
    thread = Thread(target=server.serve_forever)
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


def mirror(server: HTTPServer) -> str:
    return f"http://127.0.0.1:{server.server_port}/mirror"


def program(path: Path, text: str) -> Path:
    plant(path.parent, {path.name: text})
    path.chmod(0o755)
    return path


def only_path(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    """A machine whose browser, if any, lies in this folder, under a name that no other machine knows."""
    monkeypatch.setenv("PATH", f"{folder}{os.pathsep}/bin")
    monkeypatch.setattr(web_tools, "PROGRAMS", ("testium",))


def test_axe_is_fetched_from_the_registry_that_is_named(tmp_path: Path, registry: HTTPServer) -> None:
    target = tmp_path / "deep" / "axe.js"
    web_tools.fetch_axe(target, mirror(registry) + "/")
    assert target.read_bytes() == SCRIPT
    assert [path.name for path in target.parent.iterdir()] == ["axe.js"]


def test_an_archive_that_is_not_the_expected_one_is_refused(
    tmp_path: Path, registry: HTTPServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(web_tools, "AXE_SHA512", "another")
    with pytest.raises(OSError, match="not the one that is expected"):
        web_tools.fetch_axe(tmp_path / "axe.js", mirror(registry))
    monkeypatch.setattr(web_tools, "MOST_BYTES", 10)
    with pytest.raises(OSError, match="too large or too slow"):
        web_tools.fetch_axe(tmp_path / "axe.js", mirror(registry))
    assert list(tmp_path.iterdir()) == []


def test_what_is_there_is_left_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    program(tmp_path / "bin/testium", "#!/bin/sh\nexit 0\n")
    only_path(monkeypatch, tmp_path / "bin")
    axe = plant(tmp_path, {"axe.js": "kept"}) / "axe.js"
    assert web_tools.main(axe) == 0
    assert axe.read_text() == "kept"
    assert capsys.readouterr().err == ""


def test_a_browser_that_only_explains_itself_is_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stub = program(tmp_path / "bin/testium", "#!/bin/sh\necho 'install the snap'\nexit 1\n")
    only_path(monkeypatch, tmp_path / "bin")
    assert web_tools.find_chromium() is None
    program(stub, "#!/bin/sh\nexit 0\n")
    assert web_tools.find_chromium() == str(stub)


@pytest.mark.parametrize(
    ("download", "update", "root", "calls"),
    [
        (0, 0, True, ["--download-only", "chromium"]),
        (1, 0, True, ["--download-only", "-q", "--download-only"]),
        (1, 1, True, ["--download-only", "-q"]),
        (0, 0, False, []),
    ],
)
def test_chromium_comes_from_the_packages_or_its_absence_is_told(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    registry: HTTPServer,
    download: int,
    update: int,
    root: bool,
    calls: list[str],
) -> None:
    folder = tmp_path / "bin"
    stub = program(tmp_path / "stub", "#!/bin/sh\nexit 0\n")
    log = tmp_path / "log"
    program(folder / "apt-get", APT.format(log=log, update=update, download=download, stub=stub, bin=folder))
    only_path(monkeypatch, folder)
    monkeypatch.setattr(os, "geteuid", lambda: 0 if root else 1000)
    monkeypatch.setenv("NPM_CONFIG_REGISTRY", mirror(registry))
    installed = "chromium" in calls
    assert web_tools.main(tmp_path / "axe.js") == (0 if installed else 1)
    # The last word of each call tells what was asked of it.
    assert [line.split()[-1] for line in (log.read_text().splitlines() if root else [])] == calls
    said = capsys.readouterr().err
    assert ("CHROMIUM IS MISSING" in said) is not installed
    assert "apt install chromium" in said or installed
    assert (tmp_path / "axe.js").read_bytes() == SCRIPT


def test_an_installation_that_hangs_is_given_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    log = tmp_path / "log"
    program(tmp_path / "bin/apt-get", f'#!/bin/sh\necho "$@" >> "{log}"\nexec sleep 60\n')
    only_path(monkeypatch, tmp_path / "bin")
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    started = time.monotonic()
    web_tools.install_chromium(seconds=1)
    assert time.monotonic() - started < 30
    assert len(log.read_text().splitlines()) == 1
    assert "installing Chromium" in capsys.readouterr().err


def test_a_registry_that_is_not_reachable_breaks_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], registry: HTTPServer
) -> None:
    program(tmp_path / "bin/testium", "#!/bin/sh\nexit 0\n")
    only_path(monkeypatch, tmp_path / "bin")
    for url in ("http://127.0.0.1:1/", f"http://127.0.0.1:{registry.server_port}/elsewhere"):
        monkeypatch.setenv("NPM_CONFIG_REGISTRY", url)
        assert web_tools.main(tmp_path / "axe.js") == 1
        said = capsys.readouterr().err
        assert f"fetching axe-core from {url}" in said
        assert "AXE-CORE IS MISSING" in said and "NPM_CONFIG_REGISTRY" in said
    assert not (tmp_path / "axe.js").exists()


def test_the_part_is_left_out_without_a_browser(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(check_web, "find_chromium", lambda: None)
    assert check_web.main([]) == LEFT_OUT
    shown = capsys.readouterr().out.splitlines()
    assert shown[0].startswith("CHROMIUM IS MISSING")
    assert shown[-1] == "left out: no Chromium"


def test_the_part_becomes_pytest_without_the_long_tests(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    became: list[list[str]] = []

    def become(_: str, command: list[str]) -> int:
        became.append(command)
        return 0

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(check_web, "find_chromium", lambda: "/usr/bin/testium")
    monkeypatch.setattr(os, "execv", become)
    for axe in (tmp_path / "absent", plant(tmp_path, {"axe.js": ""}) / "axe.js"):
        monkeypatch.setattr(check_web, "AXE", axe)
        assert check_web.main(["-x"]) == 0
    without, whole = became
    assert "AXE-CORE IS MISSING" in capsys.readouterr().out
    assert whole[whole.index("-m", 3) + 1] == "web and not long"
    assert whole[-1] == "-x" and "-k" not in whole
    assert without[without.index("-k") + 1] == "not findings"
    assert Path.cwd() == PROJECT


def test_every_test_that_asks_axe_is_named_so() -> None:
    """Without axe-core they are left out by their names."""
    found = []
    for path in sorted((PROJECT / "tests/web").glob("test_*.py")):
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.FunctionDef) and node.name.startswith("test"):
                calls = {ast.unparse(one.func) for one in ast.walk(node) if isinstance(one, ast.Call)}
                if "findings" in calls:
                    found.append(node.name)
    assert len(found) >= 3
    assert [name for name in found if check_web.AXE_TESTS not in name] == []
