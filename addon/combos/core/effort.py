"""Reasoning effort of one dispatch: what a target's ladder and the combo's defaults change in the caller's body.

Gives member changes for the body in the caller's own dialect and leaves every other reasoning field alone. What a
ladder is and how it is published is decided elsewhere. Rules: functional spec, "Default reasoning effort" and
"Mixed-capability groups".
"""

import re
from collections.abc import Mapping

from combos.core.config_combo import ComboConfig, DefaultEffortMode, ReasoningEffortMode
from combos.core.facts import Dialect
from combos.core.ladder import for_model, is_rung, resolve_at_or_below
from combos.core.registry import Target
from combos.core.values import dataclass

type Changes = dict[tuple[str, ...], object]
"""New values by path from the top of the body; None deletes the member."""

type Body = Mapping[str, object]

OMIT = "__omit__"
"""In a provider's effort map: send no effort at all."""

# Thinking budgets of Messages models without effort levels, and their bounds.
_BUDGETS = {"low": 4096, "medium": 8192, "high": 16384, "xhigh": 24576, "max": 32000}
_MIN_BUDGET = 1024
_ANSWER_ROOM = 4096
_BUDGET_ROOM = 8192
_MAX_TOKENS = 32000
_BUDGET_LOW = 4096
_BUDGET_MEDIUM = 16384

_ADAPTIVE_FAMILIES = re.compile(
    r"(?:^|[/.])claude-(?:sonnet-(?:[5-9]|\d\d)|opus-(?:4-(?:[7-9]|\d\d(?!\d))|[5-9])|fable)"
)


@dataclass(frozen=True, slots=True)
class EffortPolicy:
    """What decides the effort of one target: its ladder (None unknown, empty no control), the combo's default and
    modes, the provider's renames, and whether the target clamps only the two top rungs (the native ChatGPT backend)."""

    ladder: tuple[str, ...] | None
    default: str | None = None
    forced: bool = False
    adaptive: bool = False
    renames: Mapping[str, str] | None = None
    clamps_top_only: bool = False


def policy_for(target: Target, combo: ComboConfig | None, *, native: bool) -> EffortPolicy:
    """The policy of a target within a combo; None for a direct route, which has no defaults."""
    config = target.provider.config if target.provider else None
    renames = {} if config is None else {**config.reasoning_effort_map}
    if config is not None:
        renames |= for_model(config.model_reasoning_effort_map, target.model) or {}
    if combo is None:
        return EffortPolicy(target.ladder, renames=renames, clamps_top_only=native)
    return EffortPolicy(
        ladder=target.ladder,
        default=combo.default_effort,
        forced=combo.default_effort_mode is DefaultEffortMode.FORCE,
        adaptive=combo.reasoning_effort_mode is ReasoningEffortMode.ADAPTIVE,
        renames=renames,
        clamps_top_only=native,
    )


def has_say(target: Target, combo: ComboConfig | None) -> bool:
    """Whether the policy of a target can change a request: one whose ladder is unknown takes efforts as they come,
    unless the combo has it that unknown means none."""
    if target.ladder is not None:
        return True
    return combo is not None and combo.reasoning_effort_mode is ReasoningEffortMode.ADAPTIVE


def effort_changes(dialect: Dialect, body: Body, model: str, policy: EffortPolicy) -> Changes:
    """Changes to a body of `dialect` that goes to `model` under `policy`."""
    match dialect:
        case Dialect.RESPONSES:
            return _openai(body, policy, flat=False)
        case Dialect.CHAT:
            return _openai(body, policy, flat=True)
        case Dialect.MESSAGES:
            return _messages(body, model, policy)
        case Dialect.GEMINI:
            changes = crossing_changes(dialect, body, policy)
            return _gemini_form(changes, model)


