"""Rules of provider objects that need more than one field: names, destinations, headers, keys, authentication."""

import re
from collections.abc import Iterator

from pydantic import SecretStr

from combos.core.config_problems import problem
from combos.core.config_provider import Adapter, AuthMode, ProviderConfig
from combos.core.config_view import ConfigView
from combos.core.destinations import base_url_fault, decision_url_fault, proxy_url_fault
from combos.core.errors import ConfigProblem
from combos.core.facts import Surface
from combos.core.limits import ACCOUNTS_MAX, HEADER_VALUE_MAX, HEADERS_MAX
from combos.core.names import COMBO_NAMESPACE, RESERVED_PROVIDER_NAMES, is_combo_id, is_provider_name, is_reserved_alias
from combos.core.secrets import secret_fault

_TOKEN = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")
_HEADER_TEXT = re.compile(r"[\t\x20-\x7e\x80-\xff]*")

# Credentials belong into apiKey, where they are hidden and resolved.
_CREDENTIAL_HEADERS = frozenset(
    {
        "authorization",
        "cookie",
        "set-cookie",
        "proxy-authorization",
        "x-api-key",
        "x-goog-api-key",
        "x-amz-security-token",
    }
)
# What the exchange itself writes; a second value would break the framing.
_TRANSPORT_HEADERS = frozenset(
    {"host", "connection", "content-length", "transfer-encoding", "te", "trailer", "upgrade", "keep-alive"}
)


def provider_names(view: ConfigView) -> Iterator[ConfigProblem]:
    """Names of providers are well formed and not reserved; `combo` is taken by the combos."""
    for name in sorted(view.provider_names):
        parts = ("providers", name)
        if name in RESERVED_PROVIDER_NAMES:
            yield problem(parts, "is a reserved name")
        elif not is_provider_name(name):
            yield problem(
                parts,
                "name must have 1 to 64 letters, digits, dots, underscores or hyphens"
                " and begin and end with a letter or digit",
            )
        elif name == COMBO_NAMESPACE and view.combo_ids:
            yield problem(parts, "name is taken by the combo namespace while combos are configured")


def destinations(view: ConfigView) -> Iterator[ConfigProblem]:
    """Base URLs and proxies are whole URLs; private hosts need `allowPrivateNetwork`, metadata hosts are refused."""
    for name, row in view.providers.items():
        fault = base_url_fault(row.base_url, allow_private=row.allow_private_network)
        if fault is None and row.adapter is Adapter.JEV_DECISION:
            fault = decision_url_fault(row.base_url, allow_private=row.allow_private_network)
        if fault:
            yield problem(("providers", name, "baseUrl"), fault)
        proxy = proxy_url_fault(row.proxy) if row.proxy is not None else None
        if proxy:
            yield problem(("providers", name, "proxy"), proxy)


def base_urls(view: ConfigView) -> Iterator[ConfigProblem]:
    """A base URL ends before the path of the endpoint, such as `/chat/completions`, which is added to it."""
    for name, row in view.providers.items():
        path = row.base_url.rstrip("/")
        end = next((f"/{surface}" for surface in Surface if path.endswith(f"/{surface}")), None)
        if end is not None and row.adapter is not Adapter.JEV_DECISION:
            yield problem(("providers", name, "baseUrl"), f"ends in {end}, to which the endpoint's path is added again")


def headers(view: ConfigView) -> Iterator[ConfigProblem]:
    """Names and values can stand in a header line; none is a credential or belongs to the transport; 64 at most."""
    for name, row in view.providers.items():
        path = ("providers", name, "headers")
        if len(row.headers) > HEADERS_MAX:
            yield problem(path, f"must have at most {HEADERS_MAX} headers, got {len(row.headers)}")
        seen: set[str] = set()
        for header, value in row.headers.items():
            fault = _header_name_fault(header, seen) or _header_value_fault(value)
            seen.add(header.lower())
            if fault:
                yield problem((*path, header), fault)


