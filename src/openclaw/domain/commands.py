"""What a message asks for: nothing, a command, or a command inside other words (SPEC §22).

Reading is pure and takes time linear in the message: nothing here looks at a session
or changes one. Who may give a command is a fact about the caller (CMD-13). `/new` and
`/reset` are read by `resets` (LIFE-13), but `/reset soft` is read here.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Mapping, Sequence

from msgspec import Struct

from openclaw.domain.commandtable import BY_WORD
from openclaw.domain.directives import Asked, DirectiveReading, ModelWord, read_directives
from openclaw.domain.resets import without_header

_TRIGGERS = frozenset(("new", "reset"))


# -- reading -----------------------------------------------------------------------------------


class CommandCaller(Struct, frozen=True, kw_only=True):
    """Who wrote a message, as far as commands are concerned (CMD-13).

    `authorised`: on the channel's allowlist, paired, or named in `commands.allowFrom`.
    `owner`: named in `commands.ownerAllowFrom`, declared by the connector, or an operator
    with admin scope. An owner is authorised whatever the other field says.
    """

    authorised: bool = False
    owner: bool = False
    in_group: bool = False
    sender: str | None = None
    channel: str | None = None

    @property
    def may_command(self) -> bool:
        return self.authorised or self.owner


OPERATOR = CommandCaller(authorised=True, owner=True, sender="operator")


class PlainText(Struct, frozen=True, tag="plain"):
    """An ordinary message, exactly as it was written."""


class Unheard(Struct, frozen=True, tag="unheard"):
    """A command-only message from somebody who may not give it: no answer, no turn (CMD-13)."""


class CommandOnly(Struct, frozen=True, tag="command"):
    """The whole message is this: one command, or several directives that shall last."""

    asked: tuple[Asked, ...]


class WithText(Struct, frozen=True, tag="with-text"):
    """A message with commands inside: shortcuts to answer, directives for this message, and the rest."""

    shortcuts: tuple[str, ...]
    directives: tuple[Asked, ...]
    rest: str


Reading = PlainText | Unheard | CommandOnly | WithText

_HEAD = re.compile(r"/([A-Za-z][A-Za-z0-9_-]{0,31})(?:@([\w.-]{1,64}))?(?:[ \t]{0,4}:|(?=\s)|\Z)")
_MOST_PREFIXES = 4
_LONGEST_HEADER = 200


def read_message(
    text: str,
    caller: CommandCaller,
    *,
    mention_names: Sequence[str] = (),
    model_word: ModelWord = lambda _word: False,
) -> Reading:
    """What a message asks for. Takes time linear in its length.

    `mention_names` are the names by which the agent is addressed; a command that names
    somebody else (`/stop@other`) is text. `model_word` says whether a word names a model.
    """
    names = frozenset(_folded(name) for name in mention_names if name.strip())
    body = _unaddressed(text.strip(), names)
    only = _read_only(body, names, model_word)
    if only is not None:
        return _permitted(only, caller)
    if not caller.may_command:
        return PlainText()
    # The rest goes on as it was written, header and mention included.
    found = read_directives(text, names=names, known=_inside(caller), model_word=model_word)
    return _with_text(found)


def _inside(caller: CommandCaller) -> Callable[[str], str | None]:
    """Which words count inside a longer message of this caller."""

    def known(word: str) -> str | None:
        command = BY_WORD.get(word)
        if command is None or not (command.inline or command.directive):
            return None
        return None if command.owner_only and not caller.owner else command.name

    return known


def _with_text(found: DirectiveReading) -> Reading:
    if not found.asked:
        return PlainText()
    shortcuts = dict.fromkeys(one.name for one in found.asked if BY_WORD[one.name].inline)
    directives = tuple(one for one in found.asked if BY_WORD[one.name].directive)
    if not found.rest:
        return CommandOnly(found.asked)
    return WithText(tuple(shortcuts), directives, found.rest)


def _permitted(only: CommandOnly, caller: CommandCaller) -> Reading:
    if not caller.may_command:
        # A bare word such as "wait" is something that anybody may say.
        return PlainText() if only.asked[0].bare else Unheard()
    forbidden = any(BY_WORD[one.name].owner_only for one in only.asked) and not caller.owner
    return Unheard() if forbidden else only


def _read_only(body: str, names: frozenset[str], model_word: ModelWord) -> CommandOnly | None:
    """The command that is the whole message, if it is one."""
    if is_stop_word(body):
        return CommandOnly((Asked("stop", "", True),))
    head = _HEAD.match(body)
    command = None if head is None else BY_WORD.get(head[1].lower())
    if head is None or command is None or not _addressed(head[2], names):
        return None
    args = body[head.end() :].strip()
    words = len(args.split(maxsplit=2))
    if command.name in _TRIGGERS:
        is_soft = command.name == "reset" and args[:5].lower().rstrip() == "soft"
        return CommandOnly((Asked("reset", args),)) if is_soft else None
    if command.directive:
        found = read_directives(body, names=names, known=_directive_name, model_word=model_word)
        if found.asked and not found.rest:
            return CommandOnly(found.asked)
        return CommandOnly((Asked(command.name, args),)) if words <= 1 else None
    if command.most_words is not None and words > command.most_words:
        return None
    return CommandOnly((Asked(command.name, args),))


def _directive_name(word: str) -> str | None:
    command = BY_WORD.get(word)
    return command.name if command is not None and command.directive else None


def _addressed(suffix: str | None, names: frozenset[str]) -> bool:
    return suffix is None or _folded(suffix) in names


def _unaddressed(text: str, names: frozenset[str]) -> str:
    """The message without a bracketed header and without the mention that it opens with."""
    for _ in range(_MOST_PREFIXES):
        shorter = _without_mention(without_header(text), names)
        if shorter == text:
            break
        text = shorter
    return text


_MENTION = re.compile(r"(?:<@!?([\w.-]{1,64})>|@([\w.-]{1,64}))[ \t]*[:,]?\s*")


def _without_mention(text: str, names: frozenset[str]) -> str:
    mention = _MENTION.match(text[:_LONGEST_HEADER])
    if mention is None or _folded(mention[1] or mention[2]) not in names:
        return text
    return text[mention.end() :].lstrip()


def _folded(name: str) -> str:
    return name.strip().removeprefix("@").casefold()


# -- stopping by a word ------------------------------------------------------------------------

_STOP_WORDS_IN: Mapping[str, str] = {
    "English": "stop abort esc exit wait interrupt",
    "German": "stopp anhalten abbrechen warte",
    "French": "arrête arrete arrêtez attends",
    "Spanish": "alto detente detén deten para espera",
    "Portuguese": "pare parar espere",
    "Italian": "ferma fermati basta aspetta",
    "Dutch": "wacht",
    "Russian": "стоп остановись останови хватит подожди",
    "Ukrainian": "зупинись зачекай",
    "Polish": "zatrzymaj czekaj",
    "Turkish": "dur bekle",
    "Chinese": "停止 停 停下 等等",
    "Japanese": "中止 止めて やめて 待って ストップ",
    "Korean": "멈춰 중지 그만 잠깐",
    "Hindi": "रुको रुकिए",
    "Arabic": "توقف قف انتظر",
    "Hebrew": "עצור חכה",
}
STOP_WORDS = frozenset(
    unicodedata.normalize("NFKC", word).casefold()
    for words in _STOP_WORDS_IN.values()
    for word in words.split()
)
_LONGEST_STOP = 40


def is_stop_word(text: str) -> bool:
    """Whether a message is nothing but a word that means stop; punctuation behind it is ignored (CMD-6)."""
    if len(text) > _LONGEST_STOP:
        return False
    word = unicodedata.normalize("NFKC", text).strip().casefold()
    while word and (unicodedata.category(word[-1]).startswith("P") or word[-1].isspace()):
        word = word[:-1]
    return word in STOP_WORDS
