"""TLS towards upstreams: mitmproxy's options turned into SSL contexts, one per client certificate in use.

It decides what a connection trusts and presents. It does not know mitmproxy's options: the addon fills `TlsSettings`.
"""

import ssl
import warnings
from pathlib import Path

import certifi

from combos.core.values import dataclass

_VERSIONS = {
    "UNBOUNDED": None,
    "SSL3": ssl.TLSVersion.SSLv3,
    "TLS1": ssl.TLSVersion.TLSv1,
    "TLS1_1": ssl.TLSVersion.TLSv1_1,
    "TLS1_2": ssl.TLSVersion.TLSv1_2,
    "TLS1_3": ssl.TLSVersion.TLSv1_3,
}


class TlsError(Exception):
    """A TLS setting cannot be used; the text names the setting and the file."""


@dataclass(frozen=True, slots=True)
class TlsSettings:
    """What mitmproxy's TLS options for upstream connections say. `min_version`, `max_version`: mitmproxy's names.

    `client_certs` is a PEM file with certificate and key, or a directory with one `<host>.pem` per host.
    """

    verify: bool = True
    trusted_ca: str | None = None
    trusted_confdir: str | None = None
    client_certs: str | None = None
    min_version: str = "TLS1_2"
    max_version: str = "UNBOUNDED"
    ciphers: str | None = None
    keylog_file: str | None = None


class TlsContexts:
    """The SSL contexts of one set of settings. Keeps them, so that equal hosts share pooled connections."""

    def __init__(self, settings: TlsSettings) -> None:
        self._settings = settings
        self._by_certificate: dict[str | None, ssl.SSLContext] = {}
        self._by_host: dict[str, ssl.SSLContext] = {}

    def check(self) -> None:
        """Load every configured file now. Raises `TlsError`."""
        if self._settings == TlsSettings():
            return
        certs = self._settings.client_certs
        if certs is not None and not Path(certs).expanduser().exists():
            raise TlsError(f"client_certs: no such file or directory: {certs}")
        self._context(None if certs is None or Path(certs).expanduser().is_dir() else str(Path(certs).expanduser()))

    def for_host(self, host: str) -> ssl.SSLContext:
        """The context for connections to `host`. Raises `TlsError` when its client certificate cannot be used."""
        context = self._by_host.get(host)
        if context is None:
            context = self._by_host[host] = self._context(self._certificate_for(host))
        return context

    def _certificate_for(self, host: str) -> str | None:
        if self._settings.client_certs is None:
            return None
        path = Path(self._settings.client_certs).expanduser()
        if not path.is_dir():
            return str(path)
        # A host name comes from a URL and holds no separator; the check keeps that true here.
        candidate = path / f"{host}.pem"
        return str(candidate) if candidate.parent == path and candidate.is_file() else None

    def _context(self, certificate: str | None) -> ssl.SSLContext:
        context = self._by_certificate.get(certificate)
        if context is None:
            context = self._by_certificate[certificate] = _build(self._settings, certificate)
        return context


def _build(settings: TlsSettings, certificate: str | None) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.options |= ssl.OP_NO_COMPRESSION
    context.set_alpn_protocols(["http/1.1"])
    if not settings.verify:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    _trust(context, settings)
    _limit_versions(context, settings)
    _set_ciphers(context, settings.ciphers)
    if certificate is not None:
        _present(context, certificate)
    if settings.keylog_file is not None:
        context.keylog_filename = settings.keylog_file
    return context


def _trust(context: ssl.SSLContext, settings: TlsSettings) -> None:
    """The configured authorities replace the built-in list, as in mitmproxy."""
    file, folder = _expanded(settings.trusted_ca), _expanded(settings.trusted_confdir)
    if file is None and folder is None:
        file = certifi.where()
    elif folder is not None and not Path(folder).is_dir():
        raise TlsError(f"ssl_verify_upstream_trusted_confdir: no such directory: {folder}")
    try:
        context.load_verify_locations(cafile=file, capath=folder)
    except OSError as exc:
        raise TlsError(f"ssl_verify_upstream_trusted_ca: cannot load {file}: {exc.strerror or exc}") from exc


def _expanded(path: str | None) -> str | None:
    return None if path is None else str(Path(path).expanduser())


def _limit_versions(context: ssl.SSLContext, settings: TlsSettings) -> None:
    try:
        lowest, highest = _VERSIONS[settings.min_version], _VERSIONS[settings.max_version]
    except KeyError as exc:
        raise TlsError(f"unknown TLS version {exc.args[0]!r}") from exc
    with warnings.catch_warnings():
        # Old versions warn; the user asked for them by name.
        warnings.simplefilter("ignore", DeprecationWarning)
        try:
            context.minimum_version = lowest or ssl.TLSVersion.MINIMUM_SUPPORTED
            context.maximum_version = highest or ssl.TLSVersion.MAXIMUM_SUPPORTED
        except ValueError as exc:
            raise TlsError(f"TLS versions {settings.min_version} to {settings.max_version} are not available") from exc


def _set_ciphers(context: ssl.SSLContext, ciphers: str | None) -> None:
    if ciphers is None:
        return
    try:
        context.set_ciphers(ciphers)
    except ssl.SSLError as exc:
        raise TlsError(f"ciphers_server: no usable cipher in {ciphers!r}") from exc


def _present(context: ssl.SSLContext, certificate: str) -> None:
    try:
        context.load_cert_chain(certificate, password=_no_password)
    except (OSError, ValueError) as exc:
        raise TlsError(f"client_certs: cannot load {certificate}: {getattr(exc, 'strerror', None) or exc}") from exc
    context.post_handshake_auth = True


def _no_password() -> str:
    """Keeps OpenSSL from asking on the terminal when the key is encrypted."""
    raise ValueError("the private key is encrypted")
