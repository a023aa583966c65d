"""The members of a provider's credential pool, as header fields ready to be sent to that provider and nobody else."""

import hashlib
from collections.abc import Mapping
from dataclasses import field

from combos.core.config_provider import ProviderConfig
from combos.core.facts import Headers
from combos.core.pools import OWN_KEY, PoolKind, kind_of
from combos.core.registry import Provider
from combos.core.secrets import Keychain, Secret, pool_secrets, resolve_secret
from combos.core.values import dataclass
from combos.upstream.accounts import Account, AccountFiles
from combos.upstream.credentials import key_header

OAUTH_BETA = b"oauth-2025-04-20"
_BETA = b"anthropic-beta"


@dataclass(frozen=True, slots=True)
class Member:
    """One credential. `login` is a digest that tells it from its successor under the same name."""

    name: str
    headers: Headers = field(repr=False)
    login: bytes = field(repr=False)


def members_of(
    provider: Provider, environ: Mapping[str, str], keychain: Keychain | None, accounts: AccountFiles
) -> tuple[Member, ...]:
    """The usable members in list order; empty for a provider without a pool."""
    kind = kind_of(provider.config)
    if kind is None:
        return ()
    if kind is PoolKind.API_KEYS:
        return _keys(provider.config, environ, keychain)
    found = ((row.id, accounts.read(row.token_file)) for row in provider.config.account_pool)
    return tuple(_account(name, one, kind) for name, one in found if isinstance(one, Account))


def with_beta(headers: Headers, kind: PoolKind) -> Headers:
    """The request's own headers with what an Anthropic account needs beside them: one more beta, none lost."""
    if kind is not PoolKind.ANTHROPIC:
        return headers
    betas = [value for name, value in headers if name.lower() == _BETA]
    if any(OAUTH_BETA in (part.strip() for part in value.split(b",")) for value in betas):
        return headers
    rest = tuple(pair for pair in headers if pair[0].lower() != _BETA)
    return (*rest, (_BETA, b",".join([*betas, OAUTH_BETA])))


def _keys(config: ProviderConfig, environ: Mapping[str, str], keychain: Keychain | None) -> tuple[Member, ...]:
    named = [(name, key.reveal()) for name, key in pool_secrets(config, environ, keychain) if isinstance(key, Secret)]
    own = resolve_secret(config.api_key, environ, keychain)
    if isinstance(own, Secret) and own.reveal() not in [key for _, key in named]:
        named.insert(0, (OWN_KEY, own.reveal()))
    return tuple(Member(name, (key_header(config, key),), _digest(key)) for name, key in named)


def _account(name: str, account: Account, kind: PoolKind) -> Member:
    headers: list[tuple[bytes, bytes]] = [(b"Authorization", b"Bearer " + account.token.encode())]
    if kind is PoolKind.CODEX and account.account_id:
        headers.append((b"ChatGPT-Account-Id", account.account_id.encode()))
    # A renewed token is the same account: only another account starts anew.
    return Member(name, tuple(headers), _digest(account.account_id or name))


def _digest(text: str) -> bytes:
    return hashlib.sha256(text.encode("utf-8", "surrogateescape")).digest()
