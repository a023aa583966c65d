"""A provider as the API and the command line list it. No key and no header value, whatever was asked."""

from collections.abc import Mapping
from typing import Any

from combos.core.config import Config, ProviderConfig
from combos.core.config_document import key_names, to_document

# Shown as they are when they are set: what the provider's models can do.
_CAPABILITIES = (
    "selectedModels",
    "retainModels",
    "alias",
    "modelAliases",
    "modelDisplayNames",
    "modelAdapters",
    "modelCosts",
    "contextWindow",
    "modelContextWindows",
    "modelMaxInputTokens",
    "modelMaxOutputTokens",
    "defaultMaxOutputTokens",
    "modelInputModalities",
    "noVisionModels",
    "reasoningEfforts",
    "modelReasoningEfforts",
    "noReasoningModels",
    "modelDefaultReasoningEfforts",
    "pinnedReasoningEffort",
)


def provider_row(name: str, provider: ProviderConfig, *, is_default: bool) -> dict[str, Any]:
    """One row, ready for JSON, without what only a running proxy knows."""
    attributes = {key: attribute for attribute, key in key_names(ProviderConfig).items()}
    capabilities = {key: to_document(getattr(provider, attributes[key])) for key in _CAPABILITIES}
    return {
        "name": name,
        "adapter": provider.adapter.value,
        "baseUrl": provider.base_url,
        "authMode": provider.auth_mode.value,
        "defaultModel": provider.default_model,
        "isDefault": is_default,
        "hasApiKey": provider.api_key is not None or bool(provider.api_key_pool),
        "hasHeaders": bool(provider.headers),
        "hasProxy": provider.proxy is not None,
        "allowPrivateNetwork": provider.allow_private_network,
        "liveModels": provider.live_models,
        "models": list(provider.models),
        "disabled": provider.disabled,
        **{key: value for key, value in capabilities.items() if value},
    }


def provider_rows(config: Config, live: Mapping[str, Mapping[str, Any]] | None = None) -> list[dict[str, Any]]:
    """All rows in file order; `live` adds by name what a running proxy knows."""
    rows = []
    for name, provider in config.providers.items():
        row = provider_row(name, provider, is_default=config.default_provider == name)
        rows.append(row | dict((live or {}).get(name, {})))
    return rows
