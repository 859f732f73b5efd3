"""Replace the config file, safely: validated first, atomically, private, with a way back (CFG-6).

A candidate that does not validate is kept beside the file and never takes its place.
Texts are made by `edit`; this room only knows files.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import tempfile
import time
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from pathlib import Path

from msgspec import Struct

from openclaw.config.edit import set_value
from openclaw.config.json5 import Json5Error, parse
from openclaw.config.load import (
    MAX_FILE_BYTES,
    TOO_LARGE,
    LoadedConfig,
    Unreadable,
    check_text,
    config_invalid,
    digest,
    load,
    read_file,
)
from openclaw.config.nodes import Object, find, member_of
from openclaw.config.problems import Problem
from openclaw.errors import StoreReadOnly, VersionConflict

MAX_REJECTED_FILES = 5
TOKEN_BYTES = 32


class EnsuredToken(Struct, frozen=True):
    """The config after the first start; `generated` says whether the token is new."""

    loaded: LoadedConfig
    generated: bool


def write_config(
    path: Path,
    new_text: str,
    env: Mapping[str, str],
    *,
    expected_hash: str,
    clock: Callable[[], float] = time.time,
) -> LoadedConfig:
    """Put a new text in place of the file and return what it loads as.

    `expected_hash` is the hash of the text that the change was made from ("" for a
    missing file). Raises ConfigInvalid with all problems when the text does not
    validate (it is then kept as `<file>.rejected.<time>`), VersionConflict when the
    file changed in the meantime. The previous text stays as `<file>.bak`.
    """
    target = path.resolve()
    raw = _encode(new_text, path)
    checked = check_text(new_text, env, str(path))
    if checked.problems:
        kept = _keep_rejected(target, raw, clock)
        raise config_invalid(checked.problems, rejected=str(kept))
    _require_parent(target)
    previous = _current_bytes(target, path)
    if ("" if previous is None else digest(previous)) != expected_hash:
        raise VersionConflict(
            f"{path} changed since it was read; read it again and repeat the change", expected=expected_hash
        )
    if previous is not None:
        _replace_file(target.with_name(target.name + ".bak"), previous)
    _replace_file(target, raw)
    return LoadedConfig(
        config=checked.config,
        problems=(),
        warnings=checked.warnings,
        raw_text=new_text,
        hash=digest(raw),
        path=path,
        exists=True,
        references=checked.references,
        referenced_secrets=checked.referenced_secrets,
    )


def ensure_token(
    path: Path, env: Mapping[str, str], *, new_token: Callable[[int], str] = secrets.token_urlsafe
) -> EnsuredToken:
    """Make sure that the gateway has a credential: write a generated token if there is none.

    Creates the file (0600) and its directory (0700) when they are missing and keeps
    comments when they are not. Raises ConfigInvalid for a file with any other problem.
    """
    loaded = load(path, env)
    auth = loaded.config.gateway.auth
    if not loaded.problems and (auth.token or auth.password or auth.mode == "none"):
        return EnsuredToken(loaded, generated=False)
    # The missing token may itself be the problem, so it is the candidate that has to be valid.
    # A credential that stands in the file and cannot be used is its owner's to repair.
    if loaded.problems and not _has_room_for_token(loaded.raw_text):
        raise config_invalid(loaded.problems)
    candidate = set_value(loaded.raw_text, "gateway.auth.token", new_token(TOKEN_BYTES))
    problems = check_text(candidate, env, str(path)).problems
    if problems:
        # Told with the lines of the file that the person has, not of the candidate.
        raise config_invalid(loaded.problems or problems)
    try:
        written = write_config(path, candidate, env, expected_hash=loaded.hash)
    except OSError as error:
        raise StoreReadOnly(
            f"cannot write {path}: {error.strerror}. "
            "Make its directory writable, or set OPENCLAW_STATE_DIR to one that is.",
            path=str(path),
        ) from error
    return EnsuredToken(written, generated=True)


def _has_room_for_token(text: str) -> bool:
    try:
        root = parse(text).root
    except Json5Error:
        return False
    gateway = find(root, ("gateway",))
    auth = find(root, ("gateway", "auth"))
    sections = (root, gateway or root, auth or root)
    return all(isinstance(section, Object) for section in sections) and not (
        member_of(auth, "token") or member_of(auth, "password")
    )


# -- files ---------------------------------------------------------------------------------------


def _encode(text: str, path: Path) -> bytes:
    """The bytes of a text that could be read again."""
    try:
        raw = text.encode()
    except UnicodeEncodeError:
        reason = "the text holds half of a surrogate pair; write the character itself"
        raise config_invalid((Problem(str(path), 0, "", reason),)) from None
    if len(raw) > MAX_FILE_BYTES:
        raise config_invalid((Problem(str(path), 0, "", TOO_LARGE),))
    return raw


def _current_bytes(target: Path, path: Path) -> bytes | None:
    """What stands in the file now; None when it is missing."""
    try:
        return read_file(target)
    except FileNotFoundError:
        return None
    except Unreadable as refusal:
        raise config_invalid((Problem(str(path), 0, "", str(refusal)),)) from None


def _require_parent(target: Path) -> None:
    """The directory of the file; one that we have to create is private."""
    target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)


def _replace_file(target: Path, raw: bytes) -> None:
    """Write beside the target, flush to the disk, then rename over it: all or nothing."""
    descriptor, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.", suffix=".tmp")
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(raw)
            file.flush()
            os.fsync(descriptor)
        Path(name).replace(target)
    except BaseException:
        with contextlib.suppress(FileNotFoundError):
            Path(name).unlink()
        raise
    _sync_directory(target.parent)


def _sync_directory(directory: Path) -> None:
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _keep_rejected(target: Path, raw: bytes, clock: Callable[[], float]) -> Path:
    """Keep a refused text for its author to look at; only the newest few."""
    _require_parent(target)
    prefix = target.name + ".rejected."
    stamp = datetime.fromtimestamp(clock(), UTC).isoformat(timespec="milliseconds")
    kept = target.with_name(prefix + stamp.replace("+00:00", "Z").replace(":", "-"))
    _replace_file(kept, raw)
    older = sorted(file for file in target.parent.iterdir() if file.name.startswith(prefix))
    for file in older[:-MAX_REJECTED_FILES]:
        file.unlink(missing_ok=True)
    return kept
