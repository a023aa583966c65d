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
    """Name of a row of `providers`, exactly as it is written there."""
    model: ModelId
    """Model id as the provider spells it. It is sent as it is."""
    weight: Annotated[int, Between(1, WEIGHT_MAX)] = 1
    """Share of the target under `round-robin` and `random`, relative to the other weights of the combo."""
    last_resort: Flag = False
    """With `cooldownWaitPolicy: "before-last-resort"`: chosen only when no normal target is available."""
    reasoning_efforts: tuple[Rung, ...] | None = None
    """Efforts that strategy `jev` may choose for this target; absent: every rung of its ladder."""
    # Blank notes are ignored, so an empty one is no error.
    model_profile: Annotated[str, TextOf(0, MODEL_PROFILE_MAX, layout=True)] | None = None
    """Note for strategy `jev` on what the target is good at. It goes to whoever decides."""


class ComboConfig(ConfigModel):
    """One combo: a virtual model in front of an ordered list of targets."""

    targets: tuple[TargetConfig, ...]
    """The targets in order of preference, at least one, no provider/model pair twice."""
    strategy: Annotated[Strategy, OneOf(Strategy)] = Strategy.FAILOVER
    """How the next eligible target is chosen."""
    sticky_limit: Annotated[int, Between(1, STICKY_MAX)] = 1
    """Successes for which a selection lasts under `round-robin`."""
    cooldown_ms: Annotated[int | None, Between(1, COOLDOWN_MAX_MS)] = None
    """How long a failed target rests when the provider states no delay; absent: what suits the failure."""
    wait_for_cooldown_ms: Annotated[int, Between(0, WAIT_MAX_MS)] = 0
    """How long one request may wait for a cooling target when nothing else is left; 0: not at all."""
    cooldown_wait_policy: Annotated[CooldownWaitPolicy, OneOf(CooldownWaitPolicy)] | None = None
    """Whether targets marked `lastResort` are held back until the wait for the normal ones is over."""
    default_effort: Rung | None = None
    """Reasoning effort for requests that name none, brought down to the nearest rung a target supports."""
    default_effort_mode: Annotated[DefaultEffortMode, OneOf(DefaultEffortMode)] = DefaultEffortMode.FALLBACK
    """`fallback`: the caller's effort wins. `force`: `defaultEffort` replaces it."""
    reasoning_effort_mode: Annotated[ReasoningEffortMode, OneOf(ReasoningEffortMode)] = ReasoningEffortMode.STRICT
    """`strict`: efforts are published only if every target has them. `adaptive`: targets without effort control are
    passed over when they are published, and get requests without an effort."""
    image_input: Annotated[ImageInput, OneOf(ImageInput)] = ImageInput.AUTO
    """`auto`: images are sent on, and listed as input if every target takes them. `disabled`: they are refused."""
    alias: Annotated[str, Trimmed(TEXT_MAX)] | None = None
    """Second public name, such as `team/main`. Unique among the public names; surrounding blanks are ignored."""
    native_alias: Flag = False
    """Lets `alias` be the name of a native OpenAI model; needs `displayName`."""
    display_name: Annotated[str, Trimmed(DISPLAY_NAME_MAX)] | None = None
    """Name in model lists and pickers; surrounding blanks are ignored."""
    decision_provider: Text | None = None
    """Strategy `jev`: who decides, `jev` (TypeSafe) or a provider with adapter `jev-decision`."""
    decision_model: Annotated[str, TextOf(1, DECISION_MODEL_MAX)] | None = None
    """Strategy `jev`: a model or a combo that decides, in place of `decisionProvider`."""
    decision_timeout_ms: Annotated[int, Between(DECISION_TIMEOUT_MIN_MS, DECISION_TIMEOUT_MAX_MS)] | None = None
    """Strategy `jev`: time for the decision, connecting included; absent: 4000."""
    context_overflow: Annotated[ContextOverflow, OneOf(ContextOverflow)] = ContextOverflow.STOP
    """What a request does that is too long for a target: `stop` returns the error, `hop` tries the next target."""
    affinity: Annotated[Affinity, OneOf(Affinity)] = Affinity.NONE
    """`conversation`: the turns of a conversation stay on the target that answered last, while it is eligible."""
    first_output_timeout_ms: Annotated[int, Between(1, FIRST_OUTPUT_TIMEOUT_MAX_MS)] | None = None
    """A streaming target without output in this time is cooled and the next one asked; absent: off."""
    hedge_after_ms: Annotated[int, Between(1, HEDGE_MAX_MS)] | None = None
    """A second target is asked beside a first one that is silent for this time; absent: off."""

    @property
    def decision_deadline_ms(self) -> int:
        """Milliseconds a decision may take before the combo fails open."""
        return self.decision_timeout_ms or DECISION_TIMEOUT_DEFAULT_MS
