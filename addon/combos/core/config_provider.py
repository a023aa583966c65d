"""The provider object of the configuration: where a vendor is reached, how it is authenticated, what its models can do.

Single fields only. Rules over more than one field or more than one object live in `config_rules`.
"""

from collections.abc import Mapping
from enum import StrEnum
from typing import Annotated

from pydantic import Field

from combos.core.config_types import (
    Between,
    ConfigModel,
    Cost,
    Flag,
    Instant,
    Key,
    LongText,
    Millis,
    ModelId,
    OneOf,
    Text,
    TextOrTexts,
    Tokens,
    Trimmed,
    Url,
)
from combos.core.limits import CONNECT_TIMEOUT_MS, HEAD_TIMEOUT_MS, IDLE_TIMEOUT_MS, PACING_MAX, TEXT_MAX, WAIT_MAX_MS


class Adapter(StrEnum):
    """The wire format and authentication of a provider."""

    OPENAI_RESPONSES = "openai-responses"
    OPENAI_CHAT = "openai-chat"
    ANTHROPIC = "anthropic"
    GOOGLE = "google"
    AZURE_OPENAI = "azure-openai"
    OLLAMA_NATIVE = "ollama-native"
    JEV_DECISION = "jev-decision"


class AuthMode(StrEnum):
    """Whose credential a provider gets: a configured key, the caller's, a stored token, none."""

    KEY = "key"
    FORWARD = "forward"
    OAUTH = "oauth"
    LOCAL = "local"


class PoolStrategy(StrEnum):
    """How the next key of a pool is chosen."""

    ROUND_ROBIN = "round-robin"
    FILL_FIRST = "fill-first"
    QUOTA = "quota"


class KeyTransport(StrEnum):
    """The header an Anthropic key travels in."""

    X_API_KEY = "x-api-key"
    BEARER = "bearer"


class HttpVersion(StrEnum):
    """Pin of the HTTP version towards a provider."""

    AUTO = "auto"
    HTTP1 = "http1.1"
    HTTP2 = "http2"


class Modality(StrEnum):
    """A kind of input a model accepts."""

    TEXT = "text"
    IMAGE = "image"
    AUDIO = "audio"
    VIDEO = "video"
    FILE = "file"


type AdapterName = Annotated[Adapter, OneOf(Adapter, (("azure", Adapter.AZURE_OPENAI.value),))]
type ModelList = tuple[ModelId, ...]


class PoolKey(ConfigModel):
    """One key of a pool."""

    id: Text
    key: Key
    label: LongText | None = None
    added_at: Annotated[int | str, Instant()] | None = None


class AccountFile(ConfigModel):
    """One signed-in account: the token file that its own client keeps. It is read, never written."""

    id: Text
    token_file: Text
    label: LongText | None = None


class ModelCost(ConfigModel):
    """Prices in USD per million tokens, for display and budgets."""

    input: Cost | None = None
    output: Cost | None = None
    cache_read: Cost | None = None
    cache_write: Cost | None = None


class PacingRule(ConfigModel):
    """How fast requests may be started."""

    requests_per_minute: Annotated[int, Between(1, PACING_MAX)] | None = None
    min_interval_ms: Annotated[int, Between(0, WAIT_MAX_MS)] | None = None
    max_concurrent_requests: Annotated[int, Between(1, PACING_MAX)] | None = None


class RequestPacing(PacingRule):
    """Pacing of a provider, with exceptions for single models."""

    enabled: Flag = True
    models: Mapping[ModelId, PacingRule] = Field(default_factory=dict)


class ProviderConfig(ConfigModel):
    """One provider. Per-model maps are keyed by model id; look them up with `ladder.for_model`."""

    adapter: AdapterName
    base_url: Url
    auth_mode: Annotated[AuthMode, OneOf(AuthMode)] = AuthMode.KEY
    api_key: Key | None = None
    api_key_pool: tuple[PoolKey, ...] = ()
    api_key_pool_strategy: Annotated[PoolStrategy, OneOf(PoolStrategy)] | None = None
    account_pool: tuple[AccountFile, ...] = ()
    api_key_transport: Annotated[KeyTransport, OneOf(KeyTransport)] = KeyTransport.X_API_KEY
    headers: Mapping[str, str] = Field(default_factory=dict, repr=False)

    disabled: Flag = False
    allow_private_network: Flag = False
    connect_timeout_ms: Millis = CONNECT_TIMEOUT_MS
    head_timeout_ms: Millis = HEAD_TIMEOUT_MS
    idle_timeout_ms: Millis = IDLE_TIMEOUT_MS
    proxy: Url | None = Field(default=None, repr=False)
    no_proxy: Annotated[str | tuple[str, ...], TextOrTexts()] | None = None
    request_pacing: RequestPacing | None = None
    upstream_http_version: Annotated[
        HttpVersion, OneOf(HttpVersion, (("h1", HttpVersion.HTTP1.value), ("h2", HttpVersion.HTTP2.value)))
    ] = HttpVersion.AUTO

    models: ModelList = ()
    default_model: ModelId | None = None
    live_models: Flag = True
    selected_models: ModelList | None = None
    retain_models: ModelList = ()
    alias: Annotated[str, Trimmed(TEXT_MAX)] | None = None
    model_aliases: Mapping[ModelId, Text] = Field(default_factory=dict)
    model_display_names: Mapping[ModelId, Text] = Field(default_factory=dict)
    model_adapters: Mapping[ModelId, AdapterName] = Field(default_factory=dict)
    model_costs: Mapping[ModelId, ModelCost] = Field(default_factory=dict)

    context_window: Tokens | None = None
    model_context_windows: Mapping[ModelId, Tokens] = Field(default_factory=dict)
    model_max_input_tokens: Mapping[ModelId, Tokens] = Field(default_factory=dict)
    model_max_output_tokens: Mapping[ModelId, Tokens] = Field(default_factory=dict)
    default_max_output_tokens: Tokens | None = None
    model_input_modalities: Mapping[ModelId, tuple[Annotated[Modality, OneOf(Modality)], ...]] = Field(
        default_factory=dict
    )
    no_vision_models: ModelList = ()

    reasoning_efforts: tuple[Text, ...] | None = None
    model_reasoning_efforts: Mapping[ModelId, tuple[Text, ...]] = Field(default_factory=dict)
    no_reasoning_models: ModelList = ()
    model_default_reasoning_efforts: Mapping[ModelId, Text] = Field(default_factory=dict)
    pinned_reasoning_effort: Text | None = None
    reasoning_effort_map: Mapping[Text, Text] = Field(default_factory=dict)
    model_reasoning_effort_map: Mapping[ModelId, Mapping[Text, Text]] = Field(default_factory=dict)
