"""What the rules between objects look at: the valid parts of a configuration, and all names of the document.

Names are kept also where their object is broken, so that one fault does not make every reference to it a second one.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING

from combos.core.config_combo import ComboConfig
from combos.core.config_provider import Adapter, ProviderConfig
from combos.core.errors import ConfigProblem
from combos.core.values import dataclass

if TYPE_CHECKING:
    from combos.core.config import Config


@dataclass(frozen=True, slots=True)
class ConfigView:
    """Parts to be judged together."""

    config: "Config"
    provider_names: frozenset[str]
    combo_ids: frozenset[str]

    @property
    def providers(self) -> Mapping[str, ProviderConfig]:
        """The providers whose fields are valid."""
        return self.config.providers

    @property
    def combos(self) -> Mapping[str, ComboConfig]:
        """The combos whose fields are valid."""
        return self.config.combos

    def is_decision_row(self, provider: str) -> bool:
        """Whether a provider is a decision service, which answers no model request."""
        row = self.providers.get(provider)
        return row is not None and row.adapter is Adapter.JEV_DECISION

    def provider_by_alias(self, name: str) -> str | None:
        """The only provider with this alias, ignoring case."""
        found = [key for key, row in self.providers.items() if row.alias and row.alias.casefold() == name.casefold()]
        return found[0] if len(found) == 1 else None


type Rule = Callable[[ConfigView], Iterator[ConfigProblem]]
