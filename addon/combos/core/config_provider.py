"""The provider object of the configuration: where a vendor is reached, how it is authenticated, what its models can do.

Single fields only. Rules over more than one field or more than one object live in `config_rules`.
"""

from collections.abc import Mapping
from enum import StrEnum
from typing import Annotated, Any

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


def _without_default(schema: dict[str, Any]) -> None:
    """A field of the JSON schema that an option stands in for when it is absent."""
    del schema["default"]


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
    """Name of the key in records; unique in the pool."""
    key: Key
    """The key, or a reference to it."""
    label: LongText | None = None
    """Note for people."""
    added_at: Annotated[int | str, Instant()] | None = None
    """When it was added, for people."""


class AccountFile(ConfigModel):
    """One signed-in account: the token file that its own client keeps. It is read, never written."""

    id: Text
    """Name of the account in records; unique in the pool."""
    token_file: Text
    """File with the account's token: a whole path, or one that begins with `~/`."""
    label: LongText | None = None
    """Note for people."""


class ModelCost(ConfigModel):
    """Prices in USD per million tokens, for display and budgets."""

    input: Cost | None = None
    """Input that no cache served."""
    output: Cost | None = None
    """Output, thoughts included."""
    cache_read: Cost | None = None
    """Input read from the provider's cache; absent: the price of input."""
    cache_write: Cost | None = None
    """Input written to the provider's cache; absent: the price of input."""


class PacingRule(ConfigModel):
    """How fast requests may be started."""

    requests_per_minute: Annotated[int, Between(1, PACING_MAX)] | None = None
    """Requests started per minute."""
    min_interval_ms: Annotated[int, Between(0, WAIT_MAX_MS)] | None = None
    """Time between two starts."""
    max_concurrent_requests: Annotated[int, Between(1, PACING_MAX)] | None = None
    """Requests under way at one time."""


class RequestPacing(PacingRule):
    """Pacing of a provider, with exceptions for single models."""

    enabled: Flag = True
    """Whether it counts."""
    models: Mapping[ModelId, PacingRule] = Field(default_factory=dict)
    """Other values for single models."""


