"""Token counts of the dialects under one set of names. Only what a target reported: nothing is added up or assumed."""

from combos.core.facts import Dialect

INPUT = "input_tokens"
OUTPUT = "output_tokens"
CACHED = "cached_input_tokens"
CACHE_CREATION = "cache_creation_input_tokens"
REASONING = "reasoning_output_tokens"
TOTAL = "total_tokens"
COUNT_MAX = 10**12
"""More tokens than any request has: a larger count is a fault of the target, and its sums would not fit 64 bits."""

# Rows: flat name, member of the dialect, and a member within that where there is one. The last that holds a count is
# taken.
_RESPONSES = (
    (INPUT, "input_tokens", None),
    (OUTPUT, "output_tokens", None),
    (TOTAL, "total_tokens", None),
    (CACHED, "input_tokens_details", "cached_tokens"),
    (CACHE_CREATION, "input_tokens_details", "cache_write_tokens"),
    (REASONING, "output_tokens_details", "reasoning_tokens"),
)
_CHAT = (
    (INPUT, "prompt_tokens", None),
    (OUTPUT, "completion_tokens", None),
    (TOTAL, "total_tokens", None),
    (CACHED, "prompt_cache_hit_tokens", None),
    (CACHED, "prompt_tokens_details", "cached_tokens"),
    (CACHE_CREATION, "prompt_tokens_details", "cache_write_tokens"),
    (REASONING, "completion_tokens_details", "reasoning_tokens"),
)
_MESSAGES = (
    (INPUT, "input_tokens", None),
    (OUTPUT, "output_tokens", None),
    (CACHED, "cache_read_input_tokens", None),
    (CACHE_CREATION, "cache_creation_input_tokens", None),
    (REASONING, "output_tokens_details", "thinking_tokens"),
)
_GEMINI = (
    (INPUT, "promptTokenCount", None),
    (OUTPUT, "candidatesTokenCount", None),
    (TOTAL, "totalTokenCount", None),
    (CACHED, "cachedContentTokenCount", None),
    (REASONING, "thoughtsTokenCount", None),
)
_ROWS: dict[Dialect, tuple[tuple[str, str, str | None], ...]] = {
    Dialect.RESPONSES: _RESPONSES,
    Dialect.CHAT: _CHAT,
    Dialect.MESSAGES: _MESSAGES,
    Dialect.GEMINI: _GEMINI,
}


def flat_usage(dialect: Dialect, usage: object) -> dict[str, int] | None:
    """The counts of a dialect's usage object; None when there are none.

    Names keep the dialect's own meaning: `input_tokens` of Messages leaves out cached input, `output_tokens` of Gemini
    leaves out thoughts.
    """
    # What JSON was read from is a dict; asking for any mapping costs ten times as much.
    if not isinstance(usage, dict):
        return None
    flat: dict[str, int] = {}
    for name, member, inner in _ROWS[dialect]:
        count = usage.get(member)
        if count is None:
            continue
        if inner is not None:
            count = count.get(inner) if type(count) is dict else None
        if type(count) is int and 0 <= count <= COUNT_MAX:  # a bool is no count
            flat[name] = count
    return flat or None


def merge_usage(known: dict[str, int] | None, later: dict[str, int] | None) -> dict[str, int] | None:
    """Counts of one stream are cumulative and reported in parts: a later value replaces an earlier one."""
    return known | later if known and later else known or later
