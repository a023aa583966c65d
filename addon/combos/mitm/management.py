"""The management listener of the addon: started beside the proxy, told of every turn, reached as `ocx.local` too."""

import logging
from collections.abc import Callable

from mitmproxy.http import HTTPFlow

from combos.admin.app import AdminServer, PortInUseError
from combos.admin.auth import TOKEN_HEADERS
from combos.admin.dashboard import page_routes
from combos.admin.live_config import Change
from combos.admin.parts import Parts
from combos.admin.store import ConfigStore
from combos.mitm.access import is_loopback
from combos.mitm.listener import Listener
from combos.mitm.service import Service

logger = logging.getLogger(__name__)

HOST_NAME = "ocx.local"


def server_for(service: Service, reload: Callable[[], Change]) -> AdminServer:
    """The management API over the parts of a running service."""
    discovery = service.model_lists.discovery
    parts = Parts(
        live=service.config,
        store=ConfigStore(service.config.path),
        state=service.state,
        activity=service.activity,
        now=lambda: service.now(),
        unusable=lambda provider: service.unusable(provider, may_forward=True),
        reload=reload,
        sender=service.upstream,
        secrets=service.question_credentials,
        environ=service.environ,
        discovered=lambda: discovery.rows,
        discovery_problems=lambda: discovery.problems,
        books=service.books,
        probes=service.probes,
        decider=service.decider,
    )
    server = AdminServer(parts, page_routes(), Listener(service))
    service.is_admin_token = server.is_token
    return server


async def start(server: AdminServer, listen: tuple[str, int], *, reuse_port: bool = False) -> None:
    """Listen. A port in use is one warning: the proxy serves without its management."""
    try:
        host, port = await server.start(*listen, reuse_port=reuse_port)
    except PortInUseError as error:
        hint = "(--set combos_admin_listen=… chooses another address)"
        logger.warning(f"combos: no management and no faster base URL: {error} {hint}")
    except OSError as error:
        place = f"{listen[0]}:{listen[1]}"
        logger.warning(f"combos: no management and no faster base URL on {place}: {error.strerror}")
    else:
        shown = f"[{host}]" if ":" in host else host
        logger.info(f"combos: faster base URL http://{shown}:{port}/v1, without mitmproxy's modes")
        logger.info(f"combos: dashboard on http://{shown}:{port}/ (`ocx dashboard` opens it signed in)")
        if (problem := server.token_problem) is not None:
            logger.warning(f"combos: management answers nobody: {problem.reason}; {problem.hint}")


def forward(flow: HTTPFlow, address: tuple[str, int] | None, stand_in: Callable[[str], str]) -> bool:
    """Send a request for `ocx.local` to the listener; False when it is for somebody else or nothing listens.

    Only for clients on this machine: the listener is on loopback, and stays there. The token goes on as what `stand_in`
    makes of it, so that no recorded flow holds it.
    """
    if flow.request.host.rstrip(".").lower() != HOST_NAME or address is None:
        return False
    if not is_loopback(flow.client_conn.peername[0]):
        return False
    host, port = address
    flow.request.scheme, flow.request.host, flow.request.port = "http", host, port
    flow.request.host_header = f"{f'[{host}]' if ':' in host else host}:{port}"
    for name in ("Authorization", *TOKEN_HEADERS):
        if name in flow.request.headers:
            scheme, blank, token = flow.request.headers[name].rpartition(" ")
            flow.request.headers[name] = scheme + blank + stand_in(token)
    return True