class ProviderConfig(ConfigModel):
    """One provider. Maps by model id match exactly, then without what follows a `:`, then without regard to case."""

    adapter: AdapterName
    """Wire format and key header of the vendor."""
    base_url: Url
    """Address of its API. Surface paths are added to it; query, user and fragment are not allowed."""
    auth_mode: Annotated[AuthMode, OneOf(AuthMode)] = AuthMode.KEY
    """`key`: the configured key. `forward`: the caller's own login. `oauth`: stored tokens. `local`: none."""
    api_key: Key | None = None
    """The key, `${NAME}`, or `keychain:<provider>`; absent: the variable `<NAME>_API_KEY` named after the row."""
    api_key_pool: tuple[PoolKey, ...] = ()
    """Further keys; a request goes on to another one when its key is refused or limited."""
    api_key_pool_strategy: Annotated[PoolStrategy, OneOf(PoolStrategy)] | None = None
    """Which key a request begins with; absent: one key until it fails."""
    account_pool: tuple[AccountFile, ...] = ()
    """With `authMode: "oauth"`: signed-in accounts, by the token files that their own clients keep."""
    api_key_transport: Annotated[KeyTransport, OneOf(KeyTransport)] = KeyTransport.X_API_KEY
    """The header of the key; adapter `anthropic` with `authMode: "key"` only."""
    headers: Mapping[str, str] = Field(default_factory=dict, repr=False)
    """Further header fields of every request, 64 at most. Credentials belong into `apiKey`."""

    disabled: Flag = False
    """Switched off: no target of it is eligible."""
    allow_private_network: Flag = False
    """Allows addresses on this machine and in private networks. Metadata services stay forbidden."""
    connect_timeout_ms: Millis = Field(default=CONNECT_TIMEOUT_MS, json_schema_extra=_without_default)
    """Time to connect, name resolution and TLS included; absent: the option `combos_connect_timeout_ms`."""
    head_timeout_ms: Millis = Field(default=HEAD_TIMEOUT_MS, json_schema_extra=_without_default)
    """Time for the head of an answer; absent: the option `combos_head_timeout_ms`."""
    idle_timeout_ms: Millis = Field(default=IDLE_TIMEOUT_MS, json_schema_extra=_without_default)
    """Time for which an answer may be silent; absent: the option `combos_idle_timeout_ms`."""
    proxy: Url | None = Field(default=None, repr=False)
    """Proxy towards this vendor: `http://[user:password@]host:port` or `https://…`."""
    no_proxy: Annotated[str | tuple[str, ...], TextOrTexts()] | None = None
    """Hosts, networks or domains, with `:port` if needed, that are reached without any proxy; `*`: all."""
    request_pacing: RequestPacing | None = None
    """Kept for OpenCodex; requests are not paced here."""
    upstream_http_version: Annotated[
        HttpVersion, OneOf(HttpVersion, (("h1", HttpVersion.HTTP1.value), ("h2", HttpVersion.HTTP2.value)))
    ] = HttpVersion.AUTO
    """Kept for OpenCodex; requests to vendors use HTTP/1.1."""

    models: ModelList = ()
    """Model ids it has, for lists and selectors. Targets may name others."""
    default_model: ModelId | None = None
    """Model that a bare name may lead to, and that a decision service is asked for."""
    live_models: Flag = True
    """Whether its own model list is read."""
    selected_models: ModelList | None = None
    """Only these of its models are listed."""
    retain_models: ModelList = ()
    """Models that are listed although `selectedModels` leaves them out."""
    alias: Annotated[str, Trimmed(TEXT_MAX)] | None = None
    """Second name before the slash of selectors."""
    model_aliases: Mapping[ModelId, Text] = Field(default_factory=dict)
    """Public names of its models, by model id."""
    model_display_names: Mapping[ModelId, Text] = Field(default_factory=dict)
    """Names in lists, by model id."""
    model_adapters: Mapping[ModelId, AdapterName] = Field(default_factory=dict)
    """Wire formats of models that differ from `adapter`."""
    model_costs: Mapping[ModelId, ModelCost] = Field(default_factory=dict)
    """Prices by model id, in US dollars per million tokens."""

    context_window: Tokens | None = None
    """Context of its models in tokens, for lists."""
    model_context_windows: Mapping[ModelId, Tokens] = Field(default_factory=dict)
    """Context by model id, in tokens."""
    model_max_input_tokens: Mapping[ModelId, Tokens] = Field(default_factory=dict)
    """Longest input by model id, in tokens, for lists."""
    model_max_output_tokens: Mapping[ModelId, Tokens] = Field(default_factory=dict)
    """Longest output by model id, in tokens: for lists, and where a translated request has to state one."""
    default_max_output_tokens: Tokens | None = None
    """Longest output of models without an entry of their own, where a translated request has to state one."""
    model_input_modalities: Mapping[ModelId, tuple[Annotated[Modality, OneOf(Modality)], ...]] = Field(
        default_factory=dict
    )
    """What models accept, by model id."""
    no_vision_models: ModelList = ()
    """Models that take no images."""

    reasoning_efforts: tuple[Text, ...] | None = None
    """Effort ladder of its models; `[]`: no effort control, absent: unknown."""
    model_reasoning_efforts: Mapping[ModelId, tuple[Text, ...]] = Field(default_factory=dict)
    """Effort ladders by model id."""
    no_reasoning_models: ModelList = ()
    """Models without effort control."""
    model_default_reasoning_efforts: Mapping[ModelId, Text] = Field(default_factory=dict)
    """Kept for OpenCodex; a combo's `defaultEffort` decides here."""
    pinned_reasoning_effort: Text | None = None
    """Kept for OpenCodex; a combo's `defaultEffort` with `defaultEffortMode: "force"` does this here."""
    reasoning_effort_map: Mapping[Text, Text] = Field(default_factory=dict)
    """Other words for efforts towards this provider; `__omit__` leaves the effort out."""
    model_reasoning_effort_map: Mapping[ModelId, Mapping[Text, Text]] = Field(default_factory=dict)
    """Other words for efforts, by model id; an entry wins over `reasoningEffortMap`."""
