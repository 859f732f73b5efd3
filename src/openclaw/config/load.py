"""Find, read and validate the config file (CFG-1, CFG-2, CFG-3).

The environment is an argument, so that a test, a service and a shell see the same
rules. A missing file is a good configuration: every setting has a default.
"""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Mapping
from pathlib import Path

from msgspec import Struct

from openclaw.config.json5 import Json5Error, parse
from openclaw.config.problems import Problem
from openclaw.config.schema import Config
from openclaw.config.validate import Validated, validate
from openclaw.errors import ConfigInvalid

MAX_FILE_BYTES = 4 * 1024 * 1024
TOO_LARGE = f"larger than {MAX_FILE_BYTES // 1024**2} MiB; this is not a config file"
CONFIG_NAME = "openclaw.json"


class LoadedConfig(Struct, frozen=True):
    """A config file as it was read. Run on `config` only when `problems` is empty.

    `hash` is the SHA-256 of the bytes, empty for a missing file; `references` and
    `referenced_secrets` are explained in `validate.Validated`.
    """

    config: Config
    problems: tuple[Problem, ...]
    warnings: tuple[Problem, ...]
    raw_text: str
    hash: str
    path: Path
    exists: bool
    references: dict[str, str] = {}
    referenced_secrets: frozenset[str] = frozenset()


# -- places ------------------------------------------------------------------------------------


def expand_path(text: str, env: Mapping[str, str]) -> Path:
    """An absolute path; a leading `~` is the home directory that the environment names."""
    if text == "~" or text.startswith(("~/", "~\\")):
        home = env.get("HOME") or env.get("USERPROFILE") or str(Path.home())
        return Path(home, text[2:]).absolute()
    return Path(text).absolute()


def state_dir(env: Mapping[str, str]) -> Path:
    """`OPENCLAW_STATE_DIR`, else `~/.openclaw`."""
    return expand_path(env.get("OPENCLAW_STATE_DIR", "").strip() or "~/.openclaw", env)


def config_path(env: Mapping[str, str]) -> Path:
    """`OPENCLAW_CONFIG_PATH`, else `openclaw.json` in the state directory."""
    explicit = env.get("OPENCLAW_CONFIG_PATH", "").strip()
    return expand_path(explicit, env) if explicit else state_dir(env) / CONFIG_NAME


def session_store_path(config: Config, agent_id: str, env: Mapping[str, str]) -> Path:
    """Where `session.store` puts an agent's legacy store, exports and archives (CFG-2, DB-5)."""
    template = config.session.store
    if template is None:
        return state_dir(env) / "agents" / agent_id / "sessions" / "sessions.json"
    return expand_path(template.replace("{agentId}", agent_id), env)


# -- reading -----------------------------------------------------------------------------------


def load(path: Path, env: Mapping[str, str]) -> LoadedConfig:
    """Read and validate a file. Every failure, also of reading, is a problem of the result."""
    try:
        raw = read_file(path)
    except FileNotFoundError:
        return LoadedConfig(Config(), (), (), "", "", path, exists=False)
    except Unreadable as refusal:
        return _refused(path, Problem(str(path), 0, "", str(refusal)))
    try:
        text = raw.decode("utf-8")
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        problem = Problem(str(path), line, "", "not valid UTF-8; save the file as UTF-8")
        return _refused(path, problem, digest(raw))
    checked = check_text(text, env, str(path))
    return LoadedConfig(
        config=checked.config,
        problems=checked.problems,
        warnings=checked.warnings,
        raw_text=text,
        hash=digest(raw),
        path=path,
        exists=True,
        references=checked.references,
        referenced_secrets=checked.referenced_secrets,
    )


def load_or_raise(path: Path, env: Mapping[str, str]) -> LoadedConfig:
    """Like `load`, but an invalid file raises ConfigInvalid with all its problems."""
    loaded = load(path, env)
    if loaded.problems:
        raise config_invalid(loaded.problems)
    return loaded


def config_invalid(problems: tuple[Problem, ...], **fields: object) -> ConfigInvalid:
    """The error that carries these problems: one line each, and as `fields["problems"]`."""
    return ConfigInvalid("\n".join(str(problem) for problem in problems), problems=problems, **fields)


def check_text(text: str, env: Mapping[str, str], name: str) -> Validated:
    """Parse and validate a text. A text that is not JSON5 has exactly that one problem."""
    try:
        document = parse(text, name)
    except Json5Error as error:
        reason = f"column {error.position.column}: {error.shown}"
        return Validated(Config(), problems=(Problem(name, error.position.line, "", reason),))
    return validate(document, env)


def digest(raw: bytes) -> str:
    return hashlib.sha256(raw).hexdigest()


class Unreadable(Exception):
    """A file that cannot or will not be read, with the reason."""


def read_file(path: Path) -> bytes:
    """All bytes of a regular file; a pipe or a device is not even waited for.

    Raises FileNotFoundError, or Unreadable with the reason.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0))
        try:
            if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                raise Unreadable("not a file; point OPENCLAW_CONFIG_PATH at one")
            with os.fdopen(descriptor, "rb", closefd=False) as file:
                raw = file.read(MAX_FILE_BYTES + 1)
        finally:
            os.close(descriptor)
    except FileNotFoundError:
        raise
    except PermissionError:
        raise Unreadable("may not be read by this user; check its owner and mode") from None
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or type(error).__name__
        raise Unreadable(f"cannot be read ({reason})") from None
    if len(raw) > MAX_FILE_BYTES:
        raise Unreadable(TOO_LARGE)
    return raw


def _refused(path: Path, problem: Problem, file_hash: str = "") -> LoadedConfig:
    return LoadedConfig(Config(), (problem,), (), "", file_hash, path, exists=True)
