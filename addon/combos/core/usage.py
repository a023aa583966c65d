"""Token counts under one meaning, what they cost, and which of them are known.

The dialects mean different things by "input": some leave out what came from a cache. Here `input` is everything that
was read, cached or not, and `output` everything that was written, thoughts included. A count nobody reported is None.
"""

from collections.abc import Mapping

from combos.core.config_provider import ModelCost
from combos.core.facts import Dialect
from combos.core.values import dataclass

_MILLION = 1_000_000
# The dialects whose input count leaves cached input out, and whose output count leaves thoughts out.
_EXCLUDES_CACHE = frozenset({Dialect.MESSAGES})
_EXCLUDES_THOUGHTS = frozenset({Dialect.GEMINI})


_NOTHING = (None,) * 6


@dataclass(frozen=True, slots=True)
class Tokens:
    """Counts of one attempt. None: not reported; an unreported total is the sum of what was reported."""

    input: int | None = None
    output: int | None = None
    cache_read: int | None = None
    cache_write: int | None = None
    reasoning: int | None = None
    total: int | None = None

    @property
    def is_known(self) -> bool:
        """Whether anything was reported at all."""
        return (self.input, self.output, self.cache_read, self.cache_write, self.reasoning, self.total) != _NOTHING

    @property
    def spent(self) -> int:
        """What counts against a budget of tokens: what is known."""
        return self.total or 0


def tokens_of(dialect: Dialect | None, usage: Mapping[str, int] | None) -> Tokens:
    """The counts that a target of `dialect` reported (`wire.usage` names)."""
    if not usage:
        return Tokens()
    cached, written = usage.get("cached_input_tokens"), usage.get("cache_creation_input_tokens")
    read, output = usage.get("input_tokens"), usage.get("output_tokens")
    thoughts, total = usage.get("reasoning_output_tokens"), usage.get("total_tokens")
    if read is not None and dialect in _EXCLUDES_CACHE:
        read += (cached or 0) + (written or 0)
    if output is not None and dialect in _EXCLUDES_THOUGHTS:
        output += thoughts or 0
    if total is None and not (read is None and output is None):
        total = (read or 0) + (output or 0)
    return Tokens(read, output, cached, written, thoughts, total)


def cost_usd(price: ModelCost | None, tokens: Tokens) -> float | None:
    """What the tokens cost; None when price or counts are unknown.

    A cache price that is not given is the price of input: nothing becomes free because a line is missing.
    """
    if price is None or not tokens.is_known:
        return None
    if (price.input is None and tokens.input) or (price.output is None and tokens.output):
        return None
    read, written = tokens.cache_read or 0, tokens.cache_write or 0
    plain = max(0, (tokens.input or 0) - read - written)
    base = price.input or 0.0
    parts = (
        plain * base,
        read * (base if price.cache_read is None else price.cache_read),
        written * (base if price.cache_write is None else price.cache_write),
        (tokens.output or 0) * (price.output or 0.0),
    )
    return sum(parts) / _MILLION
