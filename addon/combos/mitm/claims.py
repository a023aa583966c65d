"""What is noted on a flow while it is on its way: that its body is held, and who answers it.

Plain attributes and not metadata: metadata is written to flow files.
"""

import logging
import traceback
from pathlib import Path

from mitmproxy.http import HTTPFlow

from combos.mitm.writer import Responder

logger = logging.getLogger(__name__)

_RESPONDER = "combos_responder"
_HELD = "combos_request_held"
_ANSWERED = "combos_answered"
_AT_LISTENER = "combos_at_listener"


def hold_request(flow: HTTPFlow) -> None:
    """Call in `requestheaders`: the body is collected whole, whatever `stream_large_bodies` says.

    A request that is streamed upstream reaches the `request` hook too late for any responder.
    """
    flow.request.stream = False
    vars(flow)[_HELD] = True


def is_held(flow: HTTPFlow) -> bool:
    """Whether the request's body is collected whole."""
    return _HELD in vars(flow)


def respond_with(flow: HTTPFlow, responder: Responder) -> None:
    """Call in `request`: the responder makes the answer, no server is connected.

    A response that another addon sets in the same hook wins. RuntimeError: the request is being streamed upstream.
    """
    if flow.request.stream:
        raise RuntimeError("the request has already been streamed to its server")
    vars(flow)[_RESPONDER] = responder


def take_responder(flow: HTTPFlow) -> Responder | None:
    """The responder, for whoever runs it now; None when there is none."""
    responder: Responder | None = vars(flow).pop(_RESPONDER, None)
    if responder is not None:
        vars(flow)[_ANSWERED] = True
    return responder


def is_answered_here(flow: HTTPFlow) -> bool:
    """Whether a responder makes, or made, the answer."""
    return _ANSWERED in vars(flow)


def enter_at_listener(flow: HTTPFlow) -> None:
    """Note that the request reached the listener, not a port of the proxy."""
    vars(flow)[_AT_LISTENER] = True


def is_at_listener(flow: HTTPFlow) -> bool:
    """Whether the request reached the listener, not a port of the proxy."""
    return _AT_LISTENER in vars(flow)


def log_failure(flow: HTTPFlow, error: Exception) -> None:
    """Report that a responder failed: where, not what, because the text of an exception may quote a body or a key."""
    frames = traceback.extract_tb(error.__traceback__)[-4:]
    where = " > ".join(f"{Path(frame.filename).name}:{frame.lineno} {frame.name}" for frame in frames)
    logger.error("The response of flow %s failed: %s at %s", flow.id, type(error).__name__, where)
