"""The published model list: combos, providers' models and native models, with what they can do, in order.

Decides which rows exist, what they are called and who wins a name. Shapes of the three vendors' lists live in `wire`.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from enum import StrEnum
from urllib.parse import urlsplit

from combos.core.capabilities import Omission, Promise, promise
from combos.core.catalog_member import DiscoveredModel, Member, member_of
from combos.core.facts import Dialect
from combos.core.ladder import for_model, is_chatgpt_backend
from combos.core.names import COMBO_NAMESPACE, canonical_model
from combos.core.native_models import NATIVE_MODELS, NativeModel
from combos.core.registry import Combo, Provider, Registry, is_routable, known_models, make_target
from combos.core.values import dataclass
from combos.core.visibility import Visibility, visibility_of

NATIVE_OWNER = "openai"

_OPENAI_HOSTS = frozenset({"api.openai.com", "chatgpt.com"})
_VENDOR_HOSTS = _OPENAI_HOSTS | {"api.anthropic.com"}

type Discovered = Mapping[str, Sequence[DiscoveredModel]]
type _Found = Mapping[str, Mapping[str, DiscoveredModel]]


class RowKind(StrEnum):
    """What a row stands for."""

    NATIVE = "native"
    NATIVE_ALIAS = "native_alias"
    ROUTED = "routed"
    COMBO = "combo"


@dataclass(frozen=True, slots=True)
class CatalogRow:
    """One published model.

    `id` is what clients ask for. `namespace` and `name` identify it without aliases: `combo` and the combo id, or
    provider and model. `targets` are the keys of what may serve it. `native_tools`: every target takes the tool types
    that only OpenAI's own endpoints know. `hidden` native rows are kept for clients that have to be told so.
    """

    kind: RowKind
    id: str
    namespace: str
    name: str
    label: str | None
    can: Promise
    targets: tuple[str, ...]
    native_tools: bool = False
    hidden: bool = False

    @property
    def is_combo(self) -> bool:
        """Whether requests for it go through a combo."""
        return self.kind in (RowKind.COMBO, RowKind.NATIVE_ALIAS)


@dataclass(frozen=True, slots=True)
class Omitted:
    """A row that is not listed, and why. Equal values mean the same cause, to be reported once."""

    id: str
    reason: str


@dataclass(frozen=True, slots=True)
class Catalog:
    """All rows in order. `omitted`: rows that somebody may miss. `visibility` judges rows of vendors' own lists."""

    rows: tuple[CatalogRow, ...]
    omitted: tuple[Omitted, ...]
    visibility: Visibility
    fast_rows: bool

    @property
    def visible(self) -> tuple[CatalogRow, ...]:
        """The rows without those that are only marked as hidden."""
        return tuple(row for row in self.rows if not row.hidden)

    @property
    def combos(self) -> tuple[CatalogRow, ...]:
        """The rows that are added to a vendor's own list."""
        return tuple(row for row in self.rows if row.is_combo)


def public_id(combo: Combo) -> str:
    """The name under which a combo is listed: its alias, else `combo/<id>`."""
    return combo.config.alias or canonical_model(combo.id)


def listing_hosts(registry: Registry) -> frozenset[str]:
    """Hosts whose own model lists take the combos: the vendors' and those of the configured providers."""
    configured = (provider.config.base_url for provider in registry.providers.values() if is_routable(provider))
    return _VENDOR_HOSTS.union(urlsplit(url).hostname or "" for url in configured) - {""}


def build_catalog(registry: Registry, discovered: Discovered | None = None) -> Catalog:
    """Every row of a configuration. `discovered`: rows of the providers' own lists, as far as they are known."""
    found = {provider: {row.id: row for row in rows} for provider, rows in (discovered or {}).items()}
    visibility = visibility_of(registry)
    omitted: list[Omitted] = []
    combos = dict(_combo_rows(registry, found, visibility, omitted))
    natives = list(_native_rows(registry, found, visibility, combos))
    native_slugs = {row.id for row in natives} | set(_suppressed(visibility))
    taken = {public_id(combo) for combo in registry.combos.values()}
    others = [row for row in combos.values() if row.kind is RowKind.COMBO]
    for row in _routed_rows(registry, found, visibility):
        if row.id in taken:
            omitted.append(Omitted(row.id, "a combo has this name"))
        elif not (row.namespace == NATIVE_OWNER and row.name in native_slugs):
            others.append(row)
    others.sort(key=lambda row: (row.namespace, row.name))
    return Catalog((*natives, *others), tuple(omitted), visibility, registry.config.fast_rows)


