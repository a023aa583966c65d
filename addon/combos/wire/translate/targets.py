"""The profile of a configured target: its adapter's row, its model's rows, and what the operator said of the model."""

from combos.core.config_provider import Modality, ProviderConfig
from combos.core.ladder import for_model
from combos.core.registry import Target, is_canonical_chatgpt
from combos.wire.translate.profile import ADAPTERS, TargetProfile, profile_for


def target_profile(target: Target) -> TargetProfile | None:
    """What a target accepts; None for one without a provider, or whose provider answers no model request."""
    provider = target.provider
    if provider is None or target.adapter is None or target.adapter not in ADAPTERS:
        return None
    config, model = provider.config, target.model
    flags: dict[str, object] = {
        "text_only": _is_text_only(config, model),
        "canonical": is_canonical_chatgpt(provider),
        "max_output_tokens": for_model(config.model_max_output_tokens, model) or config.default_max_output_tokens,
    }
    if target.ladder == ():
        flags["effort"] = False
    return profile_for(target.adapter.value, target.key, flags)


def _is_text_only(config: ProviderConfig, model: str) -> bool:
    if for_model(dict.fromkeys(config.no_vision_models, True), model):
        return True
    modalities = for_model(config.model_input_modalities, model)
    return modalities is not None and Modality.IMAGE not in modalities
