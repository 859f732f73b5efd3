"""Changing a session entry by request: `sessions.patch` as a pure function (RPC-7, ENT-7, ENT-8).

The table below is the whole list of what can be patched, and with which scope.
Whether a label is already in use, whether a model exists and who is asking are
questions for the layers that hold those facts.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping
from typing import Literal

import msgspec
from msgspec import Struct

from openclaw.domain.entry import (
    ControlScope,
    ElevatedLevel,
    GroupActivation,
    ReasoningLevel,
    ResponseUsage,
    SendAction,
    SessionEntry,
    SubagentRole,
    literal_values,
)
from openclaw.errors import InvalidRequest, LineageImmutable

PatchScope = Literal["write", "admin"]
# word: one of `words`. flag: true or false. text: a trimmed line. count: an integer from 0.
# moment: true stamps the time, false clears it. model: "provider/model".
PatchKind = Literal["word", "flag", "text", "count", "moment", "model"]


class PatchField(Struct, frozen=True, kw_only=True):
    """One patchable field: its name on the wire, where it is kept, and who may set it."""

    name: str
    attribute: str
    scope: PatchScope
    kind: PatchKind
    words: tuple[str, ...] = ()
    longest: int = 512
    # Set once, on sub-agent sessions only (ENT-8).
    lineage: bool = False


def _word(name: str, attribute: str, scope: PatchScope, words: tuple[str, ...]) -> PatchField:
    return PatchField(name=name, attribute=attribute, scope=scope, kind="word", words=words)


def _lineage(name: str, attribute: str, kind: PatchKind, words: tuple[str, ...] = ()) -> PatchField:
    return PatchField(
        name=name, attribute=attribute, scope="admin", kind=kind, words=words, longest=4096, lineage=True
    )


THINKING_LEVELS = ("off", "minimal", "low", "medium", "high", "xhigh", "adaptive", "max")

_FIELDS = (
    PatchField(name="label", attribute="label", scope="write", kind="text"),
    PatchField(name="archived", attribute="archived_at", scope="write", kind="moment"),
    PatchField(name="pinned", attribute="pinned_at", scope="write", kind="moment"),
    PatchField(name="model", attribute="model_override", scope="write", kind="model"),
    _word("thinkingLevel", "thinking_level", "write", THINKING_LEVELS),
    PatchField(name="fastMode", attribute="fast_mode", scope="write", kind="flag"),
    _word("verboseLevel", "verbose_level", "admin", ("on", "off", "full")),
    _word("traceLevel", "trace_level", "admin", ("on", "off", "raw")),
    _word("reasoningLevel", "reasoning_level", "admin", literal_values(ReasoningLevel)),
    _word("responseUsage", "response_usage", "admin", literal_values(ResponseUsage)),
    _word("elevatedLevel", "elevated_level", "admin", literal_values(ElevatedLevel)),
    _word("execHost", "exec_host", "admin", ("sandbox", "gateway", "node")),
    _word("execSecurity", "exec_security", "admin", ("deny", "allowlist", "full")),
    _word("execAsk", "exec_ask", "admin", ("off", "on-miss", "always")),
    PatchField(name="execNode", attribute="exec_node", scope="admin", kind="text"),
    _word("sendPolicy", "send_policy", "admin", literal_values(SendAction)),
    _word("groupActivation", "group_activation", "admin", literal_values(GroupActivation)),
    _lineage("spawnedBy", "spawned_by", "text"),
    _lineage("spawnedWorkspaceDir", "spawned_workspace_dir", "text"),
    _lineage("spawnDepth", "spawn_depth", "count"),
    _lineage("subagentRole", "subagent_role", "word", literal_values(SubagentRole)),
    _lineage("subagentControlScope", "subagent_control_scope", "word", literal_values(ControlScope)),
)

PATCH_FIELDS: Mapping[str, PatchField] = {field.name: field for field in _FIELDS}

# An older spelling that clients still send.
_WORD_ALIASES = {("responseUsage", "on"): "tokens"}


def required_scope(patch: Mapping[str, object]) -> PatchScope:
    """The least scope that may send this patch; a field that is not in the table needs the highest."""
    scopes = {PATCH_FIELDS[name].scope if name in PATCH_FIELDS else "admin" for name in patch}
    return "admin" if "admin" in scopes else "write"


def apply_patch(
    entry: SessionEntry, patch: Mapping[str, object], *, is_subagent: bool, now_ms: int
) -> SessionEntry:
    """The entry with the patch applied; all of it or an error and none of it.

    `null` clears a field. `is_subagent` comes from the stored row. The caller
    has taken `key` and the `expected…` guards out of the patch. `updated_at`
    moves only when something changed.
    """
    changes: dict[str, object] = {}
    for name, value in patch.items():
        field = PATCH_FIELDS.get(name)
        if field is None:
            known = ", ".join(PATCH_FIELDS)
            raise _invalid("root", f"unexpected property {name[:60]!a}; known: {known}")
        read = None if value is None else _read(field, value)
        if field.lineage:
            _check_lineage(entry, field, read, is_subagent)
        changes |= _changes(entry, field, read, now_ms)
    changed = msgspec.structs.replace(entry, **changes)
    if changed == entry:
        return entry
    return msgspec.structs.replace(changed, updated_at=max(entry.updated_at, now_ms))


def _changes(
    entry: SessionEntry, field: PatchField, read: str | int | bool | None, now_ms: int
) -> dict[str, object]:
    if field.kind == "moment":
        since_ms: int | None = getattr(entry, field.attribute)
        return {field.attribute: (since_ms if since_ms is not None else now_ms) if read else None}
    if field.kind == "model":
        return _model_changes(read)
    return {field.attribute: read}


def _model_changes(read: str | int | bool | None) -> dict[str, object]:
    if read is None:
        return {"provider_override": None, "model_override": None, "model_override_source": None}
    provider, slash, model = str(read).partition("/")
    return {
        "provider_override": provider.strip() if slash else None,
        "model_override": (model if slash else provider).strip(),
        "model_override_source": "user",
    }


def _check_lineage(
    entry: SessionEntry, field: PatchField, read: str | int | bool | None, is_subagent: bool
) -> None:
    current = getattr(entry, field.attribute)
    if read == current:
        return
    if current is not None:
        raise LineageImmutable(f"{field.name} is already set and cannot be changed or cleared.")
    if not is_subagent:
        raise LineageImmutable(f"{field.name} can be set on sub-agent sessions only.")


def _read(field: PatchField, value: object) -> str | int | bool:
    if field.kind == "word":
        return _read_word(field, value)
    if field.kind in ("flag", "moment"):
        if isinstance(value, bool):
            return value
        raise _invalid(f"/{field.name}", "must be true, false or null")
    if field.kind == "count":
        if isinstance(value, int) and not isinstance(value, bool) and value >= 0:
            return value
        raise _invalid(f"/{field.name}", "must be an integer from 0, or null")
    text = _read_text(field, value)
    if field.kind == "model" and (text.startswith("/") or text.endswith("/")):
        raise _invalid(f"/{field.name}", 'must be "provider/model" or a model name')
    return text


def _read_word(field: PatchField, value: object) -> str:
    if isinstance(value, str):
        word = value.strip().lower()
        word = _WORD_ALIASES.get((field.name, word), word)
        if word in field.words:
            return word
    choices = ", ".join(f'"{word}"' for word in field.words)
    raise _invalid(f"/{field.name}", f"must be one of {choices}, or null to clear it")


def _read_text(field: PatchField, value: object) -> str:
    if not isinstance(value, str):
        raise _invalid(f"/{field.name}", "must be text, or null to clear it")
    text = value.strip()
    if not text:
        raise _invalid(f"/{field.name}", "must not be blank; send null to clear it")
    if len(text) > field.longest:
        raise _invalid(f"/{field.name}", f"must be at most {field.longest} characters, not {len(text)}")
    if any(unicodedata.category(char) in ("Cc", "Cs") for char in text):
        raise _invalid(f"/{field.name}", "must not contain control characters or unpaired surrogates")
    return text


def _invalid(where: str, problem: str) -> InvalidRequest:
    return InvalidRequest(f"invalid sessions.patch params: at {where}: {problem}")
