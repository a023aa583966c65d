"""The immutable snapshot that requests are resolved against. A request keeps the one it started with.

Says which combo or target a model id names. Whether the target can be used right now is decided by eligibility.
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import field, replace

from combos.core.config import ComboConfig, Config, ProviderConfig
from combos.core.config_combo import Affinity, CooldownWaitPolicy, Strategy, TargetConfig
from combos.core.config_provider import Adapter
from combos.core.facts import Dialect
from combos.core.ladder import RUNGS, for_model, is_chatgpt_backend, ladder_of
from combos.core.names import COMBO_NAMESPACE, canonical_model, combo_id_of, is_native_route, split_selector, target_key
from combos.core.values import dataclass

FAST_SUFFIX = "--fast"
FAST_TIER = "priority"
_SUFFIX_EFFORTS = frozenset(("minimal", *RUNGS))
_NATIVE_PROVIDER = "openai"

_DIALECTS: Mapping[Adapter, Dialect] = {
    Adapter.OPENAI_RESPONSES: Dialect.RESPONSES,
    Adapter.AZURE_OPENAI: Dialect.RESPONSES,
    Adapter.OPENAI_CHAT: Dialect.CHAT,
    Adapter.OLLAMA_NATIVE: Dialect.CHAT,
    Adapter.ANTHROPIC: Dialect.MESSAGES,
    Adapter.GOOGLE: Dialect.GEMINI,
}

# The strategies that take the first eligible target: `jev` for every pick that no decision has settled.
_IN_ORDER = (Strategy.FAILOVER, Strategy.JEV)

# Bare ids of these families belong to a provider of this name, or of this name with a suffix (`groq-team`).
_FAMILIES = (("claude-", "anthropic"), ("llama-", "groq"), ("mixtral-", "groq"), ("gemma-", "groq"))


@dataclass(frozen=True, slots=True)
class Provider:
    """A configured provider, ready for dispatch.

    What every request asks of its configuration is worked out once: `base` is the address without slashes at its end,
    `is_chatgpt` the native ChatGPT backend, `stated` the fields that the file sets.
    """

    name: str
    config: ProviderConfig
    base: str = field(init=False, repr=False, compare=False)
    is_chatgpt: bool = field(init=False, repr=False, compare=False)
    stated: frozenset[str] = field(init=False, repr=False, compare=False)
    _with_adapter: dict[Adapter, "Provider"] = field(init=False, repr=False, compare=False, default_factory=dict)

    def __post_init__(self) -> None:
        object.__setattr__(self, "base", self.config.base_url.rstrip("/"))
        object.__setattr__(self, "is_chatgpt", is_chatgpt_backend(self.config))
        object.__setattr__(self, "stated", frozenset(self.config.model_fields_set))

    def with_adapter(self, adapter: Adapter | None) -> "Provider":
        """This provider with the adapter of one of its models: always the same object, this one where it is its own."""
        if adapter is None or adapter is self.config.adapter:
            return self
        made = self._with_adapter.get(adapter)
        if made is None:
            made = replace(self, config=self.config.model_copy(update={"adapter": adapter}))
            self._with_adapter[adapter] = made
        return made


@dataclass(frozen=True, slots=True)
class Target:
    """A concrete provider/model pair. `provider` is None when the configuration names one that does not exist.

    `dialect` is None as well then, and for decision services, which answer no model request.
    """

    key: str
    provider_name: str
    model: str
    provider: Provider | None
    dialect: Dialect | None
    weight: int = 1
    last_resort: bool = False
    ladder: tuple[str, ...] | None = None
    adapter: Adapter | None = None


@dataclass(frozen=True, slots=True)
class Combo:
    """One virtual model.

    Worked out once: `normal` are the targets before which last resorts stand back, all of them where none does; `first`
    is the one that a request goes to whenever it is eligible, None where that hangs on more; `shared` are the providers
    of more than one target.
    """

    id: str
    config: ComboConfig
    targets: tuple[Target, ...]
    normal: tuple[Target, ...] = field(init=False, repr=False, compare=False)
    first: Target | None = field(init=False, repr=False, compare=False)
    shared: frozenset[str] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        normal = tuple(target for target in self.targets if not target.last_resort)
        defers = self.config.cooldown_wait_policy is CooldownWaitPolicy.BEFORE_LAST_RESORT and normal
        object.__setattr__(self, "normal", normal if defers else self.targets)
        object.__setattr__(self, "first", self.normal[0] if self.is_in_order and self.normal else None)
        names = Counter(target.provider_name for target in self.targets)
        object.__setattr__(self, "shared", frozenset(name for name, count in names.items() if count > 1))

    @property
    def is_in_order(self) -> bool:
        """Whether the first eligible target is the chosen one, so that nobody need look at those behind it."""
        return self.config.strategy in _IN_ORDER and self.config.affinity is not Affinity.CONVERSATION


@dataclass(frozen=True, slots=True)
class ComboRoute:
    """The request is for a combo. `service_tier` and `effort` are what a suffix of the model id asks for."""

    combo: Combo
    service_tier: str | None = None
    effort: str | None = None


@dataclass(frozen=True, slots=True)
class DirectRoute:
    """The request names one target of a configured provider: one attempt. Suffix effects as in `ComboRoute`."""

    target: Target
    service_tier: str | None = None
    effort: str | None = None


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
    provider_aliases: Mapping[str, Provider] = field(default_factory=dict)
    names: Mapping[str, ComboRoute] = field(init=False, repr=False, compare=False)
    """Where the names of combos lead as they are configured: `combo/<id>` and aliases. What most requests ask for."""

    def __post_init__(self) -> None:
        aliases = {name: combo for name, combo in self.aliases.items() if combo_id_of(name) is None}
        named = {**aliases, **{canonical_model(combo_id): combo for combo_id, combo in self.combos.items()}}
        object.__setattr__(self, "names", {name: ComboRoute(combo) for name, combo in named.items()})

    def resolve(self, model: str) -> Route | None:
        """What an explicit id names: a combo, an alias, `provider/model`. None: not one of ours, pass it on.

        Ids are compared exactly; only provider aliases ignore case. A suffix (`--fast`, `--<effort>`) counts when the
        whole id is not known and the rest of it names something.
        """
        if (combo := self.names.get(model)) is not None:
            return combo
        if self._is_known(model):
            return self._explicit(model)
        for base, tier, effort in self._variants(model):
            if self._is_base(base):
                return _with_effects(self._explicit(base), tier, effort)
        return self._explicit(model)

    @property
    def target_keys(self) -> tuple[str, ...]:
        """`provider/model` of every target of any combo, each once."""
        return tuple(dict.fromkeys(target.key for combo in self.combos.values() for target in combo.targets))

    def resolve_bare(self, model: str) -> DirectRoute | None:
        """The target of an id without a selector: native family, default models, families, lists, aliases, default.

        Only for requests that came to the proxy as their base URL, after `resolve` returned None. None: not found.
        """
        if not model or self._is_account_qualified(model):
            return None
        if not self._listed(model):
            for base, tier, effort in self._variants(model):
                if is_native_route(base) or self._listed(base):
                    return _with_effects(self._bare(base), tier, effort)
        return self._bare(model)

    def _explicit(self, model: str) -> Route | None:
        combo_id = combo_id_of(model)
        if combo_id is not None and not (not self.combos and COMBO_NAMESPACE in self.providers):
            combo = self.combos.get(combo_id)
            return ComboRoute(combo) if combo else UnknownCombo(combo_id)
        if model in self.aliases:
            return ComboRoute(self.aliases[model])
        return self._selected(model)

    def _selected(self, model: str) -> DirectRoute | None:
        """`provider/model`, the provider by exact name or by its alias."""
        selector = split_selector(model)
        if selector is None or self._is_account_qualified(model):
            return None
        provider = self._provider(selector.provider)
        if provider is None:
            return None
        known = known_models(provider.config)
        name = model if model in known else _model_behind(provider.config, selector.model)
        return DirectRoute(make_target(provider, name))

    def _provider(self, name: str) -> Provider | None:
        provider = self.providers.get(name) or self.provider_aliases.get(name.casefold())
        return provider if provider and provider.config.adapter is not Adapter.JEV_DECISION else None

    def _is_account_qualified(self, model: str) -> bool:
        return "/" in model and model.partition("/")[0] in self.config.codex_account_namespaces

    def _is_known(self, model: str) -> bool:
        """An id that is configured as it stands, so that its end is no suffix."""
        if model in self.aliases or combo_id_of(model) in self.combos:
            return True
        selector = split_selector(model)
        provider = self._provider(selector.provider) if selector else None
        if selector is None or provider is None:
            return False
        known = known_models(provider.config)
        return model in known or selector.model in known or selector.model in provider.config.model_aliases.values()

    def _is_base(self, model: str) -> bool:
        """An id that a suffix may be attached to: a known one, or anything of an enabled provider."""
        if self._is_known(model):
            return True
        route = self._selected(model) if combo_id_of(model) is None else None
        provider = route.target.provider if route else None
        return provider is not None and not provider.config.disabled

    def _variants(self, model: str) -> list[tuple[str, str | None, str | None]]:
        """The readings of a suffixed id: rest, service tier, effort. Suffixes do not add up."""
        base, separator, word = model.rpartition("--")
        if not separator or not base:
            return []
        if word == FAST_SUFFIX.removeprefix("--") and self.config.fast_rows:
            return [(base, FAST_TIER, None)]
        if word in _SUFFIX_EFFORTS and self.config.cursor_effort_rows:
            return [(base, None, word)]
        return []

    def _bare(self, model: str) -> DirectRoute | None:
        if is_native_route(model):
            native = self.providers.get(_NATIVE_PROVIDER)
            return DirectRoute(make_target(native, model)) if native and not native.config.disabled else None
        found = self._listed(model, families=True)
        if not found:
            default = self.providers.get(self.config.default_provider or "")
            found = (DirectRoute(make_target(default, model)),) if default and default in self._routable() else ()
        return found[0] if len(found) == 1 else None

    def _listed(self, model: str, *, families: bool = False) -> tuple[DirectRoute, ...]:
        """The providers that name this id, by the first row that any provider meets; several only for an alias."""
        routable = self._routable()
        rows = (
            [(p, model) for p in routable if p.config.default_model == model][:1],
            [(p, model) for p in routable if families and _is_family(model, p.name)][:1],
            [(p, model) for p in routable if model in p.config.models][:1],
            [(p, name) for p in routable for name, alias in p.config.model_aliases.items() if alias == model],
        )
        row = next((row for row in rows if row), [])
        return tuple(DirectRoute(make_target(provider, name)) for provider, name in row)

    def _routable(self) -> list[Provider]:
        return [provider for provider in self.providers.values() if is_routable(provider)]


def build_registry(config: Config, generation: int) -> Registry:
    """Index a valid configuration."""
    providers = {name: Provider(name, provider) for name, provider in config.providers.items()}
    combos = {combo_id: _combo(combo_id, combo, providers) for combo_id, combo in config.combos.items()}
    aliases: dict[str, Combo] = {}
    for combo in combos.values():
        if combo.config.alias:
            aliases.setdefault(combo.config.alias, combo)
    return Registry(generation, config, providers, combos, aliases, _unique_aliases(providers))


def make_target(provider: Provider, model: str) -> Target:
    """A target of a configured provider, with the wire format and the effort ladder of its model."""
    adapter = adapter_for(provider.config, model)
    return Target(
        key=target_key(provider.name, model),
        provider_name=provider.name,
        model=model,
        provider=provider,
        dialect=_DIALECTS.get(adapter),
        ladder=ladder_of(provider.config, model),
        adapter=adapter,
    )


def adapter_for(provider: ProviderConfig, model: str) -> Adapter:
    """The adapter of one model: its own override, else the provider's."""
    return for_model(provider.model_adapters, model) or provider.adapter