def decided_changes(dialect: Dialect, body: Body, model: str, policy: EffortPolicy, effort: str | None) -> Changes:
    """Changes that make a decision's effort the only one in the body; None takes every effort control out."""
    value = None if effort is None else _outgoing(effort, policy)
    match dialect:
        case Dialect.RESPONSES:
            return _decided_openai(body, value, ("reasoning", "effort"))
        case Dialect.CHAT:
            return _decided_openai(body, value, ("reasoning_effort",))
        case Dialect.MESSAGES:
            return _decided_messages(body, model, value)
        case Dialect.GEMINI:
            return _gemini_form(decided_crossing_changes(dialect, body, policy, effort), model)


def crossing_changes(dialect: Dialect, body: Body, policy: EffortPolicy) -> Changes:
    """Changes to a body of `dialect` that is to be translated: the target's effort in the client's own words.

    They name the effort by its level, so that translation puts it into whatever form the target's model takes.
    """
    match dialect:
        case Dialect.MESSAGES:
            return _leveled(body, policy, _messages_effort(body), _MESSAGES_LEVEL)
        case Dialect.GEMINI:
            return _leveled(body, policy, _gemini_effort(body), _GEMINI_LEVEL)
        case _:
            return effort_changes(dialect, body, "", policy)


def decided_crossing_changes(dialect: Dialect, body: Body, policy: EffortPolicy, effort: str | None) -> Changes:
    """As `decided_changes`, for a body that is to be translated."""
    if dialect in (Dialect.RESPONSES, Dialect.CHAT):
        return decided_changes(dialect, body, "", policy, effort)
    spelling = _MESSAGES_LEVEL if dialect is Dialect.MESSAGES else _GEMINI_LEVEL
    return _leveled_to(body, None if effort is None else _outgoing(effort, policy), spelling)


def _decided_openai(body: Body, value: str | None, path: tuple[str, ...]) -> Changes:
    stripped = _openai_stripped(body)
    if value is None:
        return stripped
    kept = {where: change for where, change in stripped.items() if where[0] != path[0]}
    return kept | {path: value}


def _decided_messages(body: Body, model: str, value: str | None) -> Changes:
    stripped = _deleted(body, ("thinking",)) | _deleted(body, _LEVEL)
    if value is None:
        return stripped
    bare = {name: member for name, member in body.items() if (name,) not in stripped}
    if _LEVEL in stripped:
        bare["output_config"] = {k: v for k, v in _mapping(body.get("output_config")).items() if k != "effort"}
    made = _messages_default(bare, model, value)
    set_in = {path[0] for path in made}
    return {path: change for path, change in stripped.items() if path[0] not in set_in} | made


def _mapping(value: object) -> Body:
    return value if isinstance(value, Mapping) else {}


def _is_stripped(policy: EffortPolicy) -> bool:
    return policy.ladder == () or (policy.adaptive and policy.ladder is None)


def _default_for(policy: EffortPolicy, caller: object, *, is_unset: bool) -> str | None:
    """The configured effort, if it applies to this caller and the ladder is known."""
    if policy.default is None or not policy.ladder:
        return None
    applies = is_unset or (policy.forced and is_rung(caller))
    return resolve_at_or_below(policy.default, policy.ladder) if applies else None


def _outgoing(effort: str, policy: EffortPolicy) -> str | None:
    """The wire value of an effort for a known ladder; None to send none. Values that are no effort stay as they are."""
    if policy.renames and effort in policy.renames:
        renamed = policy.renames[effort]
        return None if renamed == OMIT else renamed
    if policy.clamps_top_only and effort not in ("max", "ultra"):
        return effort
    ladder = policy.ladder or ()
    if effort in ladder and effort != "ultra":
        return effort
    want = "low" if effort == "minimal" else effort
    resolved = resolve_at_or_below(want, ladder) if is_rung(want) else effort
    return "max" if resolved == "ultra" else resolved or effort


# -- Responses and Chat Completions


def _openai(body: Body, policy: EffortPolicy, *, flat: bool) -> Changes:
    if _is_stripped(policy):
        return _openai_stripped(body)
    if not policy.ladder:
        return {}
    path = _openai_path(body, flat=flat)
    caller = _at(body, path)
    reasoning = body.get("reasoning")
    is_unset = _at(body, path, missing=_ABSENT) is _ABSENT and (
        "reasoning" not in body or isinstance(reasoning, Mapping)
    )
    effort = _default_for(policy, caller, is_unset=is_unset) or caller
    if not isinstance(effort, str):
        return {}
    value = _outgoing(effort, policy)
    if value == caller:
        return {}
    return _deleted(body, path) if value is None else {path: value}


