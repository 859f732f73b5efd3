"""Builds the wheel and uses it as a stranger would: `python -m scripts.check_wheel`.

Every file of src/openclaw must be inside, and nothing else. The wheel is installed with its own dependencies
(in the versions of uv.lock) into a clean environment outside the project, and the command must answer there.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Iterable, Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


class Failed(Exception):
    """A step did not work; the message says which and what it printed."""


def list_package_files(source_root: Path) -> set[str]:
    """All files of the package, as they must be named in the wheel."""
    files = (path for path in (source_root / "openclaw").rglob("*") if path.is_file())
    return {path.relative_to(source_root).as_posix() for path in files if "__pycache__" not in path.parts}


def compare_contents(expected: Iterable[str], names: Iterable[str]) -> list[str]:
    """What is missing in the wheel, and what does not belong there; the metadata folder is allowed."""
    wanted, there = set(expected), set(names)
    metadata = {name for name in there if name.split("/")[0].endswith(".dist-info")}
    problems = [f"not in the wheel: {name}" for name in sorted(wanted - there)]
    problems += [f"does not belong into the wheel: {name}" for name in sorted(there - wanted - metadata)]
    if not any(name.endswith("LICENSE") for name in metadata):
        problems.append("not in the wheel: LICENSE")
    return problems


def _run(command: Sequence[object], folder: Path, environment: dict[str, str]) -> str:
    finished = subprocess.run(
        [str(word) for word in command],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    if finished.returncode != 0:
        shown = " ".join(str(word) for word in command)
        raise Failed(f"{shown}\nended with {finished.returncode}\n{finished.stdout}{finished.stderr}")
    return finished.stdout


def _find_uv() -> str:
    own = ROOT / ".uv" / "bin" / "uv"
    found = str(own) if own.exists() else shutil.which("uv")
    if not found:
        raise Failed("uv is not there; run scripts/setup")
    return found


def build_and_install(work: Path, environment: dict[str, str]) -> tuple[Path, Path]:
    """Returns the wheel and the folder of the clean environment's commands."""
    uv, python = _find_uv(), sys.executable
    _run([uv, "build", "--quiet", "--wheel", "--python", python, "-o", work, ROOT], work, environment)
    (wheel,) = work.glob("openclaw-*.whl")
    export = [uv, "export", "-q", "--frozen", "--no-default-groups", "--no-emit-project", "--no-hashes"]
    locked = work / "locked.txt"
    locked.write_text(_run([*export, "--project", ROOT], work, environment), encoding="utf-8")
    _run([uv, "venv", "--quiet", "--python", python, work / "clean"], work, environment)
    commands = work / "clean" / "bin"
    install = [uv, "pip", "install", "--quiet", "--constraint", locked, "--python", commands / "python"]
    _run([*install, wheel], work, environment)
    return wheel, commands


def try_commands(commands: Path, work: Path, environment: dict[str, str]) -> list[str]:
    """Uses the installed package from a folder of its own. Returns what it printed, a line per command."""
    shown = [
        _run([commands / "python", "-c", "import openclaw; print(openclaw.__version__)"], work, environment)
    ]
    shown.append(_run([commands / "openclaw", "--version"], work, environment))
    if shown[0].strip() not in shown[1]:
        raise Failed(f"openclaw --version says {shown[1].strip()}, the package says {shown[0].strip()}")
    if "config" in _run([commands / "openclaw", "--help"], work, environment):
        (work / "openclaw.json").write_text("{}", encoding="utf-8")
        shown.append(_run([commands / "openclaw", "config", "validate"], work, environment))
    return [line.strip() for line in shown]


def main() -> int:
    with tempfile.TemporaryDirectory(prefix="openclaw-wheel-") as name:
        work = Path(name)
        private = ("OPENCLAW_", "PYTHON", "VIRTUAL_ENV")
        environment = {key: value for key, value in os.environ.items() if not key.startswith(private)}
        environment |= {
            "UV_PYTHON_DOWNLOADS": "never",
            "OPENCLAW_STATE_DIR": str(work / "state"),
            "OPENCLAW_CONFIG_PATH": str(work / "openclaw.json"),
        }
        try:
            wheel, commands = build_and_install(work, environment)
            with zipfile.ZipFile(wheel) as archive:
                problems = compare_contents(list_package_files(ROOT / "src"), archive.namelist())
            lines = [
                f"{wheel.name}: {wheel.stat().st_size // 1024} KiB",
                *try_commands(commands, work, environment),
            ]
        except Failed as failure:
            problems, lines = [str(failure)], []
    print("\n".join(problems or lines))
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
