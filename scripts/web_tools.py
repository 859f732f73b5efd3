"""Finds, and gets where it can, what the tests of the page need: Chromium, and axe-core as the judge.

    python -m scripts.web_tools     get what is missing; exit code 1 when something still is

Started by `scripts/test` and `scripts/test-web`. Chromium comes from the machine's packages (root on Debian),
axe-core from the npm registry into .interop/axe/. Every download is bounded in time, and nothing here fails a
run: what is missing is said aloud with the way out, and whoever needs it looks whether it is there.
"""

from __future__ import annotations

import base64
import hashlib
import io
import os
import shutil
import subprocess
import sys
import tarfile
import time
import urllib.request
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PROGRAMS = ("chromium", "chromium-browser", "google-chrome")
AXE = ROOT / ".interop" / "axe" / "axe-4.10.3.min.js"
AXE_PATH = "axe-core/-/axe-core-4.10.3.tgz"
AXE_SHA512 = "Xm7bpRXnDSX2YE2YFfBk2FnF0ep6tmG7xPh8iHee8MIcrgq762Nkce856dYtJYLkuIoYZvGfTs/PbZhideTcEg=="
REGISTRY = "https://registry.npmjs.org/"
MOST_BYTES = 20_000_000
FETCH_S = 60.0
INSTALL_S = 180.0
ANSWER_S = 60.0
# A machine without a way to the packages shall notice soon.
APT_OPTIONS = (
    "-o",
    "Acquire::http::Timeout=15",
    "-o",
    "Acquire::https::Timeout=15",
    "-o",
    "Acquire::Retries=0",
)


def find_chromium() -> str | None:
    """A browser that starts. The name alone says little: some systems have a program that only explains."""
    for name in PROGRAMS:
        program = shutil.which(name)
        if program is not None and _succeeds([program, "--version"], ANSWER_S):
            return program
    return None


def install_chromium(seconds: float = INSTALL_S) -> None:
    """From Debian's packages, as root. Only the download is bounded: an installation is never cut in two."""
    if os.geteuid() != 0 or shutil.which("apt-get") is None:
        return
    _say("installing Chromium ...")
    deadline = time.monotonic() + seconds
    package = ["install", "-y", "-q", "--no-install-recommends", "chromium"]

    def apt(*words: str) -> bool:
        return _succeeds(["apt-get", *APT_OPTIONS, *words], deadline - time.monotonic())

    # At first the lists of packages may be missing or old.
    if apt(*package, "--download-only") or (apt("update", "-q") and apt(*package, "--download-only")):
        _succeeds(["apt-get", *package], None)


def fetch_axe(target: Path, registry: str, seconds: float = FETCH_S) -> None:
    """Write the script to `target`. Raises OSError when it does not come, or is not the one that we know."""
    deadline = time.monotonic() + seconds
    archive = io.BytesIO()
    with urllib.request.urlopen(registry.rstrip("/") + "/" + AXE_PATH, timeout=min(seconds, 20)) as answer:
        while chunk := answer.read(1 << 16):
            archive.write(chunk)
            if archive.tell() > MOST_BYTES or time.monotonic() > deadline:
                raise OSError("the download is too large or too slow")
    if base64.b64encode(hashlib.sha512(archive.getvalue()).digest()).decode() != AXE_SHA512:
        raise OSError("the archive is not the one that is expected")
    archive.seek(0)
    with tarfile.open(fileobj=archive) as files:
        script = files.extractfile("package/axe.min.js")
        text = b"" if script is None else script.read()
    target.parent.mkdir(parents=True, exist_ok=True)
    half = target.with_suffix(".part")
    half.write_bytes(text)
    half.replace(target)


def _succeeds(command: Sequence[str], seconds: float | None) -> bool:
    """Whether it ended well in time; a time that is over already is none."""
    if seconds is not None and seconds <= 0:
        return False
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    try:
        done = subprocess.run(
            command,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            timeout=seconds,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return False
    return done.returncode == 0


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def main(axe: Path = AXE) -> int:
    chromium = find_chromium()
    if chromium is None:
        install_chromium()
        chromium = find_chromium()
    if chromium is None:
        _say("CHROMIUM IS MISSING: the page cannot be tried in a browser (Debian: apt install chromium).")
    if not axe.exists():
        registry = os.environ.get("NPM_CONFIG_REGISTRY") or REGISTRY
        _say(f"fetching axe-core from {registry} ...")
        try:
            fetch_axe(axe, registry)
        except OSError as error:
            _say(
                f"AXE-CORE IS MISSING, its rules are not tried: {error} (NPM_CONFIG_REGISTRY=URL: a mirror)."
            )
    return 0 if chromium is not None and axe.exists() else 1


if __name__ == "__main__":
    sys.exit(main())