def _openai_path(body: Body, *, flat: bool) -> tuple[str, ...]:
    """Where the caller's effort stands, or would be put."""
    reasoning = body.get("reasoning")
    nested = isinstance(reasoning, Mapping) and "effort" in reasoning
    return ("reasoning_effort",) if flat and ("reasoning_effort" in body or not nested) else ("reasoning", "effort")


def _openai_stripped(body: Body) -> Changes:
    changes: Changes = {(name,): None for name in ("reasoning_effort", "thinking", "thinking_budget") if name in body}
    return changes | _deleted(body, ("reasoning", "effort"))


def _deleted(body: Body, path: tuple[str, ...]) -> Changes:
    """Delete one member, and its parent when nothing else is in it."""
    if _at(body, path, missing=_ABSENT) is _ABSENT:
        return {}
    parent = _at(body, path[:-1])
    if len(path) > 1 and isinstance(parent, Mapping) and len(parent) == 1:
        return {path[:-1]: None}
    return {path: None}


class _Absent:
    """Tells a missing member from one that is null."""


_ABSENT = _Absent()


def _at(body: object, path: tuple[str, ...], missing: object = None) -> object:
    for name in path:
        if not isinstance(body, Mapping) or name not in body:
            return missing
        body = body[name]
    return body


# -- Messages

_LEVEL = ("output_config", "effort")


@dataclass(frozen=True, slots=True)
class _Spelling:
    """Where a dialect names the level of thinking, and where it switches thinking on, with the two states of it."""

    level: tuple[str, ...]
    switch: tuple[str, ...]
    on: Mapping[str, object] | None
    off: Mapping[str, object] | None


_MESSAGES_LEVEL = _Spelling(_LEVEL, ("thinking",), {"type": "adaptive"}, {"type": "disabled"})
_THINKING = ("generationConfig", "thinkingConfig")
_AMOUNTS = ("thinkingLevel", "thinkingBudget")
_GEMINI_LEVELS = re.compile(r"gemini-(?:[3-9]|\d\d)")
_GEMINI_THINKS = re.compile(r"gemini-(?:2\.5|[3-9]|\d\d)")
_GEMINI_WORDS = {"minimal": "MINIMAL", "low": "LOW", "medium": "MEDIUM"}
_GEMINI_BUDGETS = {"minimal": 512, "low": 2048, "medium": 8192, "high": 16384, "xhigh": 24576, "max": 32768}
_GEMINI_LEVEL = _Spelling((*_THINKING, "thinkingLevel"), _THINKING, None, {"thinkingBudget": 0})


def _leveled(body: Body, policy: EffortPolicy, caller: object, spelling: _Spelling) -> Changes:
    if _is_stripped(policy):
        return _leveled_to(body, None, spelling)
    effort = _default_for(policy, caller, is_unset=caller is None) or caller
    if not policy.ladder or not isinstance(effort, str):
        return {}
    value = _outgoing(effort, policy)
    return {} if value == caller else _leveled_to(body, value, spelling)


def _leveled_to(body: Body, value: str | None, spelling: _Spelling) -> Changes:
    """Make `value` the only effort in the body; None takes every effort control out."""
    nested = spelling.level[: len(spelling.switch)] == spelling.switch
    old = _deleted(body, spelling.switch) | ({} if nested else _deleted(body, spelling.level))
    if value is None:
        return old
    if value == "none":
        return {**old, spelling.switch: spelling.off}
    if nested:
        kept = {name: member for name, member in _mapping(_at(body, spelling.switch)).items() if name not in _AMOUNTS}
        return {spelling.switch: {**kept, spelling.level[-1]: value}}
    return {spelling.switch: spelling.on, spelling.level: value}


