"""The JSON shapes of the management API: bodies it takes, and answers as its description states them."""

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field
from pydantic.alias_generators import to_camel


class Shape(BaseModel):
    """Base: camelCase keys."""

    model_config = ConfigDict(alias_generator=to_camel, validate_by_name=True, hide_input_in_errors=True)


class Body(Shape):
    """Base of request bodies: strict kinds, nothing unknown."""

    model_config = ConfigDict(extra="forbid", strict=True)


class ComboPutBody(Body):
    """`combo` is a combo object of the configuration. What it leaves out is kept or reset as documented there; fields
    named in `clear` are not kept."""

    id: str
    combo: dict[str, Any]
    rename_from: str | None = None
    dry_run: bool = False
    clear: list[str] | None = None


class DryRunBody(Body):
    """Which combo, by `id` or public `model`; with `combo` as it would be with that definition, saved or not."""

    id: str | None = None
    model: str | None = None
    combo: dict[str, Any] | None = None


class DecisionTestBody(Body):
    """The method to try; neither selector means TypeSafe."""

    combo_id: str | None = None
    decision_provider: str | None = None
    decision_model: str | None = None
    decision_timeout_ms: int | None = None


class ProviderAddBody(Body):
    """`provider` is a provider object of the configuration."""

    name: str
    provider: dict[str, Any]
    set_default: bool = False


class ProviderPatchBody(Shape):
    """Fields of a provider object; null removes one, `headers` are merged."""

    model_config = ConfigDict(extra="allow")


class DisabledModelsBody(Body):
    """The models that are hidden from model lists."""

    disabled_models: list[str]


class ModelVisibilityBody(Body):
    """Hide one model, or show it again."""

    model: str
    visible: bool


class Problem(Shape):
    """One broken rule and where it is."""

    path: str
    message: str


class ErrorAnswer(Shape):
    """Every refusal. `error` is for people and `code` for programs; some codes add a field, such as `combos`."""

    error: str
    code: str
    problems: list[Problem]


class TargetRow(Shape):
    """One target of a combo; the last three only where they are set."""

    provider: str
    model: str
    weight: int
    last_resort: bool | None = None
    reasoning_efforts: list[str] | None = None
    model_profile: str | None = None


class ComboRow(Shape):
    """One combo. Further fields of the configuration appear where they differ from their default."""

    model_config = ConfigDict(extra="allow")
    id: str
    model: str
    strategy: str
    sticky_limit: int
    default_effort: str | None
    alias: str | None
    native_alias: bool
    display_name: str | None
    targets: list[TargetRow]


class CombosAnswer(Shape):
    """All combos, sorted by id."""

    combos: list[ComboRow]


class ComboSaved(Shape):
    """`combo` is the definition as stored."""

    success: Literal[True]
    id: str
    model: str
    combo: dict[str, Any]
    catalog_refresh: dict[str, Any]


class Removed(Shape):
    """What was removed."""

    success: Literal[True]
    id: str


class LastErrorRow(Shape):
    """The latest failure of a target."""

    at: int
    rule: str
    status: int | None
    result: str | None
    code: str | None


class CooldownRow(Shape):
    """A running cooldown."""

    left_ms: int
    rule: str | None
    source: str | None
    status: int | None


class TargetState(Shape):
    """One target now. `position` is its smooth weight in the rotation."""

    target: str
    provider: str
    model: str
    eligible: bool
    reason: str | None
    cooling_until: int | None
    cooldown: CooldownRow | None
    weight: int
    share: float | None
    position: int
    active: bool
    successes: int
    last_resort: bool
    dialect: str | None
    last_error: LastErrorRow | None


class ComboState(Shape):
    """One combo now. `next` is null when nothing is eligible and for random draws."""

    id: str
    model: str
    strategy: str
    next: str | None
    batch: int
    sticky_limit: int
    first_back_at: int | None
    targets: list[TargetState]


class StateAnswer(Shape):
    """All combos now."""

    generated_at: int
    generation: int
    combos: list[ComboState]


class DryRunAnswer(ComboState):
    """What the next request would do. `order`: whom it would ask, each after the one before has failed."""

    action: Literal["dispatch", "wait", "refuse"]
    wait_ms: int | None
    refusal: dict[str, Any] | None
    order: list[str]


class Cleared(Shape):
    """How many cooldowns were ended."""

    success: Literal[True]
    cleared: int


class DecisionTest(Shape):
    """What a decision said; `gate` is `apply`, or the name of what made it fail open."""

    ok: bool
    backend: str
    gate: str
    latency_ms: int
    effort: str | None = None


class DecisionDiscovery(Shape):
    """Configured decision services, and models whose name suggests one."""

    configured: list[dict[str, Any]]
    discovered: list[dict[str, Any]]


class ComboTemplate(Shape):
    """`existing` is the id of the combo that has the id or alias already; `missing` are targets that are not there."""

    id: str
    combo: dict[str, Any]
    existing: str | None
    missing: list[str]


class ProviderRow(Shape):
    """One provider. Maps of capabilities appear where they are set."""

    model_config = ConfigDict(extra="allow")
    name: str
    adapter: str
    base_url: str
    auth_mode: str
    default_model: str | None
    is_default: bool
    has_api_key: bool
    has_headers: bool
    has_proxy: bool
    allow_private_network: bool
    live_models: bool
    models: list[str]
    disabled: bool
    unusable: str | None = None
    discovery: dict[str, Any] = Field(default_factory=dict)


class PresetRow(Shape):
    """A known vendor; `auth` in a word for people."""

    id: str
    auth: str
    provider: dict[str, Any]


class PresetsAnswer(Shape):
    """The known vendors."""

    presets: list[PresetRow]


class ProviderSaved(Shape):
    """The provider as it is listed now."""

    success: Literal[True]
    name: str
    provider: ProviderRow


class ProviderTest(Shape):
    """What came of a connection test."""

    ok: bool | None = None
    applicable: bool | None = None
    reason: str | None = None
    latency_ms: int
    models: int | None = None
    message: str | None = None
    error: str | None = None


class ModelRow(Shape):
    """One model of the list."""

    id: str
    provider: str
    namespaced: str
    display_name: str | None
    disabled: bool
    native: bool | None = None
    input_modalities: list[str]
    context_window: int
    reasoning_efforts: list[str]
    default_reasoning_effort: str | None = None
    targets: list[str]


class ConfigAnswer(Shape):
    """The configuration in force without its secrets, and what is wrong with the file as it lies there."""

    path: str
    generation: int
    writable: bool
    problems: list[Problem]
    warnings: list[Problem]
    config: dict[str, Any]


class DisabledModels(Shape):
    """The models that are hidden now."""

    success: Literal[True]
    disabled_models: list[str]


class Health(Shape):
    """Who answers here."""

    status: Literal["ok"]
    service: Literal["combos"]
    version: str
    uptime: float
    pid: int
    port: int


class Readiness(Shape):
    """Whether requests are served, and how the configuration stands."""

    ready: bool
    generation: int
    combos: int
    config_valid: bool
    config_gone: bool
