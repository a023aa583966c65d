"""Numbers and names of reasoning effort in every dialect. It knows no field names of requests."""

from combos.wire.translate.profile import TargetProfile, Thinking
from combos.wire.translate.shape import Json

LADDER = ("none", "minimal", "low", "medium", "high", "xhigh", "max")

_ANTHROPIC_LEVEL = {"minimal": "low"}
_ANTHROPIC_BUDGET = {"minimal": 1024, "low": 4096, "medium": 8192, "high": 16384, "xhigh": 24576, "max": 32000}
_GEMINI_LEVEL = {"none": "MINIMAL", "minimal": "MINIMAL", "low": "LOW", "medium": "MEDIUM"}
_GEMINI_BUDGET = {
    "none": 0, "minimal": 512, "low": 2048, "medium": 8192, "high": 16384, "xhigh": 24576, "max": 32768,
}  # fmt: skip

DEFAULT_MAX_TOKENS = 8192
MAX_BUDGETED_TOKENS = 32000
MAX_ADAPTIVE_TOKENS = 40192


def known(value: object) -> str | None:
    """An effort name the ladder has; `ultra` equals `max` on the wire; anything else is none."""
    if value == "ultra":
        return "max"
    return value if isinstance(value, str) and value in LADDER else None


def from_budget(tokens: int) -> str | None:
    """The effort a thinking budget amounts to; a negative budget leaves it to the model."""
    if tokens < 0:
        return None
    if tokens == 0:
        return "none"
    if tokens <= 4096:
        return "low"
    return "medium" if tokens <= 16384 else "high"


def anthropic_level(effort: str) -> str:
    return _ANTHROPIC_LEVEL.get(effort, effort)


def anthropic_budget(effort: str, wanted: int | None) -> tuple[int, int]:
    """(max_tokens, budget_tokens) of the budget form; the budget is always the smaller one."""
    asked = _ANTHROPIC_BUDGET[effort]
    limit = min(MAX_BUDGETED_TOKENS, max(wanted or DEFAULT_MAX_TOKENS, asked + 8192))
    return limit, max(1024, min(asked, limit - 4096))


def default_max_tokens(effort: str | None, profile: TargetProfile) -> int:
    """`max_tokens` for a Messages target when the client gave none."""
    if profile.max_output_tokens:
        return profile.max_output_tokens
    budget = _ANTHROPIC_BUDGET.get(effort or "")
    if budget is None:
        return DEFAULT_MAX_TOKENS
    return max(DEFAULT_MAX_TOKENS, min(MAX_ADAPTIVE_TOKENS, budget + 8192))


def gemini_config(effort: str | None, summary: bool, form: Thinking) -> Json | None:
    """`thinkingConfig`, or None when nothing is asked or the model takes none."""
    if form is Thinking.NONE or (effort is None and not summary):
        return None
    config: Json = {}
    if effort is not None and form is Thinking.LEVEL:
        config["thinkingLevel"] = _GEMINI_LEVEL.get(effort, "HIGH")
    elif effort is not None:
        config["thinkingBudget"] = _GEMINI_BUDGET[effort]
    if effort != "none":
        config["includeThoughts"] = True
    return config or None
