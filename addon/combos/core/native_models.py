"""The native OpenAI models a combo may take the name of, with what is needed to list them again afterwards.

Data only: an ordered table, never a pattern, because removing a native alias must restore exact metadata.
"""

from combos.core.values import dataclass


@dataclass(frozen=True, slots=True)
class NativeModel:
    """Pinned metadata of one native model. Sizes in tokens; None is unknown. `gated`: listed only for some accounts."""

    slug: str
    ladder: tuple[str, ...]
    default_effort: str
    context: int
    long_context: int | None
    max_output: int | None
    gated: bool = False
    modalities: tuple[str, ...] = ("text", "image")


_TO_XHIGH = ("low", "medium", "high", "xhigh")
_TO_MAX = (*_TO_XHIGH, "max")
_TO_ULTRA = (*_TO_MAX, "ultra")

NATIVE_MODELS = (
    NativeModel("gpt-5.5", _TO_XHIGH, "medium", 272_000, None, 128_000),
    NativeModel("gpt-5.6-sol", _TO_ULTRA, "low", 272_000, 922_000, 128_000),
    NativeModel("gpt-5.6-terra", _TO_ULTRA, "medium", 272_000, 922_000, 128_000),
    NativeModel("gpt-5.6-luna", _TO_MAX, "medium", 272_000, 922_000, 128_000),
    NativeModel("gpt-daybreak-blue-latest", _TO_ULTRA, "low", 272_000, 922_000, 128_000, gated=True),
    NativeModel("gpt-6-astra", _TO_ULTRA, "low", 272_000, 872_000, None),
    NativeModel("gpt-6-sol", _TO_ULTRA, "medium", 272_000, 872_000, 128_000),
    NativeModel("gpt-6-luna", _TO_MAX, "medium", 272_000, 872_000, 128_000),
    NativeModel("gpt-6-astra-minor", _TO_ULTRA, "low", 272_000, 872_000, None, gated=True),
)

_BY_SLUG = {model.slug: model for model in NATIVE_MODELS}


def native_model(slug: str) -> NativeModel | None:
    """The pinned row of a slug, exact spelling."""
    return _BY_SLUG.get(slug)
