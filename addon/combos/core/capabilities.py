"""What a combo of several members can promise: the least of their limits, the intersection of their abilities.

Decides the published capabilities and when a combo cannot be listed. It is still routable then.
"""

from collections.abc import Sequence
from enum import StrEnum

from combos.core.catalog_member import IMAGE, Member
from combos.core.config_combo import ImageInput, ReasoningEffortMode
from combos.core.ladder import resolve_at_or_below
from combos.core.values import dataclass


class Omission(StrEnum):
    """Why a combo is not listed."""

    NO_TARGETS = "no_targets"
    DUPLICATE_TARGETS = "duplicate_targets"
    UNRESOLVED_TARGET = "unresolved_target"
    NO_CONTEXT = "no_context_window"
    NO_MODALITY = "no_common_input_modality"


@dataclass(frozen=True, slots=True)
class Promise:
    """Capabilities of a published row. Sizes in tokens; None of a flag means that nothing is claimed."""

    context: int
    max_input: int
    max_output: int | None
    auto_compact: int
    modalities: tuple[str, ...]
    ladder: tuple[str, ...]
    default_effort: str | None
    parallel_tools: bool | None
    fast: bool | None
    summaries: bool | None
    verbosity: bool | None


def promise(
    members: Sequence[Member],
    *,
    mode: ReasoningEffortMode = ReasoningEffortMode.STRICT,
    image_input: ImageInput = ImageInput.AUTO,
    default_effort: str | None = None,
    native_default: str | None = None,
) -> Promise | Omission:
    """What these members promise together, or why they promise nothing.

    `native_default`: the default of the native model they stand for, used when no default effort is configured.
    """
    if not members:
        return Omission.NO_TARGETS
    if len({member.target.key for member in members}) < len(members):
        return Omission.DUPLICATE_TARGETS
    context = min(member.context for member in members)
    if context <= 0:
        return Omission.NO_CONTEXT
    modalities = common_modalities([member.modalities for member in members], image_input)
    if not modalities:
        return Omission.NO_MODALITY
    known = [member.known for member in members]
    ladder = published_ladder([facts.ladder for facts in known], mode)
    outputs = [facts.max_output for facts in known if facts.max_output is not None]
    return Promise(
        context=context,
        max_input=min(context, *(member.max_input for member in members)),
        max_output=min(outputs) if len(outputs) == len(members) else None,
        auto_compact=min(member.auto_compact for member in members),
        modalities=modalities,
        ladder=ladder,
        default_effort=_default(ladder, default_effort, native_default),
        parallel_tools=_agreed([facts.parallel_tools for facts in known]),
        fast=_agreed([facts.fast for facts in known]),
        summaries=_agreed([facts.summaries for facts in known]),
        verbosity=_agreed([facts.verbosity for facts in known]),
    )


def common_modalities(sources: Sequence[tuple[str, ...]], image_input: ImageInput) -> tuple[str, ...]:
    """The input modalities of all, in the order of the first."""
    first, *others = sources
    refused = {IMAGE} if image_input is ImageInput.DISABLED else set()
    return tuple(word for word in first if word not in refused and all(word in other for other in others))


def published_ladder(ladders: Sequence[tuple[str, ...] | None], mode: ReasoningEffortMode) -> tuple[str, ...]:
    """The efforts that all share. Unknown ladders do not count; `adaptive` leaves out empty ones as well."""
    counted = [ladder for ladder in ladders if ladder is not None]
    if mode is ReasoningEffortMode.ADAPTIVE:
        counted = [ladder for ladder in counted if ladder]
    if not counted:
        return ()
    first, *others = counted
    return tuple(effort for effort in first if all(effort in other for other in others))


def _default(ladder: tuple[str, ...], configured: str | None, native: str | None) -> str | None:
    if configured is not None:
        return resolve_at_or_below(configured, ladder)
    return native if native in ladder else None


def _agreed(flags: Sequence[bool | None]) -> bool | None:
    """False when one says no, True when all say yes, else nothing."""
    if any(flag is False for flag in flags):
        return False
    return True if all(flags) else None
