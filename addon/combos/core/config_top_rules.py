"""Rules of the top level of the configuration: default provider, account namespaces, browser origins, hosts."""

import re
from collections.abc import Iterator
from urllib.parse import urlsplit

from combos.core.config_problems import problem
from combos.core.config_types import near_miss
from combos.core.config_view import ConfigView
from combos.core.errors import ConfigProblem
from combos.core.names import RESERVED_ACCOUNT_NAMESPACES, is_combo_id

_HOST = re.compile(r"[A-Za-z0-9]([A-Za-z0-9.-]*[A-Za-z0-9])?|[0-9A-Fa-f:]*:[0-9A-Fa-f:.]*")


def default_provider(view: ConfigView) -> Iterator[ConfigProblem]:
    """`defaultProvider` names a provider of this file that answers model requests."""
    name = view.config.default_provider
    if name is None:
        return
    if name not in view.provider_names:
        near = near_miss(name, sorted(view.provider_names))
        yield problem(("defaultProvider",), f"is not a configured provider{near}")
    elif view.is_decision_row(name):
        yield problem(("defaultProvider",), "is a decision service and answers no model request")


def account_namespaces(view: ConfigView) -> Iterator[ConfigProblem]:
    """Names are well formed and stand for nothing else before a slash."""
    providers = {name.casefold() for name in view.provider_names}
    for name in view.config.codex_account_namespaces:
        path = ("codexAccountNamespaces", name)
        if not is_combo_id(name):
            yield problem(
                path,
                "name must have 1 to 64 letters, digits, dots, underscores or hyphens and begin with a letter or digit",
            )
        elif name.casefold() in RESERVED_ACCOUNT_NAMESPACES:
            yield problem(path, "is a reserved name")
        elif name.casefold() in providers:
            yield problem(path, "is the name of a provider (case is ignored)")


def origins(view: ConfigView) -> Iterator[ConfigProblem]:
    """Origins are written as browsers send them: `https://host[:port]` or `http://…`."""
    for index, origin in enumerate(view.config.cors_allow_origins):
        if not _is_origin(origin):
            yield problem(
                ("corsAllowOrigins", index), "must be an origin: https://host or http://host, with :port if any"
            )


def exempt_hosts(view: ConfigView) -> Iterator[ConfigProblem]:
    """A host is a bare name or address: no scheme, no path, no port, no pattern."""
    for index, host in enumerate(view.config.selector_exempt_hosts):
        if not _HOST.fullmatch(host):
            yield problem(("selectorExemptHosts", index), "must be the name or address of a host, nothing around it")


def _is_origin(text: str) -> bool:
    try:
        parts = urlsplit(text)
        port_is_valid = parts.port != 0
    except ValueError:
        return False
    host = parts.netloc
    bare = text == f"{parts.scheme}://{host}" and "@" not in host and not host.endswith(":")
    return bare and parts.scheme in ("http", "https") and bool(parts.hostname) and port_is_valid and " " not in host
