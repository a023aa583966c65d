"""mitmproxy's options for upstream connections, as settings of the client session."""

import base64
from collections.abc import Iterable

from mitmproxy.options import Options
from mitmproxy.proxy.mode_specs import ProxyMode, UpstreamMode

from combos.upstream.proxies import ProxySettings
from combos.upstream.session import UpstreamSettings
from combos.upstream.tls import TlsSettings

# The options that `upstream_settings` reads: a change of any of them makes new settings.
NAMES = frozenset(
    {
        "ssl_insecure",
        "ssl_verify_upstream_trusted_ca",
        "ssl_verify_upstream_trusted_confdir",
        "client_certs",
        "tls_version_server_min",
        "tls_version_server_max",
        "ciphers_server",
        "mode",
        "upstream_auth",
    }
)


def upstream_settings(options: Options, listening: Iterable[tuple[str, int]]) -> UpstreamSettings:
    """`listening`: the addresses of the proxy itself, which are no target."""
    tls = TlsSettings(
        verify=not options.ssl_insecure,
        trusted_ca=options.ssl_verify_upstream_trusted_ca,
        trusted_confdir=options.ssl_verify_upstream_trusted_confdir,
        client_certs=options.client_certs,
        min_version=options.tls_version_server_min,
        max_version=options.tls_version_server_max,
        ciphers=options.ciphers_server,
    )
    return UpstreamSettings(tls=tls, proxy=_proxy(options), listening=tuple(listening))


def _proxy(options: Options) -> ProxySettings | None:
    """The proxy of the first `upstream:` mode; the others cannot be told apart by a target."""
    for spec in options.mode:
        mode = ProxyMode.parse(spec)
        if isinstance(mode, UpstreamMode):
            return ProxySettings(_url(mode.scheme, mode.address), _authorization(options.upstream_auth))
    return None


def _authorization(auth: str | None) -> str | None:
    return None if auth is None else "Basic " + base64.b64encode(auth.encode()).decode()


def _url(scheme: str, address: tuple[str, int]) -> str:
    host, port = address
    shown = f"[{host}]" if ":" in host else host
    return f"{scheme}://{shown}:{port}"