def _header_name_fault(header: str, seen: set[str]) -> str | None:
    name = header.lower()
    if not _TOKEN.fullmatch(header):
        return "is not a header name"
    if name in _CREDENTIAL_HEADERS:
        return "carries a credential: use apiKey"
    if name in _TRANSPORT_HEADERS:
        return "is written by the transport and cannot be configured"
    return "is given twice in different case" if name in seen else None


def _header_value_fault(value: str) -> str | None:
    if len(value) > HEADER_VALUE_MAX:
        return f"value must have at most {HEADER_VALUE_MAX} characters, got {len(value)}"
    if not _HEADER_TEXT.fullmatch(value):
        return "value must not hold line breaks, control characters or characters outside Latin-1"
    return "value must not begin or end with blanks" if value != value.strip() else None


def keys(view: ConfigView) -> Iterator[ConfigProblem]:
    """References are whole and well formed; pool ids are unique."""
    for name, row in view.providers.items():
        yield from _key(("providers", name, "apiKey"), row.api_key)
        ids: set[str] = set()
        for index, entry in enumerate(row.api_key_pool):
            path = ("providers", name, "apiKeyPool", index)
            yield from _key((*path, "key"), entry.key)
            if entry.id in ids:
                yield problem((*path, "id"), "must be unique in the pool")
            ids.add(entry.id)
    for index, admission in enumerate(view.config.api_keys):
        yield from _key(("apiKeys", index), admission.key)


def accounts(view: ConfigView) -> Iterator[ConfigProblem]:
    """An `accountPool` has `authMode: "oauth"`, unique ids, whole paths and at most 64 accounts."""
    for name, row in view.providers.items():
        path = ("providers", name, "accountPool")
        if row.account_pool and row.auth_mode is not AuthMode.OAUTH:
            yield problem(path, 'needs authMode "oauth"')
        if len(row.account_pool) > ACCOUNTS_MAX:
            yield problem(path, f"must have at most {ACCOUNTS_MAX} accounts, got {len(row.account_pool)}")
        ids: set[str] = set()
        for index, account in enumerate(row.account_pool):
            if account.id in ids:
                yield problem((*path, index, "id"), "must be unique in the pool")
            ids.add(account.id)
            if not account.token_file.startswith(("/", "~/")) and ":" not in account.token_file[:3]:
                yield problem((*path, index, "tokenFile"), "must be a whole path, or begin with ~/")


def _key(parts: tuple[str | int, ...], key: SecretStr | None) -> Iterator[ConfigProblem]:
    fault = secret_fault(key.get_secret_value()) if key is not None else None
    if fault:
        yield problem(parts, fault)


def authentication(view: ConfigView) -> Iterator[ConfigProblem]:
    """`authMode: "forward"` is for `openai-responses`, `apiKeyTransport` for `anthropic` with `authMode: "key"`."""
    for name, row in view.providers.items():
        if row.auth_mode is AuthMode.FORWARD and row.adapter is not Adapter.OPENAI_RESPONSES:
            yield problem(("providers", name, "authMode"), 'must not be "forward" unless adapter is openai-responses')
        if "api_key_transport" in row.model_fields_set and not _sends_anthropic_key(row):
            yield problem(
                ("providers", name, "apiKeyTransport"), "is only for adapter anthropic with authMode key; remove it"
            )


def _sends_anthropic_key(row: ProviderConfig) -> bool:
    return row.adapter is Adapter.ANTHROPIC and row.auth_mode is AuthMode.KEY


def public_names(view: ConfigView) -> Iterator[ConfigProblem]:
    """Provider aliases stand before a slash; model aliases must stay out of the combo namespace."""
    for name, row in view.providers.items():
        if row.alias is not None and not is_combo_id(row.alias):
            yield problem(
                ("providers", name, "alias"),
                "must have 1 to 64 letters, digits, dots, underscores or hyphens and begin with a letter or digit",
            )
        elif row.alias is not None and row.alias.casefold() == COMBO_NAMESPACE:
            yield problem(("providers", name, "alias"), "is taken by the combo namespace")
        for model, alias in row.model_aliases.items():
            if is_reserved_alias(alias):
                yield problem(("providers", name, "modelAliases", model), "must not lie in the combo namespace")
