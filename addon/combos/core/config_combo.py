"""The combo object of the configuration: one virtual model and its ordered targets.

Single fields only. Rules over more than one field or more than one object live in `config_rules`.
"""

from enum import StrEnum
from typing import Annotated

from combos.core.config_types import Between, ConfigModel, Flag, ModelId, OneOf, Rung, Text, TextOf, Trimmed
from combos.core.limits import (
    COOLDOWN_MAX_MS,
    DECISION_MODEL_MAX,
    DECISION_TIMEOUT_DEFAULT_MS,
    DECISION_TIMEOUT_MAX_MS,
    DECISION_TIMEOUT_MIN_MS,
    DISPLAY_NAME_MAX,
    FIRST_OUTPUT_TIMEOUT_MAX_MS,
    HEDGE_MAX_MS,
    MODEL_PROFILE_MAX,
    STICKY_MAX,
    TEXT_MAX,
    WAIT_MAX_MS,
    WEIGHT_MAX,
)


class Strategy(StrEnum):
    """How the next eligible target is chosen."""

    FAILOVER = "failover"
    ROUND_ROBIN = "round-robin"
    RANDOM = "random"
    LEAST_USED = "least-used"
    RESET_WINDOW = "reset-window"
    JEV = "jev"


class CooldownWaitPolicy(StrEnum):
    """When targets marked `lastResort` are used."""

    BEFORE_LAST_RESORT = "before-last-resort"


class DefaultEffortMode(StrEnum):
    """Whether the configured effort yields to the caller's."""

    FALLBACK = "fallback"
    FORCE = "force"


class ReasoningEffortMode(StrEnum):
    """What targets without effort control do to the published ladder."""

    STRICT = "strict"
    ADAPTIVE = "adaptive"


class ImageInput(StrEnum):
    """Whether images are accepted."""

    AUTO = "auto"
    DISABLED = "disabled"


class ContextOverflow(StrEnum):
    """Whether a request that is too long for one target is tried on the next."""

    STOP = "stop"
    HOP = "hop"


class Affinity(StrEnum):
    """Whether the turns of a conversation stay on the target that served it last."""

    NONE = "none"
    CONVERSATION = "conversation"


class TargetConfig(ConfigModel):
    """One concrete provider/model pair."""

    provider: Text
    model: ModelId
    weight: Annotated[int, Between(1, WEIGHT_MAX)] = 1
    last_resort: Flag = False
    reasoning_efforts: tuple[Rung, ...] | None = None
    # Blank notes are ignored, so an empty one is no error.
    model_profile: Annotated[str, TextOf(0, MODEL_PROFILE_MAX, layout=True)] | None = None


class ComboConfig(ConfigModel):
    """One combo. `cooldown_ms` None means: the fallback of the failure's class."""

    targets: tuple[TargetConfig, ...]
    strategy: Annotated[Strategy, OneOf(Strategy)] = Strategy.FAILOVER
    sticky_limit: Annotated[int, Between(1, STICKY_MAX)] = 1
    cooldown_ms: Annotated[int | None, Between(1, COOLDOWN_MAX_MS)] = None
    wait_for_cooldown_ms: Annotated[int, Between(0, WAIT_MAX_MS)] = 0
    cooldown_wait_policy: Annotated[CooldownWaitPolicy, OneOf(CooldownWaitPolicy)] | None = None
    default_effort: Rung | None = None
    default_effort_mode: Annotated[DefaultEffortMode, OneOf(DefaultEffortMode)] = DefaultEffortMode.FALLBACK
    reasoning_effort_mode: Annotated[ReasoningEffortMode, OneOf(ReasoningEffortMode)] = ReasoningEffortMode.STRICT
    image_input: Annotated[ImageInput, OneOf(ImageInput)] = ImageInput.AUTO
    alias: Annotated[str, Trimmed(TEXT_MAX)] | None = None
    native_alias: Flag = False
    display_name: Annotated[str, Trimmed(DISPLAY_NAME_MAX)] | None = None
    decision_provider: Text | None = None
    decision_model: Annotated[str, TextOf(1, DECISION_MODEL_MAX)] | None = None
    decision_timeout_ms: Annotated[int, Between(DECISION_TIMEOUT_MIN_MS, DECISION_TIMEOUT_MAX_MS)] | None = None
    context_overflow: Annotated[ContextOverflow, OneOf(ContextOverflow)] = ContextOverflow.STOP
    affinity: Annotated[Affinity, OneOf(Affinity)] = Affinity.NONE
    first_output_timeout_ms: Annotated[int, Between(1, FIRST_OUTPUT_TIMEOUT_MAX_MS)] | None = None
    hedge_after_ms: Annotated[int, Between(1, HEDGE_MAX_MS)] | None = None

    @property
    def decision_deadline_ms(self) -> int:
        """Milliseconds a decision may take before the combo fails open."""
        return self.decision_timeout_ms or DECISION_TIMEOUT_DEFAULT_MS
