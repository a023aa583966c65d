"""Effort ladders: the order of rungs, the nearest rung a model supports, and the ladder of a concrete target.

An empty ladder says "no effort control"; None says "unknown". What is sent because of it is decided elsewhere.
"""

from collections.abc import Iterable, Mapping

from combos.core.config_provider import Adapter, AuthMode, ProviderConfig
from combos.core.native_models import native_model

RUNGS = ("low", "medium", "high", "xhigh", "max", "ultra")
# Legal values of a caller and of a ladder that are never ranked and never a default.
UNRANKED = ("none", "minimal")

CHATGPT_BASE_URL = "https://chatgpt.com/backend-api/codex"

_ORDER = (*UNRANKED, *RUNGS)


def is_rung(text: object) -> bool:
    """One of the six ranked efforts."""
    return isinstance(text, str) and text in RUNGS


def resolve_at_or_below(want: str, supported: Iterable[str]) -> str | None:
    """`want` if supported, else the highest supported rung below it, else the lowest rung; None without rungs."""
    offered = set(supported)
    ranked = [rung for rung in RUNGS if rung in offered]
    if want in offered and want in RUNGS:
        return want
    if want not in RUNGS or not ranked:
        return None
    below = [rung for rung in ranked if RUNGS.index(rung) < RUNGS.index(want)]
    return below[-1] if below else ranked[0]


def for_model[V](table: Mapping[str, V], model: str) -> V | None:
    """Look a model up in a per-model map: exact key, then the part before `:`, then both ignoring case."""
    if not table:
        return None
    names = (model, model.partition(":")[0])
    for name in names:
        if name in table:
            return table[name]
    for name in names:
        for key, value in table.items():
            if key.casefold() == name.casefold():
                return value
    return None


def is_chatgpt_backend(provider: ProviderConfig) -> bool:
    """The canonical native ChatGPT route: Responses wire, the caller's login, exactly this address, enabled."""
    return (
        not provider.disabled
        and provider.adapter is Adapter.OPENAI_RESPONSES
        and provider.auth_mode is AuthMode.FORWARD
        and provider.base_url.rstrip("/") == CHATGPT_BASE_URL
    )


def ladder_of(provider: ProviderConfig, model: str) -> tuple[str, ...] | None:
    """The ladder of one target: `()` for no effort control, None for unknown; order is ascending."""
    if for_model(dict.fromkeys(provider.no_reasoning_models, True), model):
        return ()
    configured = for_model(provider.model_reasoning_efforts, model)
    if configured is None:
        configured = provider.reasoning_efforts
    if configured is not None:
        return _configured(provider, model, configured)
    native = native_model(model) if is_chatgpt_backend(provider) else None
    return native.ladder if native else None


def _configured(provider: ProviderConfig, model: str, efforts: tuple[str, ...]) -> tuple[str, ...] | None:
    if not efforts:
        return ()
    kept = set(efforts).intersection(_ORDER)
    if not kept:
        return None  # a list of words that cannot be ranked says nothing
    return tuple(effort for effort in _ORDER if effort in kept | _emitted(provider, model))


def _emitted(provider: ProviderConfig, model: str) -> set[str]:
    """Rungs that the wire renames of this model produce."""
    renames = {**provider.reasoning_effort_map, **(for_model(provider.model_reasoning_effort_map, model) or {})}
    return set(renames.values()).intersection(RUNGS)