def _gemini_effort(body: Body) -> object:
    """The effort a Gemini caller asks for; a budget counts like one of Messages."""
    level = _at(body, (*_THINKING, "thinkingLevel"))
    if isinstance(level, str):
        return level.lower()
    budget = _at(body, (*_THINKING, "thinkingBudget"))
    if not isinstance(budget, int) or budget < 0:
        return None
    return "none" if budget == 0 else _from_budget(budget)


def _gemini_form(changes: Changes, model: str) -> Changes:
    """The level in the form that the model's family takes: one of three words, a budget, or not at all."""
    thinking = changes.get(_THINKING)
    if not isinstance(thinking, Mapping) or "thinkingLevel" not in thinking:
        return changes
    level = str(thinking["thinkingLevel"])
    family = model.rpartition("/")[2].lower()
    if not _GEMINI_THINKS.match(family) or level not in _GEMINI_BUDGETS:
        return {}
    kept = {name: member for name, member in thinking.items() if name not in _AMOUNTS}
    if _GEMINI_LEVELS.match(family):
        return {_THINKING: {**kept, "thinkingLevel": _GEMINI_WORDS.get(level, "HIGH")}}
    return {_THINKING: {**kept, "thinkingBudget": _GEMINI_BUDGETS[level]}}


def _from_budget(budget: int) -> str:
    return "low" if budget <= _BUDGET_LOW else "medium" if budget <= _BUDGET_MEDIUM else "high"


def _messages(body: Body, model: str, policy: EffortPolicy) -> Changes:
    if _is_stripped(policy):
        return _deleted(body, ("thinking",)) | _deleted(body, _LEVEL)
    if not policy.ladder:
        return {}
    caller = _messages_effort(body)
    effort = _default_for(policy, caller, is_unset=caller is None)
    if effort is not None:
        return _messages_default(body, model, _outgoing(effort, policy))
    level = _at(body, _LEVEL)
    if not isinstance(level, str):
        return {}
    value = _outgoing(level, policy)
    if value == level:
        return {}
    return _deleted(body, _LEVEL) if value is None else {_LEVEL: value}


def _messages_effort(body: Body) -> object:
    """The effort a caller asks for, as a rung where it has one; None when the caller leaves it open."""
    level = _at(body, _LEVEL)
    if level is not None:
        return level
    thinking = body.get("thinking")
    kind = _at(thinking, ("type",))
    if kind == "disabled":
        return "none"
    budget = _at(thinking, ("budget_tokens",))
    if kind != "enabled" or not isinstance(budget, int):
        return None
    return _from_budget(budget)


def _messages_default(body: Body, model: str, effort: str | None) -> Changes:
    """Put an effort into a Messages body, in the form that the target's family takes."""
    if effort is None:
        return {}
    # A forced tool call and thinking exclude each other; the caller's tool choice goes first.
    can_think = _at(body, ("tool_choice", "type")) not in ("any", "tool")
    if _ADAPTIVE_FAMILIES.search(model):
        changes: Changes = {} if _at(body, _LEVEL) == effort else {_LEVEL: effort}
        if can_think and _at(body, ("thinking", "type")) != "adaptive":
            changes |= {("thinking",): {"type": "adaptive"}} | _without_sampling(body)
        return changes
    return _budget(body, effort) if can_think and effort in _BUDGETS else {}


def _budget(body: Body, effort: str) -> Changes:
    wanted = _BUDGETS[effort]
    asked = body.get("max_tokens")
    limit = min(_MAX_TOKENS, max(asked if isinstance(asked, int) else 0, wanted + _BUDGET_ROOM))
    tokens = max(_MIN_BUDGET, min(wanted, limit - _ANSWER_ROOM))
    changes: Changes = {("thinking",): {"type": "enabled", "budget_tokens": tokens}, ("max_tokens",): limit}
    return changes | _deleted(body, _LEVEL) | _without_sampling(body)


def _without_sampling(body: Body) -> Changes:
    """Thinking takes no sampling parameters."""
    return {(name,): None for name in ("temperature", "top_p") if name in body}
