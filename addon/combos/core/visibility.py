"""What `disabledModels` hides from model lists. Hidden models are still served when they are asked for by name."""

from combos.core.names import canonical_model
from combos.core.registry import Combo, Registry
from combos.core.values import dataclass


@dataclass(frozen=True, slots=True)
class Visibility:
    """The entries of `disabledModels`, read against the configured combos."""

    disabled: frozenset[str]
    aliases: frozenset[str]
    native_aliases: frozenset[str]

    @property
    def omits_hidden_natives(self) -> bool:
        """Whether disabled native rows are left out instead of marked: clients with a native allowlist would bring
        marked ones back, so that a native alias and the row it replaces appeared side by side."""
        return bool(self.native_aliases)

    def hides_combo(self, combo: Combo) -> bool:
        """`combo/<id>` always; the alias only if it is not native: a bare native slug means the dormant native row."""
        if canonical_model(combo.id) in self.disabled:
            return True
        alias = combo.config.alias
        return alias is not None and not combo.config.native_alias and alias in self.disabled

    def hides_native(self, slug: str) -> bool:
        """A bare slug, unless it is the alias of an ordinary combo: then the entry means the combo."""
        return "/" not in slug and slug in self.disabled and slug not in self.aliases - self.native_aliases

    def hides_routed(self, provider: str, model: str) -> bool:
        """`provider/model`, also with the slashes of the model written as hyphens."""
        return not self.disabled.isdisjoint((f"{provider}/{model}", f"{provider}/{model.replace('/', '-')}"))


def visibility_of(registry: Registry) -> Visibility:
    """The visibility rules of a configuration."""
    aliases = {alias: combo.config.native_alias for alias, combo in registry.aliases.items()}
    return Visibility(
        disabled=frozenset(registry.config.disabled_models),
        aliases=frozenset(aliases),
        native_aliases=frozenset(alias for alias, is_native in aliases.items() if is_native),
    )
