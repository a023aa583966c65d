"""Which decision service a combo asks: its address, its model, its key; or that it cannot be asked at all.

Keys are strictly separated: those of TypeSafe go to TypeSafe's fixed address and nowhere else, a compatible row's own
key goes to that row. Environment and keychain come in as arguments; addresses behind names are judged when connecting.
"""

from collections.abc import Iterator, Mapping
from dataclasses import field

from combos.core.config_provider import Adapter, ProviderConfig
from combos.core.destinations import decision_url_fault, is_systemone_url, split_url
from combos.core.facts import Headers
from combos.core.names import TYPESAFE_PROVIDER
from combos.core.registry import Provider, Registry
from combos.core.secrets import Keychain, MissingSecret, Secret, resolve_secret, variable_of
from combos.core.values import dataclass
from combos.decision.gates import Backend, Closed, Gate

TYPESAFE_URL = "https://api.typesafe.ai/v1/systemone"
TYPESAFE_MODEL = "jev-latest"
# In the order in which they are tried when the row holds no key of its own.
TYPESAFE_VARIABLES = ("TYPESAFE_API_KEY", "JEV_API_KEY")

_KEYCHAIN = "keychain:"


class Issue(Exception):  # noqa: N818 - the word of the management interface
    """Why a compatible row cannot be used: `missing`, `disabled`, `endpoint`, `model` or `key`."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.name = name


@dataclass(frozen=True, slots=True)
class Secrets:
    """Where references to keys lead."""

    environ: Mapping[str, str] = field(repr=False)
    keychain: Keychain | None = field(default=None, repr=False)

    def find(self, provider: ProviderConfig | None) -> Secret | MissingSecret:
        """The key that a row writes or refers to."""
        return resolve_secret(None if provider is None else provider.api_key, self.environ, self.keychain)

    def variable(self, name: str) -> Secret | MissingSecret:
        """The key in a variable."""
        return resolve_secret(f"${name}", self.environ)


@dataclass(frozen=True, slots=True)
class Hosted:
    """Where TypeSafe's service is. Another place than the real one is for tests."""

    url: str = TYPESAFE_URL
    allow_private: bool = False


@dataclass(frozen=True, slots=True)
class Service:
    """A System One service that can be asked. `provider` carries address and network rules."""

    backend: Backend
    provider: Provider
    model: str
    key: Secret | None

    @property
    def url(self) -> str:
        """The endpoint."""
        return self.provider.config.base_url.rstrip("/")

    @property
    def credentials(self) -> Headers:
        """The credential header; none for a keyless row."""
        return () if self.key is None else ((b"Authorization", f"Bearer {self.key.reveal()}".encode()),)


def typesafe(registry: Registry, secrets: Secrets, hosted: Hosted) -> Service:
    """TypeSafe's service. Raises `Closed` (`missing_key`) when its row is disabled or there is no key.

    A row that was pointed elsewhere lends neither its key nor its address.
    """
    row = registry.providers.get(TYPESAFE_PROVIDER)
    if row is not None and row.config.disabled:
        raise Closed(Gate.MISSING_KEY)
    preset = row.config if row is not None and is_preset(row.config, hosted) else None
    key = next(_typesafe_keys(preset, secrets), None)
    if key is None:
        raise Closed(Gate.MISSING_KEY)
    config = preset or ProviderConfig(adapter=Adapter.JEV_DECISION, base_url=hosted.url)
    config = config.model_copy(update={"allow_private_network": hosted.allow_private})
    return Service(Backend.TYPESAFE, Provider(TYPESAFE_PROVIDER, config), TYPESAFE_MODEL, key)


def is_preset(config: ProviderConfig, hosted: Hosted) -> bool:
    """Whether the row named `jev` still is TypeSafe's service."""
    return config.adapter is Adapter.JEV_DECISION and config.base_url.rstrip("/") == hosted.url


def _typesafe_keys(preset: ProviderConfig | None, secrets: Secrets) -> Iterator[Secret]:
    found = (secrets.find(preset), *(secrets.variable(name) for name in TYPESAFE_VARIABLES))
    yield from (secret for secret in found if isinstance(secret, Secret))


def compatible(name: str, registry: Registry, secrets: Secrets, hosted: Hosted) -> Service:
    """The service behind a row other than `jev`. Raises `Closed` (`missing_key`) when it cannot be asked."""
    try:
        row, model = usable_row(name, registry)
        key = _own_key(row, registry, secrets, hosted)
    except Issue:
        raise Closed(Gate.MISSING_KEY) from None
    if decision_url_fault(row.config.base_url, allow_private=row.config.allow_private_network):
        raise Closed(Gate.NETWORK)
    return Service(Backend.SYSTEMONE, row, model, key)


def usable_row(name: str, registry: Registry) -> tuple[Provider, str]:
    """A compatible row and its decision model. Raises `Issue`."""
    row = registry.providers.get(name)
    if row is None or row.config.adapter is not Adapter.JEV_DECISION:
        raise Issue("missing")
    if row.config.disabled:
        raise Issue("disabled")
    if isinstance(split_url(row.config.base_url), str) or not is_systemone_url(row.config.base_url):
        raise Issue("endpoint")
    model = row.config.default_model or next(iter(row.config.models), None)
    if not model:
        raise Issue("model")
    return row, model


def _own_key(row: Provider, registry: Registry, secrets: Secrets, hosted: Hosted) -> Secret | None:
    """The row's own key, None for a keyless row. Raises `Issue` for one that is foreign or cannot be had."""
    written = "" if row.config.api_key is None else row.config.api_key.get_secret_value()
    if not written:
        return None
    if variable_of(written) in TYPESAFE_VARIABLES or _is_foreign_entry(written, row.name):
        raise Issue("key")
    secret = secrets.find(row.config)
    # The same key under another name is the same key.
    if isinstance(secret, MissingSecret) or secret.value in _keys_of_typesafe(registry, secrets, hosted):
        raise Issue("key")
    return secret


def _is_foreign_entry(written: str, owner: str) -> bool:
    """Whether the text refers to another provider's entry in the keychain."""
    return written.startswith(_KEYCHAIN) and written.removeprefix(_KEYCHAIN).partition("/")[0] != owner


def _keys_of_typesafe(registry: Registry, secrets: Secrets, hosted: Hosted) -> frozenset[str]:
    row = registry.providers.get(TYPESAFE_PROVIDER)
    preset = row.config if row is not None and is_preset(row.config, hosted) else None
    return frozenset(secret.value for secret in _typesafe_keys(preset, secrets))
