"""A decision's effort in a Gemini body for a Gemini model: a level, a budget, or none, as the model's family takes it.

The other dialects have their own rules in `core.effort`; which effort was decided is not its business.
"""

from collections.abc import Mapping

from combos.core.effort import Changes
from combos.core.ladder import resolve_at_or_below
from combos.core.registry import Target
from combos.wire.translate import target_profile
from combos.wire.translate.effort import gemini_config, known

_PATH = ("generationConfig", "thinkingConfig")
_AMOUNTS = ("thinkingLevel", "thinkingBudget")


def gemini_effort(document: Mapping[str, object], target: Target, effort: str | None) -> Changes:
    """Changes that make `effort` the only one in the body; None takes it out. What else stands there is kept."""
    parent = document.get(_PATH[0])
    config = parent.get(_PATH[1]) if isinstance(parent, Mapping) else None
    old = config if isinstance(config, Mapping) else {}
    made = {name: value for name, value in old.items() if name not in _AMOUNTS} | _amount(target, effort)
    if made == old:
        return {}
    return {_PATH: made or None}


def _amount(target: Target, effort: str | None) -> dict[str, object]:
    profile = target_profile(target)
    level = known(resolve_at_or_below(effort, target.ladder or ()) or effort) if effort else None
    if profile is None or level is None:
        return {}
    config = gemini_config(level, summary=False, form=profile.thinking) or {}
    return {name: value for name, value in config.items() if name in _AMOUNTS}
