"""What a call used and what it cost. Pure arithmetic over counts that a provider reported."""

from __future__ import annotations

from openclaw.domain.transcript import Cost, Usage
from openclaw.engine.ports import ModelPrice

# Beyond this a count is a provider's mistake, and no JSON reader keeps it exact.
_MAX_TOKENS = 2**53 - 1
_CHARS_PER_TOKEN = 4


def make_usage(
    price: ModelPrice,
    *,
    input_tokens: int,
    output_tokens: int,
    cache_read: int = 0,
    cache_write: int = 0,
    total_tokens: int | None = None,
) -> Usage:
    """Usage with its cost. `input_tokens` are those that came neither from nor for the cache.

    Cached tokens without a price of their own are charged as input: the most
    they can cost. An unknown price counts as zero.
    """
    input_tokens, output_tokens = _bounded(input_tokens), _bounded(output_tokens)
    cache_read, cache_write = _bounded(cache_read), _bounded(cache_write)
    total = input_tokens + output_tokens + cache_read + cache_write
    if total_tokens is not None:
        total = max(total, _bounded(total_tokens))
    costs = (
        _dollars(input_tokens, price.input),
        _dollars(output_tokens, price.output),
        _dollars(cache_read, price.input if price.cache_read is None else price.cache_read),
        _dollars(cache_write, price.input if price.cache_write is None else price.cache_write),
    )
    return Usage(
        input=input_tokens,
        output=output_tokens,
        cache_read=cache_read,
        cache_write=cache_write,
        total_tokens=total,
        cost=Cost(*costs, total=sum(costs)),
    )


def estimate_tokens(chars: int) -> int:
    """A rough count for text that no provider counted: four characters to a token, at least one if any."""
    return -(-chars // _CHARS_PER_TOKEN)


def _bounded(tokens: int) -> int:
    return max(0, min(tokens, _MAX_TOKENS))


def _dollars(tokens: int, price_per_million: float | None) -> float:
    return tokens * (price_per_million or 0.0) / 1_000_000
