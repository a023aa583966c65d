"""The combo `jev-auto` as it is proposed to whoever sets up decisions: data, to be edited and saved like any other.

It writes nothing, and an id or alias that exists is reported instead of made a second time.
"""

from combos.core.ladder import is_chatgpt_backend
from combos.core.names import TYPESAFE_PROVIDER
from combos.core.native_models import native_model
from combos.core.registry import Provider, Registry, is_routable, known_models
from combos.core.values import dataclass
from combos.core.visibility import visibility_of

TEMPLATE_ID = "jev-auto"
PROVIDER = "openai"
MODELS = ("gpt-6-astra", "gpt-5.6-sol", "gpt-5.6-luna")


@dataclass(frozen=True, slots=True)
class Template:
    """The combo object as it stands in the file. `existing` is the id of the combo that has this id or alias already;
    `missing` are the usual targets that this installation does not have."""

    id: str
    combo: dict[str, object]
    existing: str | None
    missing: tuple[str, ...]


def jev_auto(registry: Registry, decision_provider: str | None = None) -> Template:
    """The template for this configuration. `decision_provider`: the compatible row it is made for."""
    provider = registry.providers.get(PROVIDER)
    available = [model for model in MODELS if provider is not None and _is_available(registry, provider, model)]
    combo: dict[str, object] = {"alias": TEMPLATE_ID, "strategy": "jev"}
    if decision_provider not in (None, TYPESAFE_PROVIDER):
        combo["decisionProvider"] = decision_provider
    combo["reasoningEffortMode"] = "adaptive"
    combo["targets"] = [{"provider": PROVIDER, "model": model} for model in available]
    missing = tuple(f"{PROVIDER}/{model}" for model in MODELS if model not in available)
    return Template(TEMPLATE_ID, combo, _existing(registry), missing)


def _existing(registry: Registry) -> str | None:
    if TEMPLATE_ID in registry.combos:
        return TEMPLATE_ID
    named = registry.aliases.get(TEMPLATE_ID)
    return named.id if named else None


def _is_available(registry: Registry, provider: Provider, model: str) -> bool:
    """Whether the provider is in use and has this model, as far as the configuration says."""
    if not is_routable(provider) or visibility_of(registry).hides_routed(PROVIDER, model):
        return False
    known = known_models(provider.config)
    return not known or model in known or (is_chatgpt_backend(provider.config) and native_model(model) is not None)
