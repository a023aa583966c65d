"""Credential headers of a provider: which key, in which header, and whether there is one at all.

It makes headers and never sends them; where they may go is checked where they are sent. The caller's own credentials
are returned for `authMode: forward` only; whether this caller's may be forwarded is for the caller of these functions.
"""

import asyncio
import importlib
from collections.abc import Callable, Iterable, Iterator, Mapping

from combos.core.config_provider import Adapter, AuthMode, KeyTransport, ProviderConfig
from combos.core.facts import Headers
from combos.core.registry import Provider
from combos.core.secrets import Keychain, MissingSecret, Secret, pool_secrets, provider_secret
from combos.upstream.accounts import Account, AccountFiles

NO_CREDENTIALS = "no_credentials"

# What identifies a caller towards a vendor. Proxy credentials are not among it: they are meant for us.
_CALLER_CREDENTIALS = frozenset(
    {
        b"authorization",
        b"x-api-key",
        b"x-goog-api-key",
        b"api-key",
        b"cookie",
        b"chatgpt-account-id",
        b"openai-organization",
        b"openai-project",
    }
)
_BEARER = b"Authorization"
_KEY_HEADERS = {
    Adapter.ANTHROPIC: b"x-api-key",
    Adapter.GOOGLE: b"x-goog-api-key",
    Adapter.AZURE_OPENAI: b"api-key",
}


def auth_headers(
    provider: Provider,
    environ: Mapping[str, str],
    caller_headers: Headers | None,
    keychain: Keychain | None = None,
    accounts: AccountFiles | None = None,
) -> Headers:
    """The credential headers for a provider's own host; empty when it needs none or has none.

    `caller_headers` is None when the caller's credentials must not be forwarded.
    """
    match provider.config.auth_mode:
        case AuthMode.LOCAL:
            return ()
        case AuthMode.FORWARD:
            return tuple(pair for pair in caller_headers or () if pair[0].lower() in _CALLER_CREDENTIALS)
        case AuthMode.OAUTH if provider.config.account_pool:
            tokens = (one.token for one in _accounts(provider, accounts))
            return tuple((_BEARER, b"Bearer " + token.encode()) for token in tokens)[:1]
        case _:
            secret = secret_of(provider, environ, keychain)
            return (key_header(provider.config, secret.reveal()),) if isinstance(secret, Secret) else ()


def usable(
    provider: Provider,
    environ: Mapping[str, str],
    forwardable: bool,
    keychain: Keychain | None = None,
    accounts: AccountFiles | None = None,
) -> str | None:
    """Why a provider has no credentials for a request (`no_credentials`), or None when it has what it needs.

    `forwardable`: the caller sent credentials that may go to this provider.
    """
    match provider.config.auth_mode:
        case AuthMode.LOCAL:
            return None
        case AuthMode.FORWARD:
            return None if forwardable else NO_CREDENTIALS
        case AuthMode.OAUTH if provider.config.account_pool:
            return None if any(_accounts(provider, accounts)) else NO_CREDENTIALS
        case _:
            return None if isinstance(secret_of(provider, environ, keychain), Secret) else NO_CREDENTIALS


def has_caller_credentials(headers: Headers) -> bool:
    """Whether a request carries anything that could be forwarded."""
    return any(name.lower() in _CALLER_CREDENTIALS for name, _ in headers)


def secret_of(
    provider: Provider, environ: Mapping[str, str], keychain: Keychain | None = None
) -> Secret | MissingSecret:
    """The key in use: the written one, else the first usable one of the pool, else the variable named after the row."""
    own = provider_secret(provider.name, provider.config, environ, keychain)
    if provider.config.api_key is not None and isinstance(own, Secret):
        return own
    pool = (secret for _, secret in pool_secrets(provider.config, environ, keychain))
    return next((secret for secret in pool if isinstance(secret, Secret)), own)


def _accounts(provider: Provider, accounts: AccountFiles | None) -> Iterator[Account]:
    """The accounts of a provider's pool that have a token now."""
    for row in provider.config.account_pool if accounts is not None else ():
        found = accounts.read(row.token_file) if accounts is not None else None
        if isinstance(found, Account):
            yield found


def key_header(config: ProviderConfig, key: str) -> tuple[bytes, bytes]:
    """The header field in which a key travels to its provider."""
    name = _KEY_HEADERS.get(config.adapter, _BEARER)
    if config.auth_mode is AuthMode.OAUTH or config.api_key_transport is KeyTransport.BEARER:
        name = _BEARER
    value = key.encode("utf-8")
    return (name, b"Bearer " + value if name is _BEARER else value)


# Account names in the system's keychain are the part after `keychain:`.
KEYCHAIN_SERVICE = "combos.provider-api-key.v1"


class SystemKeychain:
    """The keys behind `keychain:` references, by the optional `keyring` package, read ahead of their use.

    A keychain may ask its user or wait for a daemon, so requests look only at what `load` has read.
    """

    def __init__(self, warn: Callable[[str], None]) -> None:
        self._keys: dict[str, str] = {}
        self._warn = warn
        self._warned: set[str] = set()

    def __call__(self, name: str) -> str | None:
        """The key of `provider` or `provider/pool-id`, if it has been read."""
        return self._keys.get(name)

    async def load(self, names: Iterable[str]) -> None:
        """Read these entries in a thread and forget all others. An unreadable entry is warned about once."""
        wanted = sorted(set(names))
        read = await asyncio.to_thread(lambda: {name: read_keychain(name) for name in wanted})
        self._keys = {name: found for name, found in read.items() if isinstance(found, str)}
        for name, found in read.items():
            if not isinstance(found, str) and name not in self._warned:
                self._warned.add(name)
                self._warn(f"keychain:{name} cannot be read: {found.args[0]}")


class KeychainError(Exception):
    """An entry cannot be read; the text says why and holds no secret."""


def read_keychain(name: str) -> str | KeychainError:
    """Read one entry now; may block. The package is imported only here, because most users have none."""
    try:
        keyring = importlib.import_module("keyring")
    except ImportError:
        return KeychainError("the package keyring is not installed")
    try:
        found: str | None = keyring.get_password(KEYCHAIN_SERVICE, name)
    except Exception as exc:  # back ends of keyring raise kinds of their own
        return KeychainError(f"the keychain failed with {type(exc).__name__}")
    return found or KeychainError("there is no such entry")
