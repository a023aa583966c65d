"""The few lines at start-up: what is served, and how to point a client at it."""

import logging

from mitmproxy import ctx
from mitmproxy.log import ALERT
from mitmproxy.proxy.mode_specs import (
    DnsMode,
    LocalMode,
    ProxyMode,
    RegularMode,
    ReverseMode,
    Socks5Mode,
    TransparentMode,
    TunMode,
    UpstreamMode,
    WireGuardMode,
)

from combos.mitm.access import is_loopback
from combos.mitm.internals import listening_modes
from combos.mitm.service import Service

logger = logging.getLogger(__name__)

_BASE_URL = "base URL http://{place}/v1 (Anthropic clients: without /v1)"

# How a client of the mode comes to combos; `{place}` is where the mode listens.
_WAYS: tuple[tuple[type[ProxyMode], tuple[str, ...]], ...] = (
    (RegularMode, (_BASE_URL, "or HTTPS_PROXY=http://{place} with the CA in {ca}")),
    (UpstreamMode, (_BASE_URL, "or HTTPS_PROXY=http://{place} with the CA in {ca}")),
    (ReverseMode, (_BASE_URL,)),
    (Socks5Mode, ("ALL_PROXY=socks5h://{place} with the CA in {ca}",)),
    (TransparentMode, ("vendors' hosts, diverted to {place}, with the CA in {ca}",)),
    (WireGuardMode, ("vendors' hosts, from devices in the WireGuard tunnel at {place}, with the CA in {ca}",)),
    (LocalMode, ("vendors' hosts, from captured programs, with the CA in {ca}",)),
    (TunMode, ("vendors' hosts, through the TUN interface, with the CA in {ca}",)),
)
_WEB_SCHEMES = ("http", "https")

# Their clients have proved a key already, or ask for no models.
_NOT_EXPOSED = (WireGuardMode, DnsMode)


def started(service: Service, *, is_demo: bool) -> None:
    """Say what is served. Exposure beyond this machine is a warning."""
    registry = service.config.registry
    models = ", ".join(f"combo/{combo}" for combo in registry.combos) or "no combos"
    source = "the built-in demonstration (no configuration file)" if is_demo else str(service.config.path)
    logger.log(ALERT, f"combos: serving {models} from {source}")
    listening = listening_modes()
    for mode, address in listening:
        for way in ways(mode, address):
            logger.info(f"combos: {way}")
    if any(_is_exposed(mode, address) for mode, address in listening):
        logger.warning(
            "combos: the proxy listens beyond this machine; combos are served there only to holders of a configured "
            "apiKeys entry (or with proxyauth). Use --listen-host 127.0.0.1 to stay local."
        )


def ways(mode: ProxyMode, address: tuple[str, int] | None) -> list[str]:
    """How clients reach combos in the mode; nothing for one that serves none."""
    if isinstance(mode, ReverseMode) and mode.scheme not in _WEB_SCHEMES:
        return []
    place = "" if address is None else _reachable(*address)
    texts = next((texts for kind, texts in _WAYS if isinstance(mode, kind)), ())
    return [text.format(place=place, ca=_ca_file()) for text in texts]


def _is_exposed(mode: ProxyMode, address: tuple[str, int] | None) -> bool:
    return address is not None and not isinstance(mode, _NOT_EXPOSED) and not is_loopback(address[0])


def _reachable(host: str, port: int) -> str:
    shown = "127.0.0.1" if host in ("", "0.0.0.0", "::") else host  # noqa: S104 - compared, not bound
    return f"[{shown}]:{port}" if ":" in shown else f"{shown}:{port}"


def _ca_file() -> str:
    return f"{ctx.options.confdir}/mitmproxy-ca-cert.pem"
