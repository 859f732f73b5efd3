"""Masking of credentials in text (HIST-6, HIST-7, TRX-11).

Two strengths. `redact` is for views: it knows every pattern of HIST-7, field names
included. `mask_machine_text` is for machine-made text before it is stored: it masks
known secret values and formats that nothing else looks like, never by field name,
because a model that reads a wrong mask writes it back into a file (PITFALLS B4).

Each family first asks whether one of its trigger words occurs at all, so ordinary
text costs a few substring searches. All patterns are linear: names and separators
have bounded lengths, and a value that was matched is never scanned again. This room
finds and masks; it does not decide which text passes through it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from msgspec import Struct

MASK = "***"
KNOWN_SECRET_MIN_CHARS = 16
_SHOWN_FROM_CHARS = 18
_HEAD_CHARS, _TAIL_CHARS = 6, 4
_ELLIPSIS = "…"


class Redacted(Struct, frozen=True):
    """A text after masking and the number of places that were masked."""

    text: str
    count: int


class _Span(NamedTuple):
    start: int
    end: int
    is_pem_body: bool = False


def mask(value: str) -> str:
    """Under 18 characters `***`, else the first 6, an ellipsis and the last 4. A mask stays as it is."""
    if value == MASK or (len(value) == _HEAD_CHARS + 1 + _TAIL_CHARS and value[_HEAD_CHARS] == _ELLIPSIS):
        return value
    if len(value) < _SHOWN_FROM_CHARS:
        return MASK
    return f"{value[:_HEAD_CHARS]}{_ELLIPSIS}{value[-_TAIL_CHARS:]}"


def redact(text: str, known_secrets: frozenset[str] = frozenset()) -> Redacted:
    """Mask everything that HIST-7 names, and the known secret values. For views only."""
    spans = [
        *_known_spans(text, known_secrets),
        *_pem_spans(text),
        *_token_spans(text),
        *_bot_token_spans(text),
        *_field_spans(text),
    ]
    return _mask_spans(text, spans)


def mask_machine_text(text: str, known_secrets: frozenset[str] = frozenset()) -> Redacted:
    """Mask what is surely a secret in machine-made text before it is stored, and say so in it (TRX-11)."""
    spans = [
        *_known_spans(text, known_secrets),
        *_pem_spans(text),
        *(span for span in _token_spans(text) if _is_surely_token(text[span.start : span.end])),
        *(span for span in _bot_token_spans(text) if _SURE_BOT_TOKEN.fullmatch(text, *span[:2])),
    ]
    masked = _mask_spans(text, spans)
    if masked.count == 0:
        return masked
    noun = "secret" if masked.count == 1 else "secrets"
    note = f"\n[{masked.count} {noun} masked before this text was stored]"
    return Redacted(masked.text + note, masked.count)


def is_secret_name(name: str) -> bool:
    """Whether a field of this name holds a credential by HIST-7, for values in decoded JSON."""
    lowered = _lower(name)
    if lowered.endswith("key"):
        return _names_secret_key(name, lowered, len(name) - len("key"))
    return _SECRET_NAME.search(lowered) is not None


# -- known values ------------------------------------------------------------------------------


def _known_spans(text: str, known_secrets: Iterable[str]) -> Iterator[_Span]:
    for secret in known_secrets:
        if len(secret) < KNOWN_SECRET_MIN_CHARS:
            continue
        start = text.find(secret)
        while start >= 0:
            end = start + len(secret)
            yield _Span(start, end)
            start = text.find(secret, end)


# -- private keys ------------------------------------------------------------------------------

_PEM_BEGIN = re.compile(r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----")
_PEM_END = "-----END"
_PEM_OPEN_BODY = re.compile(r"(?:(?:\s|\\[nr])*+[A-Za-z0-9+/=]{16,}+)*+")


def _pem_spans(text: str) -> Iterator[_Span]:
    """The body between the first and the last line of each private key; a cut-off key to its last line."""
    begin = _PEM_BEGIN.search(text)
    while begin is not None:
        start = begin.end()
        end = text.find("-----", start)
        if not text.startswith(_PEM_END, end):
            end = _end_of(_PEM_OPEN_BODY, text, start)
        if text[start:end].strip():
            yield _Span(start, end, is_pem_body=True)
        begin = _PEM_BEGIN.search(text, end)


def _mask_pem_body(body: str) -> str:
    # A key inside a JSON string has its line breaks escaped; a raw one would break the JSON.
    line_break = "\\n" if body.startswith("\\n") else "\n" if "\n" in body else ""
    return f"{line_break}{MASK}{line_break}"


# -- prefixed tokens ---------------------------------------------------------------------------

# An escaped line break ("\n" inside a JSON string) ends in a letter and still starts a new word.
_EDGE = r"(?:(?<![A-Za-z0-9_-])|(?<=\\[nrt]))"
_TOKEN_TRIGGERS = (
    *("sk-", "ghp_", "gho_", "ghu_", "ghs_", "ghr_", "github_pat_", "xox", "xapp-", "gsk_", "AIza"),
    *("ya29.", "eyJ", "npm_", "hf_", "r8_", "pplx-", "AKID", "AKIA", "ASIA", "LTAI"),
)
_TOKEN = re.compile(
    _EDGE
    + r"""(?:
      sk-[A-Za-z0-9_-]{8,}+
    | gh[pousr]_[A-Za-z0-9]{16,}+
    | github_pat_[A-Za-z0-9_]{16,}+
    | xox[a-z]-[A-Za-z0-9-]{10,}+
    | xapp-[A-Za-z0-9-]{10,}+
    | gsk_[A-Za-z0-9_-]{10,}+
    | AIza[A-Za-z0-9_-]{20,}+
    | ya29\.[A-Za-z0-9_./-]{10,}+
    | eyJ[A-Za-z0-9_-]{8,}+\.[A-Za-z0-9_-]{8,}+(?:\.[A-Za-z0-9_-]++){0,3}
    | (?:npm|hf|r8)_[A-Za-z0-9]{10,}+
    | pplx-[A-Za-z0-9_-]{10,}+
    | (?:AKID|LTAI)[A-Za-z0-9]{10,}+
    | (?:AKIA|ASIA)[A-Z0-9]{16}(?![A-Za-z0-9])
    )""",
    re.VERBOSE,
)
_SURE_RUN_CHARS = 16
_NOT_ALNUM = re.compile(r"[^A-Za-z0-9]")
_BOT_TOKEN = re.compile(r"[0-9](?<![0-9][0-9])[0-9]{5,11}:(?![0-9a-f]{8}-[0-9a-f]{4}-)[A-Za-z0-9_-]{20,}+")
_SURE_BOT_TOKEN = re.compile(r"[0-9]{8,10}:AA[A-Za-z0-9_-]{33}")


def _token_spans(text: str) -> Iterator[_Span]:
    if any(trigger in text for trigger in _TOKEN_TRIGGERS):
        for found in _TOKEN.finditer(text):
            yield _Span(*found.span())


def _bot_token_spans(text: str) -> Iterator[_Span]:
    if ":" in text:
        for found in _BOT_TOKEN.finditer(text):
            yield _Span(*found.span())


def _is_surely_token(token: str) -> bool:
    """Random-looking enough to be masked at rest: names such as `sk-learn-notes-2026` are not."""
    if token.startswith("eyJ"):
        return token.count(".") >= 2
    runs = [run for run in _NOT_ALNUM.split(token) if len(run) >= _SURE_RUN_CHARS]
    if token.startswith("sk-"):
        return any(not run.isalpha() for run in runs)
    return bool(runs)


# -- fields, headers, flags, queries -----------------------------------------------------------

_FIELD_TRIGGERS = (
    *("token", "secret", "passw", "passphrase", "key", "authorization", "bearer", "cookie"),
    *("pass=", "pwd=", "auth=", "sig=", "signature=", "card", "cvv", "cvc", "pan", "security"),
)
_SEPARATOR = r"""(?:\\{0,3}["'`]|\*\*)?[ \t]{0,8}(?:=>|:=|[:=])[ \t]{0,8}(?:\*\*(?!\*))?[ \t]{0,8}"""
_QUERY = (
    r"(?:(?:[a-z0-9]{1,16}[_-]){0,3}|access|auth|refresh|id|hook|session|bot|api)token="
    r"|(?:api|access|secret|auth|subscription)?[_-]?key="
    r"|(?:[a-z0-9]{1,16}[_-]){0,3}(?:secret|signature)=|clientsecret="
    r"|pass(?:word|wd)?=|pwd=|auth=|sig="
)
_FLAG_NAME = r"(?:[a-z0-9]{1,24}-){0,3}(?:token|secret|passw(?:or)?d|passphrase|(?:api|access|secret)-?key)"
# Runs on lowered text. Every branch starts with a literal, which is what lets the search skip ahead.
_NAMED = re.compile(
    rf"token{_SEPARATOR}|secret{_SEPARATOR}|passw(?:or)?d{_SEPARATOR}|passphrase{_SEPARATOR}"
    rf"|key{_SEPARATOR}|authorization{_SEPARATOR}"
    r"|bearer[ \t]{1,4}(?=[a-z0-9._~+/=-]{18})"
    rf"|cookie{_SEPARATOR}(?=[\"']?[^\s=;\"']{{1,128}}=)"
    rf"|--(?<![\w-]--){_FLAG_NAME}(?:=|[ \t]{{1,4}})(?!-)"
    rf"|\?(?:{_QUERY})|&(?:{_QUERY})"
    rf"|card[ _-]?(?:number|num|no|expiry|expiration){_SEPARATOR}|cvv2?{_SEPARATOR}|cvc2?{_SEPARATOR}"
    rf"|security[ _-]?code{_SEPARATOR}|pan(?<![a-z]pan){_SEPARATOR}"
)
_NAME_MAX_CHARS = 64
_CARD_FIELDS = ("card", "cvv", "cvc", "security", "pan")
_SECRET_NAME = re.compile(
    r"(?:token|secret|passw(?:or)?d|passphrase|authorization|cookie|cvv2?|cvc2?|pan(?<![a-z]pan)"
    r"|card[ _-]?(?:number|num|no|expiry|expiration)|security[ _-]?code)\Z"
)
_KEY_OWNERS = ("api", "access", "secret", "private", "auth", "encryption", "signing", "master", "license")
_SECRET_KEY_ENDINGS = tuple(owner + joint for owner in _KEY_OWNERS for joint in ("", "_", "-", " "))
_KEY_LOOK_BACK = max(map(len, _SECRET_KEY_ENDINGS))

_OPENER = re.compile(r"""(?:\\{1,3}["']|["'`])?""")
_SCHEME = re.compile(r"(?:bearer|basic|token|bot|digest|negotiate|apikey)[ \t]{1,4}(?=\S)", re.IGNORECASE)
_VALUE_AFTER = {
    '"': re.compile(r'(?:[^"\\\n]|\\.)*+'),
    "'": re.compile(r"(?:[^'\\\n]|\\.)*+"),
    "`": re.compile(r"[^`\n]*+"),
    "": re.compile(r"""(?:[^\s"'`\\]|\\(?![nrt"'\\]))*+"""),
}
_ESCAPED_VALUE = re.compile(r"""[^"'\\\n]*+""")
_QUERY_VALUE = re.compile(r"""[^&\s"'`<>#\\]*+""")
_COOKIE_VALUE = re.compile(r"""[^"'\r\n\\]*+""")
_CARD_VALUE = re.compile(r"[0-9](?:[ /-]?[0-9]){2,18}+(?![0-9…])")
_PAN_VALUE = re.compile(r"[0-9](?:[ -]?[0-9]){11,18}+(?![0-9])")
_TRAILING_PUNCTUATION = ".,;:!?)]}*"
# References, constants, and the end of a mask whose beginning looks like a name.
_NOT_A_SECRET = re.compile(r"\$\{[^}]*\}|\$[A-Z_][A-Z0-9_]*|(?i:null|none|nil|true|false|undefined)|…\S{0,4}")


def _lower(text: str) -> str:
    # U+0130 is the one character whose lower case is longer; positions must stay the same.
    return text.replace("\u0130", "i").lower()


def _field_spans(text: str) -> Iterator[_Span]:
    lowered = _lower(text)
    if not any(trigger in lowered for trigger in _FIELD_TRIGGERS):
        return
    named = _NAMED.search(lowered)
    while named is not None:
        span = _value_span(text, lowered, named)
        if span is not None:
            yield span
        # A bare value may have swallowed the next name, as in `token=a,password="b"`: look at its tail again.
        resume = named.end() if span is None else max(named.end(), span.end - _NAME_MAX_CHARS)
        named = _NAMED.search(lowered, resume)


def _value_span(text: str, lowered: str, named: re.Match[str]) -> _Span | None:
    name, start = named.group(), named.end()
    if name.startswith("key") and not _names_secret_key(text, lowered, named.start()):
        return None
    if name[0] in "?&":
        return _span_unless_harmless(text, start, _end_of(_QUERY_VALUE, text, start))
    opener = _end_of(_OPENER, text, start)
    if name.startswith("cookie"):
        return _span_unless_harmless(text, opener, _end_of(_COOKIE_VALUE, text, opener))
    if name.startswith(_CARD_FIELDS):
        digits = (_PAN_VALUE if name.startswith("pan") else _CARD_VALUE).match(text, opener)
        return _Span(*digits.span()) if digits is not None else None
    return _quoted_or_bare_span(text, text[start:opener], opener)


def _quoted_or_bare_span(text: str, opener: str, start: int) -> _Span | None:
    scheme = _SCHEME.match(text, start)
    if scheme is not None:
        start = scheme.end()
    if opener.startswith("\\"):
        return _span_unless_harmless(text, start, _end_of(_ESCAPED_VALUE, text, start))
    end = _end_of(_VALUE_AFTER[opener], text, start)
    if not opener and _NOT_A_SECRET.fullmatch(text, start, end) is None:
        end = start + len(text[start:end].rstrip(_TRAILING_PUNCTUATION))
    return _span_unless_harmless(text, start, end)


def _end_of(pattern: re.Pattern[str], text: str, start: int) -> int:
    found = pattern.match(text, start)
    return start if found is None else found.end()


def _span_unless_harmless(text: str, start: int, end: int) -> _Span | None:
    """A span, unless the value is empty, a reference, a constant, or a private key with its own rule."""
    value = text[start:end]
    if not value.strip() or _NOT_A_SECRET.fullmatch(value) or value.startswith("-----BEGIN"):
        return None
    return _Span(start, end)


def _names_secret_key(text: str, lowered: str, start: int) -> bool:
    """`…_KEY` in capitals, or a key said to open something. A session key is an address, not a secret."""
    if text[max(0, start - 1) : start + 3] == "_KEY":
        return True
    return lowered[max(0, start - _KEY_LOOK_BACK) : start].endswith(_SECRET_KEY_ENDINGS)


# -- masking -----------------------------------------------------------------------------------


def _mask_spans(text: str, spans: list[_Span]) -> Redacted:
    if not spans:
        return Redacted(text, 0)
    pieces: list[str] = []
    count = cursor = 0
    for start, end, is_pem_body in _merge(spans):
        value = text[start:end]
        masked = _mask_pem_body(value) if is_pem_body else mask(value)
        count += masked != value
        pieces += (text[cursor:start], masked)
        cursor = end
    if count == 0:
        return Redacted(text, 0)
    pieces.append(text[cursor:])
    return Redacted("".join(pieces), count)


def _merge(spans: list[_Span]) -> Iterator[_Span]:
    """Overlapping spans as one; a private key that holds the others keeps its own mask."""
    ordered = sorted(spans, key=lambda span: (span.start, -span.end, not span.is_pem_body))
    current = ordered[0]
    for span in ordered[1:]:
        if span.start >= current.end:
            yield current
            current = span
        elif span.end > current.end:
            current = _Span(current.start, span.end)
    yield current