def _combo_rows(
    registry: Registry, found: _Found, visibility: Visibility, omitted: list[Omitted]
) -> Iterator[tuple[str, CatalogRow]]:
    """Combos by public id; `omitted` collects those that cannot be listed. Hidden ones are not judged."""
    for combo in registry.combos.values():
        if visibility.hides_combo(combo):
            continue
        row = _combo_row(combo, found)
        if isinstance(row, Omission):
            omitted.append(Omitted(canonical_model(combo.id), row.value))
        else:
            yield row.id, row


def _combo_row(combo: Combo, found: _Found) -> CatalogRow | Omission:
    config = combo.config
    native = next((m for m in NATIVE_MODELS if config.native_alias and m.slug == config.alias), None)
    members = []
    for target in combo.targets:
        if target.provider is not None and target.provider.config.disabled:
            continue
        member = member_of(target, _row_of(found, target.provider_name, target.model), native)
        if member is None:
            return Omission.UNRESOLVED_TARGET
        members.append(member)
    can = promise(
        members,
        mode=config.reasoning_effort_mode,
        image_input=config.image_input,
        default_effort=config.default_effort,
        native_default=native.default_effort if native else None,
    )
    if isinstance(can, Omission):
        return can
    kind = RowKind.NATIVE_ALIAS if native else RowKind.COMBO
    return CatalogRow(
        kind,
        public_id(combo),
        COMBO_NAMESPACE,
        combo.id,
        config.display_name,
        can,
        targets=tuple(member.target.key for member in members),
        native_tools=all(_takes_native_tools(member) for member in members),
    )


def _native_rows(
    registry: Registry, found: _Found, visibility: Visibility, combos: Mapping[str, CatalogRow]
) -> Iterator[CatalogRow]:
    """The bare native slugs in their own order, each as the combo that took it, as the native model, or not at all."""
    for native in NATIVE_MODELS:
        if native.slug in combos:
            yield combos[native.slug]
            continue
        hidden = visibility.hides_native(native.slug)
        if native.slug in visibility.native_aliases or (hidden and visibility.omits_hidden_natives):
            continue
        row = _native_row(registry, found, native, hidden=hidden)
        if row is not None:
            yield row


def _suppressed(visibility: Visibility) -> Iterator[str]:
    """Native slugs that are listed under no name of their owner: a combo took them, or they are disabled."""
    for native in NATIVE_MODELS:
        if native.slug in visibility.native_aliases or visibility.hides_native(native.slug):
            yield native.slug


def _native_row(registry: Registry, found: _Found, native: NativeModel, *, hidden: bool) -> CatalogRow | None:
    """A native model, if the provider that bare native names go to has it."""
    provider = registry.providers.get(NATIVE_OWNER)
    if provider is None or not is_routable(provider):
        return None
    listed = _row_of(found, NATIVE_OWNER, native.slug)
    proven = listed is not None or native.slug in known_models(provider.config)
    if not proven and (native.gated or not is_chatgpt_backend(provider.config)):
        return None
    row = _target_row(provider, native.slug, listed, native)
    return replace(row, kind=RowKind.NATIVE, id=native.slug, hidden=hidden) if row else None


def _routed_rows(registry: Registry, found: _Found, visibility: Visibility) -> Iterator[CatalogRow]:
    for provider in registry.providers.values():
        if not is_routable(provider):
            continue
        for model in listed_models(provider, found.get(provider.name, {})):
            if not visibility.hides_routed(provider.name, model):
                row = _target_row(provider, model, _row_of(found, provider.name, model), None)
                if row is not None:
                    yield row


def listed_models(provider: Provider, discovered: Iterable[str]) -> tuple[str, ...]:
    """The models a provider is listed with: configured and discovered ones, narrowed to `selectedModels` if given."""
    config = provider.config
    models = dict.fromkeys((*known_models(config), *(discovered if config.live_models else ())))
    if config.selected_models is not None:
        chosen = {*config.selected_models, *config.retain_models}
        return tuple(model for model in models if model in chosen)
    return tuple(models)


def _target_row(
    provider: Provider, model: str, listed: DiscoveredModel | None, native: NativeModel | None
) -> CatalogRow | None:
    member = member_of(make_target(provider, model), listed, native)
    can = promise([member] if member else [], native_default=native.default_effort if native else None)
    if member is None or isinstance(can, Omission):
        return None
    label = for_model(provider.config.model_display_names, model) or (listed.label if listed else None)
    return CatalogRow(
        RowKind.ROUTED,
        member.target.key,
        provider.name,
        model,
        label,
        can,
        targets=(member.target.key,),
        native_tools=_takes_native_tools(member),
    )


def _row_of(found: _Found, provider: str, model: str) -> DiscoveredModel | None:
    return found.get(provider, {}).get(model)


def _takes_native_tools(member: Member) -> bool:
    provider = member.target.provider
    if provider is None or member.target.dialect is not Dialect.RESPONSES:
        return False
    return urlsplit(provider.config.base_url).hostname in _OPENAI_HOSTS
