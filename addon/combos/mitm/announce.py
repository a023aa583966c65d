"""The few lines at start-up: what is served, and how to point a client at it."""

import logging

from mitmproxy import ctx
from mitmproxy.log import ALERT

from combos.mitm.access import is_loopback
from combos.mitm.internals import listen_addresses
from combos.mitm.service import Service

logger = logging.getLogger(__name__)


def started(service: Service, *, is_demo: bool) -> None:
    """Say what is served. Exposure beyond this machine is a warning."""
    registry = service.config.registry
    models = ", ".join(f"combo/{combo}" for combo in registry.combos) or "no combos"
    source = "the built-in demonstration (no configuration file)" if is_demo else str(service.config.path)
    logger.log(ALERT, f"combos: serving {models} from {source}")
    listening = listen_addresses()
    if listening:
        host, port = _reachable(*listening[0])
        logger.info(f"combos: base URL http://{host}:{port}/v1 (Anthropic clients: without /v1)")
        logger.info(f"combos: or HTTPS_PROXY=http://{host}:{port} with the CA in {_ca_file()}")
    exposed = [host for host, _ in listening if host and not is_loopback(host)]
    if exposed or any(not host for host, _ in listening):
        logger.warning(
            "combos: the proxy listens beyond this machine; combos are served there only to holders of a configured "
            "apiKeys entry (or with proxyauth). Use --listen-host 127.0.0.1 to stay local."
        )


def _reachable(host: str, port: int) -> tuple[str, int]:
    shown = "127.0.0.1" if host in ("", "0.0.0.0", "::") else host  # noqa: S104 - compared, not bound
    return (f"[{shown}]" if ":" in shown else shown), port


def _ca_file() -> str:
    return f"{ctx.options.confdir}/mitmproxy-ca-cert.pem"
