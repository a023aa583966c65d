"""What is known about one model: its capabilities from every source, in order of trust, with the gaps filled.

Decides which source wins for one target. What a combo of several targets can do is decided by `capabilities`.
"""

from collections.abc import Sequence
from dataclasses import fields
from typing import Any

from combos.core.config_provider import ProviderConfig
from combos.core.ladder import for_model
from combos.core.native_models import NativeModel, native_model
from combos.core.registry import Target
from combos.core.values import dataclass
from combos.core.vendor_models import vendor_model

TEXT = "text"
IMAGE = "image"

# What a model without any source is taken for: small enough for every current model.
PLACEHOLDER_CONTEXT = 128_000
PLACEHOLDER_MODALITIES = (TEXT,)


@dataclass(frozen=True, slots=True)
class Capabilities:
    """What a source says about a model; None is unknown, never zero. Sizes in tokens.

    `ladder` empty means no effort control. `modalities` are input modalities. `fast`: a priority service tier exists.
    """

    context: int | None = None
    max_input: int | None = None
    max_output: int | None = None
    auto_compact: int | None = None
    modalities: tuple[str, ...] | None = None
    ladder: tuple[str, ...] | None = None
    parallel_tools: bool | None = None
    fast: bool | None = None
    summaries: bool | None = None
    verbosity: bool | None = None


_NAMES = tuple(field.name for field in fields(Capabilities))
_NOTHING = Capabilities()


@dataclass(frozen=True, slots=True)
class DiscoveredModel:
    """A row of a provider's own model list."""

    id: str
    label: str | None = None
    capabilities: Capabilities = _NOTHING


@dataclass(frozen=True, slots=True)
class Member:
    """One target of a combo with everything known about it; context and modalities are always known."""

    target: Target
    context: int
    modalities: tuple[str, ...]
    known: Capabilities

    @property
    def max_input(self) -> int:
        """Tokens of input: what is declared, else the whole context."""
        return self.known.max_input or self.context

    @property
    def auto_compact(self) -> int:
        """Tokens at which a client should compact: nine tenths of the context, or an earlier limit."""
        limits = (self.context * 9 // 10, self.context, self.known.max_input, self.known.auto_compact)
        return min(limit for limit in limits if limit is not None)


def member_of(
    target: Target, discovered: DiscoveredModel | None = None, stands_for: NativeModel | None = None
) -> Member | None:
    """The member a target contributes; None when its provider is not configured.

    Sources: the provider's list and the operator's configuration (explicit modalities and ladders of the operator win,
    of two limits the smaller one), then the native model a native alias replaces, then what is known of the vendor's
    models, then placeholders. Later sources fill gaps only.
    """
    if target.provider is None:
        return None
    listed = discovered.capabilities if discovered else _NOTHING
    operator = _operator(target.provider.config, target)
    known = filled(
        _limits(operator, listed),
        operator,
        listed,
        _pinned(stands_for, with_ladder=True),
        _pinned(native_model(target.model), with_ladder=False),
        _vendor(target.model),
    )
    context = PLACEHOLDER_CONTEXT if known.context is None else known.context
    modalities = PLACEHOLDER_MODALITIES if known.modalities is None else known.modalities
    return Member(target, context, modalities, known)


def filled(*sources: Capabilities) -> Capabilities:
    """Field by field, what the first source says that says anything."""
    present = [source for source in sources if source is not _NOTHING]
    return Capabilities(*(_first(present, name) for name in _NAMES))


def _first(sources: Sequence[Capabilities], name: str) -> Any:
    return next((value for source in sources if (value := getattr(source, name)) is not None), None)


def _limits(operator: Capabilities, listed: Capabilities) -> Capabilities:
    """The smaller of two stated limits."""
    return Capabilities(
        context=_smaller(operator.context, listed.context),
        max_input=_smaller(operator.max_input, listed.max_input),
        max_output=_smaller(operator.max_output, listed.max_output),
    )


def _smaller(one: int | None, other: int | None) -> int | None:
    if one is None or other is None:
        return other if one is None else one
    return min(one, other)


def _operator(config: ProviderConfig, target: Target) -> Capabilities:
    model = target.model
    return Capabilities(
        context=for_model(config.model_context_windows, model) or config.context_window,
        max_input=for_model(config.model_max_input_tokens, model),
        max_output=for_model(config.model_max_output_tokens, model),
        modalities=_operator_modalities(config, model),
        ladder=target.ladder,
    )


def _operator_modalities(config: ProviderConfig, model: str) -> tuple[str, ...] | None:
    configured = for_model(config.model_input_modalities, model)
    words = None if configured is None else tuple(dict.fromkeys(modality.value for modality in configured))
    if for_model(dict.fromkeys(config.no_vision_models, True), model):
        return tuple(word for word in words or PLACEHOLDER_MODALITIES if word != IMAGE)
    return words


def _pinned(native: NativeModel | None, *, with_ladder: bool) -> Capabilities:
    """A native model's metadata. Its ladder counts only for the target that stands for it: elsewhere a target whose
    ladder is unknown is dispatched as unknown, and the catalog must not promise more."""
    if native is None:
        return _NOTHING
    return Capabilities(
        context=native.context,
        max_output=native.max_output,
        modalities=native.modalities,
        ladder=native.ladder if with_ladder else None,
    )


def _vendor(model: str) -> Capabilities:
    found = vendor_model(model)
    return Capabilities(context=found.context, modalities=found.modalities) if found else _NOTHING
