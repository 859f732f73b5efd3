"""Which model a person means by the words after `/new` (LIFE-15, LIFE-16).

`/new opus`, `/new anthropic/claude-opus-4`, `/new openai mini write a poem`: the
first one or two words may name a model, spelled exactly or roughly. Only the
candidates passed in can be chosen; nothing here knows a catalogue or a config,
and nothing here changes a session.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from msgspec import Struct

VARIANT_WORDS = frozenset(("mini", "nano", "lite", "fast", "turbo", "preview", "beta", "small", "lightning"))
MINIMUM_SCORE = 120
MINIMUM_SCORE_IN_PROVIDER = 90
# A shorter word is taken for ordinary text unless it names a provider.
SHORTEST_FUZZY_WORD = 6
# Distances from this one on say nothing about a typing error.
DISTANCE_LIMIT = 3

_REFERENCE_POINTS = (220, 140, 110)
_PROVIDER_POINTS = (180, 120, 90)
_MODEL_POINTS = (160, 110, 80)
_ALIAS_POINTS = (140, 90, 60)
_POINTS_PER_DISTANCE_UNIT = 70
_POINTS_FAMILY_NAME = 30
_POINTS_DEFAULT = 20
_POINTS_VARIANT_MATCHED = 40
_POINTS_VARIANT_UNASKED = -30
_POINTS_VARIANT_MISSING = -20

_WORD = re.compile(r"[a-z0-9]+")


class ModelCandidate(Struct, frozen=True):
    """A model that this session may use."""

    provider: str
    model: str
    alias: str | None = None


class ModelHint(Struct, frozen=True):
    """The model that was meant, and the text that is left for the first message."""

    provider: str
    model: str
    remainder: str


def match_model_hint(
    text: str,
    candidates: Sequence[ModelCandidate],
    default: tuple[str, str] | None = None,
) -> ModelHint | None:
    """Read a model from the first words of `text`; None means that all of it is the message (LIFE-16)."""
    words = text.split(maxsplit=2)
    if not words or not candidates:
        return None
    first = words[0].lower()
    names_a_provider = any(candidate.provider.lower() == first for candidate in candidates)
    if names_a_provider and len(words) > 1:
        inside = [candidate for candidate in candidates if candidate.provider.lower() == first]
        chosen = _resolve_inside(words[1].lower(), inside, default)
        if chosen is not None:
            return _hint(chosen, words[2] if len(words) > 2 else "")
    chosen = _exact(first, candidates)
    if chosen is None and (names_a_provider or len(first) >= SHORTEST_FUZZY_WORD):
        chosen = _best(first, candidates, default, MINIMUM_SCORE)
    if chosen is None:
        return None
    return _hint(chosen, text.split(maxsplit=1)[1] if len(words) > 1 else "")


def _hint(chosen: ModelCandidate, remainder: str) -> ModelHint:
    return ModelHint(provider=chosen.provider, model=chosen.model, remainder=remainder.strip())


def _resolve_inside(
    word: str, inside: Sequence[ModelCandidate], default: tuple[str, str] | None
) -> ModelCandidate | None:
    """Resolve the second word among the models of the provider that the first word named."""
    for candidate in inside:
        if word in (candidate.model.lower(), _alias(candidate)):
            return candidate
    plausible = [candidate for candidate in inside if _may_mean(word, candidate)]
    return _best(word, plausible, default, MINIMUM_SCORE_IN_PROVIDER)


def _may_mean(word: str, candidate: ModelCandidate) -> bool:
    """Keep ordinary words such as `a` or `in` from being swallowed because a model name contains them."""
    if len(word) >= SHORTEST_FUZZY_WORD:
        return True
    telling = len(word) >= 3 or any(letter.isdigit() for letter in word)
    return telling and (word in candidate.model.lower() or word in _alias(candidate))


def _exact(word: str, candidates: Sequence[ModelCandidate]) -> ModelCandidate | None:
    for candidate in candidates:
        if word in (_alias(candidate), _reference(candidate)):
            return candidate
    return None


def _best(
    word: str,
    candidates: Sequence[ModelCandidate],
    default: tuple[str, str] | None,
    minimum: int,
) -> ModelCandidate | None:
    ranks = [(score_candidate(word, candidate, default), candidate) for candidate in candidates]
    good = [(rank, candidate) for rank, candidate in ranks if rank.score >= minimum]
    if not good:
        return None
    return min(good, key=lambda pair: pair[0].order())[1]


class FuzzyScore(Struct, frozen=True):
    """How well a word fits a candidate, and what decides between equals."""

    score: int
    is_default: bool
    matched_variants: int
    variants: int
    model: str
    reference: str

    def order(self) -> tuple[int, bool, int, int, int, str]:
        """Sorts the best first: score, default, matched variants, few variants, short name, alphabet."""
        return (
            -self.score,
            not self.is_default,
            -self.matched_variants,
            self.variants,
            len(self.model),
            self.reference,
        )


def score_candidate(word: str, candidate: ModelCandidate, default: tuple[str, str] | None) -> FuzzyScore:
    """Add up the points of LIFE-16 for a lower-case word."""
    provider, model = candidate.provider.lower(), candidate.model.lower()
    reference = _reference(candidate)
    is_default = default is not None and (default[0].lower(), default[1].lower()) == (provider, model)
    asked, present = _variants(word), _variants(model)
    matched = asked & present

    score = _grade(word, reference, _REFERENCE_POINTS)
    score += _grade(word, provider, _PROVIDER_POINTS)
    score += _grade(word, model, _MODEL_POINTS)
    score += _grade(word, _alias(candidate), _ALIAS_POINTS)
    distance = edit_distance_below(word, model, DISTANCE_LIMIT)
    if distance is not None:
        score += (DISTANCE_LIMIT - distance) * _POINTS_PER_DISTANCE_UNIT
    if model.startswith(provider):
        score += _POINTS_FAMILY_NAME
    if is_default:
        score += _POINTS_DEFAULT
    score += len(matched) * _POINTS_VARIANT_MATCHED
    score += len(present - asked) * _POINTS_VARIANT_UNASKED
    if asked and not matched:
        score += _POINTS_VARIANT_MISSING
    return FuzzyScore(score, is_default, len(matched), len(present), model, reference)


def _grade(word: str, value: str, points: tuple[int, int, int]) -> int:
    exact, prefix, substring = points
    if word == value:
        return exact
    if value.startswith(word):
        return prefix
    return substring if word in value else 0


def _variants(name: str) -> frozenset[str]:
    # Whole words only: `gemini` does not ask for `mini`.
    return VARIANT_WORDS.intersection(_WORD.findall(name))


def _alias(candidate: ModelCandidate) -> str:
    return (candidate.alias or "").strip().lower()


def _reference(candidate: ModelCandidate) -> str:
    return f"{candidate.provider}/{candidate.model}".lower()


def edit_distance_below(left: str, right: str, limit: int) -> int | None:
    """The Levenshtein distance if it is smaller than `limit`, else None.

    Only the diagonal band that can stay below the limit is computed, so the work
    grows with the length of the shorter text, not with the product of both.
    """
    reach = limit - 1
    if abs(len(left) - len(right)) > reach:
        return None
    # Cell k of row r stands for column r + k - reach.
    previous = [offset - reach if offset >= reach else limit for offset in range(2 * reach + 1)]
    for row, letter in enumerate(left, start=1):
        current: list[int] = []
        for offset in range(2 * reach + 1):
            column = row + offset - reach
            if column < 0 or column > len(right):
                current.append(limit)
                continue
            if column == 0:
                current.append(row)
                continue
            cost = previous[offset] + (letter != right[column - 1])
            if offset < 2 * reach:
                cost = min(cost, previous[offset + 1] + 1)
            if offset > 0:
                cost = min(cost, current[offset - 1] + 1)
            current.append(cost)
        if min(current) >= limit:
            return None
        previous = current
    distance = previous[len(right) - len(left) + reach]
    return distance if distance < limit else None
