"""Walk a parsed document against the typed schema and collect every mistake at once (CFG-3).

The types are the only source: fields, ranges and words come from the section structs
and the `extra` of their value kinds. What the walk accepts always converts to `Config`.
Rules that look at two places at once are in `checks`.
"""

from __future__ import annotations

import difflib
import functools
import re
from collections.abc import Mapping
from typing import Any, TypeAlias

import msgspec
from msgspec import Struct, inspect

from openclaw.config import checks
from openclaw.config.foreign import foreign_reason, is_foreign
from openclaw.config.kinds import (
    accepts,
    describe,
    fields_of,
    found,
    is_secret,
    options_of,
    read_number,
    read_text,
    unwrap,
)
from openclaw.config.nodes import Array, Document, Member, Node, Object, Path, Scalar, format_path, member_of
from openclaw.config.problems import Problem, Report
from openclaw.config.references import expand, secret_values
from openclaw.config.schema import Config
from openclaw.config.values import REDACTED, OpenSection

MAX_SUGGESTIONS = 100
_SURROGATES = re.compile("[\ud800-\udfff]")
_Fields: TypeAlias = Mapping[str, inspect.Field]


class Validated(Struct, frozen=True):
    """The outcome. `config` holds what could be understood; with problems it must not be run on.

    `references` maps the path of each value that came from `${NAME}` to its text in the
    file; `referenced_secrets` are the values behind those names (TRX-11).
    """

    config: Config
    problems: tuple[Problem, ...] = ()
    warnings: tuple[Problem, ...] = ()
    references: dict[str, str] = {}
    referenced_secrets: frozenset[str] = frozenset()


def validate(document: Document, env: Mapping[str, str]) -> Validated:
    """Check a document and type it. Never raises for anything that stands in the document."""
    walk = _Walk(document, env)
    config = walk.config()
    if config is not None:
        checks.check_all(config, walk.report)
    return Validated(
        config=config or Config(),
        problems=walk.report.problems(),
        warnings=walk.report.warnings(),
        references=walk.references,
        referenced_secrets=secret_values(tuple(walk.names), env),
    )


class _Skipped:
    """Stands for a value that was refused: its parent goes on without it."""


_SKIPPED = _Skipped()
_UNREADABLE = _Skipped()


@functools.cache
def _settable(cls: type[Struct]) -> _Fields:
    """The fields of a section by the names that a file uses."""
    hidden = ("extra",) if issubclass(cls, OpenSection) else ()
    return {field.encode_name: field for field in fields_of(cls) if field.name not in hidden}