def is_canonical_chatgpt(provider: Provider) -> bool:
    """The only kind of provider that can read a task encrypted for the native ChatGPT backend."""
    return provider.is_chatgpt


def is_routable(provider: Provider) -> bool:
    """Enabled, and a provider of models: a decision service answers no model request."""
    return not provider.config.disabled and provider.config.adapter is not Adapter.JEV_DECISION


def known_models(provider: ProviderConfig) -> frozenset[str]:
    """The ids that the configuration says this provider has."""
    default = (provider.default_model,) if provider.default_model else ()
    return frozenset((*provider.models, *provider.retain_models, *(provider.selected_models or ()), *default))


def _combo(combo_id: str, config: ComboConfig, providers: Mapping[str, Provider]) -> Combo:
    return Combo(combo_id, config, tuple(_target(target, providers) for target in config.targets))


def _target(config: TargetConfig, providers: Mapping[str, Provider]) -> Target:
    provider = providers.get(config.provider)
    if provider is None:
        key = target_key(config.provider, config.model)
        bare = Target(key, config.provider, config.model, provider=None, dialect=None)
    else:
        bare = make_target(provider, config.model)
    return replace(bare, weight=config.weight, last_resort=config.last_resort)


def _unique_aliases(providers: Mapping[str, Provider]) -> dict[str, Provider]:
    """Provider aliases, case folded; one that two providers claim names neither."""
    claims: dict[str, list[Provider]] = {}
    for provider in providers.values():
        if provider.config.alias:
            claims.setdefault(provider.config.alias.casefold(), []).append(provider)
    return {alias: claimed[0] for alias, claimed in claims.items() if len(claimed) == 1}


def _model_behind(provider: ProviderConfig, name: str) -> str:
    """The model id behind a name used with this provider: itself, or what its public alias stands for."""
    if name in known_models(provider):
        return name
    return next((model for model, alias in provider.model_aliases.items() if alias == name), name)


def _is_family(model: str, provider_name: str) -> bool:
    return any(
        model.startswith(prefix) and (provider_name == owner or provider_name.startswith(f"{owner}-"))
        for prefix, owner in _FAMILIES
    )


def _with_effects[R: Route | None](route: R, tier: str | None, effort: str | None) -> R:
    if isinstance(route, ComboRoute | DirectRoute):
        return replace(route, service_tier=tier, effort=effort)
    return route
