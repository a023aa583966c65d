"""The immutable snapshot that requests are resolved against. A request keeps the one it started with."""

from collections.abc import Mapping
from dataclasses import dataclass

from combos.core.config import ComboConfig, Config, ProviderConfig
from combos.core.facts import Dialect


@dataclass(frozen=True, slots=True)
class Provider:
    """A configured provider, ready for dispatch."""

    name: str
    config: ProviderConfig


@dataclass(frozen=True, slots=True)
class Target:
    """A concrete provider/model pair. `provider` is None when the configuration names one that does not exist."""

    key: str
    provider_name: str
    model: str
    provider: Provider | None
    dialect: Dialect | None
    weight: int = 1
    last_resort: bool = False
    ladder: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True)
class Combo:
    """One virtual model."""

    id: str
    config: ComboConfig
    targets: tuple[Target, ...]


@dataclass(frozen=True, slots=True)
class ComboRoute:
    """The request is for a combo."""

    combo: Combo


@dataclass(frozen=True, slots=True)
class DirectRoute:
    """The request names one target of a configured provider: one attempt."""

    target: Target


@dataclass(frozen=True, slots=True)
class UnknownCombo:
    """The id lies in the combo namespace and is not configured."""

    id: str


type Route = ComboRoute | DirectRoute | UnknownCombo


@dataclass(frozen=True, slots=True)
class Registry:
    """A validated configuration with its indexes. `generation` grows by one with every swap."""

    generation: int
    config: Config
    providers: Mapping[str, Provider]
    combos: Mapping[str, Combo]
    aliases: Mapping[str, Combo]
