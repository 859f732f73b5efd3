"""The ten scripts work from any folder, set up only what they need, and say what is missing."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.tooling.trees import PROJECT, plant

TEN = ("start", "setup", "test", "check", "fix", "unit", "coverage", "docs", "bench", "long")
UV_VERSION = re.search(r"^uv_version=(.+)$", (PROJECT / "scripts/environment.sh").read_text(), re.M)

# Stands in for uv: answers its version, and writes down how it was called.
FAKE_UV = """#!/bin/sh
if [ "$1" = --version ]; then echo "uv {version} (test)"; exit 0; fi
echo "$@" >> "$LOG"
echo "python=$UV_PYTHON downloads=$UV_PYTHON_DOWNLOADS venv=${{VIRTUAL_ENV:-none}}" >> "$LOG"
"""
FAKE_COMMAND = '#!/bin/sh\necho "openclaw $* in $(pwd)"\n'
# A Python without ensurepip, as on a bare Debian.
BARE_PYTHON = """#!/bin/sh
case "$*" in
*ensurepip*) [ -e "$0-venv" ] ;;
*_base_executable*) echo "$0" ;;
*"-m venv"*) mkdir -p "$4/bin" ;;
*) exec {real} "$@" ;;
esac
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A copy of the scripts in a folder of their own, with nothing set up. Its name holds a space."""
    root = tmp_path / "a project"
    shutil.copytree(PROJECT / "scripts", root / "scripts", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(PROJECT / "Makefile", root)
    return root


def run(script: Path, *arguments: str, cwd: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHON": sys.executable, **variables}
    return subprocess.run(
        [script, *arguments], cwd=cwd, env=environment, capture_output=True, text=True, timeout=60
    )


def executable(path: Path, text: str) -> Path:
    plant(path.parent, {path.name: text})
    path.chmod(0o755)
    return path


def with_fakes(project: Path) -> Path:
    """Puts a ready uv and a ready command into place; returns the log of uv's calls."""
    assert UV_VERSION is not None
    executable(project / ".uv/bin/uv", FAKE_UV.format(version=UV_VERSION[1]))
    executable(project / ".venv/bin/openclaw", FAKE_COMMAND)
    return project.parent / "uv.log"


@pytest.mark.parametrize("name", TEN)
def test_each_script_explains_itself_without_setting_anything_up(
    project: Path, tmp_path: Path, name: str
) -> None:
    done = run(project / "scripts" / name, "--help", cwd=tmp_path)
    assert done.returncode == 0
    assert done.stdout.startswith(f"scripts/{name}")
    assert len(done.stdout.splitlines()) >= 3
    assert "set -eu" not in done.stdout
    assert not (project / ".uv").exists()
    assert not (project / ".venv").exists()


def test_make_has_the_same_ten(project: Path) -> None:
    makefile = (project / "Makefile").read_text()
    phony = re.search(r"^\.PHONY: (.*)$", makefile, re.M)
    assert phony is not None
    assert tuple(phony[1].split()) == TEN
    shown = subprocess.run(
        ["make", "-n", "unit", "ARGS=tests -x"], cwd=project, capture_output=True, text=True, check=True
    )
    assert shown.stdout.strip() == "scripts/unit tests -x"


def test_a_python_without_ensurepip_is_told_what_to_install(project: Path, tmp_path: Path) -> None:
    bare = executable(tmp_path / "bin/python3", BARE_PYTHON.format(real=sys.executable))
    done = run(project / "scripts/start", cwd=tmp_path, PYTHON=str(bare), PATH=somebody(tmp_path, "1000"))
    assert done.returncode == 1
    assert "its ensurepip module is missing" in done.stderr
    assert "apt install python3-venv" in done.stderr
    assert not (project / ".uv").exists()
    assert not (tmp_path / "apt.log").exists()


def test_root_of_a_bare_debian_gets_what_is_missing(project: Path, tmp_path: Path) -> None:
    """Also where the list of packages is missing. What follows needs a registry and is not tried here."""
    bare = executable(tmp_path / "bin/python3", BARE_PYTHON.format(real=sys.executable))
    path = somebody(tmp_path, "0")
    done = run(project / "scripts/start", cwd=tmp_path, PYTHON=str(bare), PATH=path)
    asked = (tmp_path / "apt.log").read_text().splitlines()
    install = "install -y -q python3-venv"
    assert asked == [install, "update -q", install]
    assert done.stderr.startswith("installing python3-venv ...\ninstalling uv ")
    assert "uv could not be installed" in done.stderr


def somebody(place: Path, user_id: str) -> str:
    """A PATH on which `id` and `apt-get` are ours; a package is there once packages were listed."""
    executable(place / "fakes/id", f"#!/bin/sh\necho {user_id}\n")
    text = f'''#!/bin/sh
echo "$@" >> "{place}/apt.log"
case "$1" in
update) touch "{place}/listed" ;;
install) [ -e "{place}/listed" ] && touch "{place}/bin/python3-venv" ;;
esac
'''
    executable(place / "fakes/apt-get", text)
    return f"{place / 'fakes'}:{os.environ['PATH']}"


