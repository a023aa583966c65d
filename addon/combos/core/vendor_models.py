"""Public facts about vendors' model families, for targets of which neither their list nor the operator says more.

Data only, and cautious: the smallest context of a family, and inputs that every member of it accepts.
"""

from combos.core.values import dataclass


@dataclass(frozen=True, slots=True)
class VendorModels:
    """A family, recognised by the beginning of the last part of the model id. Context in tokens."""

    prefix: str
    context: int
    modalities: tuple[str, ...]


_SEEING = ("text", "image")

VENDOR_MODELS = (
    VendorModels("claude-", 200_000, _SEEING),
    VendorModels("gemini-", 1_048_576, _SEEING),
    VendorModels("gpt-5", 272_000, _SEEING),
    VendorModels("gpt-6", 272_000, _SEEING),
    VendorModels("gpt-4.1", 1_047_576, _SEEING),
    VendorModels("gpt-4o", 128_000, _SEEING),
)


def vendor_model(model: str) -> VendorModels | None:
    """The family of a model id such as `claude-opus-4-8` or `anthropic/claude-opus-4.8`; None for others."""
    name = model.rpartition("/")[2].lower()
    return next((family for family in VENDOR_MODELS if name.startswith(family.prefix)), None)