class _Walk:
    def __init__(self, document: Document, env: Mapping[str, str]) -> None:
        self.document = document
        self.env = env
        self.report = Report(document)
        self.references: dict[str, str] = {}
        self.names: dict[str, None] = {}
        self.suggestions = 0

    def config(self) -> Config | None:
        root = self.document.root
        if not isinstance(root, Object):
            self.report.problem((), f"expected an object at the top of the file, found {found(root)}")
            return None
        return msgspec.convert(self.struct(root, Config, ()), Config)

    def value(self, node: Node, kind: inspect.Type, path: Path) -> Any:
        """The plain value of a node as its type wants it, or `_SKIPPED` after reporting why not."""
        fitting = next((option for option in options_of(kind) if accepts(option, node)), None)
        if fitting is None:
            return self.refuse(node, path, kind)
        wanted, (kind, extra) = kind, unwrap(fitting)
        if isinstance(node, Object):
            if isinstance(kind, inspect.StructType):
                return self.struct(node, kind.cls, path)
            return self.mapping(node, kind.value_type if isinstance(kind, inspect.DictType) else None, path)
        if isinstance(node, Array):
            return self.items(node, kind.item_type if isinstance(kind, inspect.VarTupleType) else None, path)
        value = self.scalar(node, kind, extra, path)
        return self.refuse(node, path, wanted) if value is _UNREADABLE else value

    def refuse(self, node: Node, path: Path, wanted: inspect.Type) -> _Skipped:
        expected = describe(wanted)
        seen = found(node, secret=is_secret(wanted))
        hint = ""
        if member_of(node, "source") is not None and "string" in expected:
            hint = ' (to take a value from the environment, write "${NAME}")'
        self.report.problem(path, f"expected {expected}, found {seen}{hint}", at=node.start)
        return _SKIPPED

    # -- objects and lists -------------------------------------------------------------------

    def struct(self, node: Object, section: type[Struct], path: Path) -> Any:
        fields = _settable(section)
        aliases: Mapping[str, str] = getattr(section, "key_aliases", {})
        tree: dict[str, Any] = {}
        extra: dict[str, Any] = {}
        for member in node.members:
            here = (*path, member.key)
            field = fields.get(aliases.get(member.key, member.key))
            if field is None:
                if issubclass(section, OpenSection) and member.key != "$include":
                    _keep(extra, member.key, self.anything(member.value, here))
                else:
                    self.unknown(member, path, fields)
            elif field.encode_name != member.key and member_of(node, field.encode_name):
                reason = f'an older name of "{field.encode_name}", which is set too; keep one of the two'
                self.report.problem(here, reason, at=member.key_start)
            else:
                _keep(tree, field.encode_name, self.value(member.value, field.type, here))
        if extra:
            tree["extra"] = extra
        required = [name for name, field in fields.items() if field.required]
        for name in required:
            if member_of(node, name) is None:
                self.report.problem((*path, name), "required, but missing", at=node.start)
        return tree if all(name in tree for name in required) else _SKIPPED

    def unknown(self, member: Member, parent: Path, fields: _Fields) -> None:
        here = (*parent, member.key)
        if member.key == "$schema" and not parent:
            if not (isinstance(member.value, Scalar) and isinstance(member.value.value, str)):
                self.refuse(member.value, here, inspect.StrType())
        elif member.key == "$include":
            self.report.problem(here, "not supported; write the settings into this file", at=member.key_start)
        elif is_foreign(parent, member.key):
            self.report.warning(here, foreign_reason(parent, member.key), at=member.key_start)
        else:
            reason = "unknown key" + self.suggestion(member.key, fields)
            self.report.problem(here, reason, at=member.key_start)

    def suggestion(self, key: str, fields: _Fields) -> str:
        self.suggestions += 1
        if self.suggestions > MAX_SUGGESTIONS or len(key) > 64:
            return ""
        by_folded = {name.lower(): name for name in fields}
        close = difflib.get_close_matches(key.lower(), by_folded, n=1, cutoff=0.6)
        return f'; did you mean "{by_folded[close[0]]}"?' if close else ""

    def mapping(self, node: Object, kind: inspect.Type | None, path: Path) -> dict[str, Any]:
        tree: dict[str, Any] = {}
        for member in node.members:
            here = (*path, member.key)
            if member.key == "$include" or is_foreign(path, member.key):
                self.unknown(member, path, {})
            elif not member.key.strip() or "\0" in member.key:
                self.report.problem(here, "a name must not be blank or hold NUL", at=member.key_start)
            elif kind is None:
                _keep(tree, member.key, self.anything(member.value, here))
            else:
                _keep(tree, member.key, self.value(member.value, kind, here))
        return tree

    def items(self, node: Array, kind: inspect.Type | None, path: Path) -> list[Any]:
        kept: dict[int, Any] = {}
        for index, item in enumerate(node.items):
            here = (*path, index)
            _keep(kept, index, self.anything(item, here) if kind is None else self.value(item, kind, here))
        if len(kept) < len(node.items):
            self.report.renumber(path, tuple(kept))
        return list(kept.values())

    def anything(self, node: Node, path: Path) -> Any:
        """A value that someone else understands: kept as it is, references resolved."""
        if isinstance(node, Object):
            return self.mapping(node, None, path)
        if isinstance(node, Array):
            return self.items(node, None, path)
        if isinstance(node.value, str):
            return self.text(node, path)
        return node.value

    # -- scalars -----------------------------------------------------------------------------

    def scalar(self, node: Scalar, kind: inspect.Type, extra: Mapping[str, Any], path: Path) -> Any:
        value: Any = self.text(node, path) if isinstance(node.value, str) else node.value
        if value is _SKIPPED:
            return _SKIPPED
        if isinstance(kind, inspect.IntType | inspect.FloatType):
            value = read_number(value, kind, extra)
        elif isinstance(kind, inspect.StrType | inspect.LiteralType):
            value = read_text(value, kind, extra)
        else:
            return value
        return _UNREADABLE if value is None else value

    def text(self, node: Scalar, path: Path) -> Any:
        """A string with its references resolved."""
        assert isinstance(node.value, str)
        if node.value == REDACTED:
            reason = "this placeholder only hides a value when it is shown; write the value itself"
            self.report.problem(path, reason, at=node.start)
            return _SKIPPED
        expansion = expand(node.value, self.env)
        unsafe = _unsafe(expansion.text)
        if unsafe:
            self.report.problem(path, f"the text holds {unsafe}; remove it", at=node.start)
            return _SKIPPED
        for name in expansion.missing:
            reason = f"the environment variable {name} is not set (write $${{{name}}} for the text itself)"
            self.report.problem(path, reason, at=node.start)
        if expansion.missing:
            return _SKIPPED
        if expansion.names:
            self.references[format_path(path)] = node.value
            self.names.update(dict.fromkeys(expansion.names))
        return expansion.text


def _unsafe(text: str) -> str | None:
    """What no setting may hold. Half characters come from an environment that is not UTF-8."""
    if "\0" in text:
        return "a NUL character"
    return None if text.isascii() or not _SURROGATES.search(text) else "half of a surrogate pair"


def _keep(tree: dict[Any, Any], key: str | int, value: Any) -> None:
    if value is not _SKIPPED:
        tree[key] = value