def test_an_old_python_is_refused_with_the_way_out(project: Path, tmp_path: Path) -> None:
    old = executable(tmp_path / "bin/python3", "#!/bin/sh\nexit 1\n")
    done = run(project / "scripts/setup", cwd=tmp_path, PYTHON=str(old))
    assert done.returncode == 1
    assert "Python 3.11 or newer is needed" in done.stderr
    assert "PYTHON=/path/to/python3" in done.stderr


def test_start_installs_the_run_time_only_and_becomes_the_command(project: Path, tmp_path: Path) -> None:
    log = with_fakes(project)
    done = run(
        project / "scripts/start",
        "agent",
        "--message",
        "two words",
        cwd=tmp_path,
        LOG=str(log),
        VIRTUAL_ENV="/other",
    )
    assert done.returncode == 0
    assert done.stdout == f"openclaw agent --message two words in {tmp_path}\n"
    call, surroundings = log.read_text().splitlines()
    assert call == f"sync --quiet --frozen --project {project} --no-default-groups --inexact"
    assert surroundings.endswith("downloads=never venv=none")
    assert Path(surroundings.split()[0].removeprefix("python=")).exists()


def test_start_hands_help_on_after_two_dashes(project: Path, tmp_path: Path) -> None:
    log = with_fakes(project)
    done = run(project / "scripts/start", "--", "--help", cwd=tmp_path, LOG=str(log))
    assert done.stdout.startswith("openclaw --help in ")


def test_setup_takes_all_developer_tools(project: Path, tmp_path: Path) -> None:
    log = with_fakes(project)
    assert run(project / "scripts/setup", cwd=tmp_path, LOG=str(log)).returncode == 0
    assert log.read_text().splitlines()[0] == f"sync --quiet --frozen --project {project}"


def test_a_link_to_a_script_finds_its_project(project: Path, tmp_path: Path) -> None:
    log = with_fakes(project)
    link = tmp_path / "claw"
    link.symlink_to(project / "scripts/start")
    assert run(link, "status", cwd=Path("/"), LOG=str(log)).stdout == "openclaw status in /\n"


def test_a_failed_sync_stops_the_script(project: Path, tmp_path: Path) -> None:
    assert UV_VERSION is not None
    with_fakes(project)
    failing = FAKE_UV.format(version=UV_VERSION[1]) + "exit 2\n"
    executable(project / ".uv/bin/uv", failing)
    done = run(project / "scripts/start", cwd=tmp_path, LOG=str(tmp_path / "log"))
    assert done.returncode == 1
    assert "could not be set up" in done.stderr
    assert "openclaw" not in done.stdout


def test_the_page_is_tried_with_its_tools_and_their_absence_stops_no_other_test(
    project: Path, tmp_path: Path
) -> None:
    log = with_fakes(project)
    program = '#!/bin/sh\necho "$*" >> "$LOG"\ncase "$*" in *web_tools*) exit {code} ;; esac\n'
    # No package is installed by a test.
    executable(tmp_path / "bin/bwrap", "#!/bin/sh\n")
    path = f"{tmp_path / 'bin'}{os.pathsep}{os.environ['PATH']}"
    for code, calls in ((1, ["-m scripts.web_tools"]), (0, ["-m scripts.web_tools", "-m pytest -m web -x"])):
        executable(project / ".venv/bin/python", program.format(code=code))
        log.unlink(missing_ok=True)
        done = run(project / "scripts/test-web", "-x", cwd=tmp_path, LOG=str(log), PATH=path)
        assert done.returncode == code
        assert ("cannot be run" in done.stderr) is (code == 1)
        assert [line for line in log.read_text().splitlines() if line.startswith("-m")] == calls
        log.unlink()
        assert run(project / "scripts/test", cwd=tmp_path, LOG=str(log), PATH=path).returncode == 0
        started = [line.split()[1] for line in log.read_text().splitlines() if line.startswith("-m")]
        assert started == ["scripts.web_tools", "scripts.run_checks"]


def test_ci_is_the_test_command(tmp_path: Path) -> None:
    plant(tmp_path, {"x": ""})
    shutil.copytree(PROJECT / ".ci", tmp_path / ".ci")
    executable(tmp_path / "scripts/test", '#!/bin/sh\necho "$CI $* $(pwd)"\ncat\nexit 7\n')
    done = subprocess.run(["bash", ".ci/run"], cwd=tmp_path, capture_output=True, text=True, timeout=60)
    assert done.stdout == f"true --minutes 20 {tmp_path}\n"
    assert done.returncode == 7
