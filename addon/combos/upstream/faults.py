"""The border to the network libraries: every exception kind they raise, in every phase, becomes one transport fault.

It knows exception classes of aiohttp, ssl and the operating system and nothing of requests, secrets or policy. Texts of
foreign exceptions are not passed on, because some of them quote URLs: a detail is a fixed phrase, and for errors of the
operating system and of TLS their own reason.
"""

import errno
import ssl
from collections.abc import Callable, Iterator
from enum import StrEnum
from typing import NamedTuple

import aiohttp
from aiohttp import http_exceptions as http

from combos.core.facts import TransportFault


class Phase(StrEnum):
    """How far an exchange has come."""

    CONNECT = "connect"
    HEAD = "head"
    BODY = "body"


class UpstreamFault(Exception):  # noqa: N818 - a fault is the word of the specification
    """An exchange broke. `fault` is the kind; `detail` is one line for people, without secrets."""

    def __init__(self, fault: TransportFault, detail: str) -> None:
        super().__init__(fault, detail)
        self.fault = fault
        self.detail = detail

    def __str__(self) -> str:
        return f"{self.fault}: {self.detail}"


_RESET_KINDS = (ConnectionResetError, ConnectionAbortedError, BrokenPipeError)


class _Row(NamedTuple):
    name: str
    phases: frozenset[Phase]
    matches: Callable[[BaseException], bool]
    fault: TransportFault
    phrase: str


def chain(exc: BaseException) -> Iterator[BaseException]:
    """The exception, what an aiohttp connector error wraps, and its causes, outermost first, each once."""
    seen: set[int] = set()
    pending: list[BaseException | None] = [exc]
    while pending:
        current = pending.pop(0)
        if current is None or id(current) in seen:
            continue
        seen.add(id(current))
        yield current
        if isinstance(current, aiohttp.ClientConnectorCertificateError):
            pending.append(current.certificate_error)
        elif isinstance(current, aiohttp.ClientConnectorError):
            pending.append(current.os_error)
        pending.append(current.__cause__)


def _is(*kinds: type[BaseException]) -> Callable[[BaseException], bool]:
    return lambda exc: any(isinstance(link, kinds) for link in chain(exc))


def _has_errno(*codes: int) -> Callable[[BaseException], bool]:
    return lambda exc: any(isinstance(link, OSError) and link.errno in codes for link in chain(exc))


def _is_handshake_break(exc: BaseException) -> bool:
    """A reset while connecting with TLS comes from the handshake: TCP alone is refused or times out."""
    return (
        isinstance(exc, aiohttp.ClientConnectorError)
        and isinstance(exc.ssl, ssl.SSLContext)
        and any(isinstance(link, _RESET_KINDS) for link in chain(exc))
    )


def _is_oversized(exc: BaseException) -> bool:
    """A head beyond the limits. Too many lines have the same class as bad ones and another text."""
    return any(
        isinstance(link, http.LineTooLong)
        or (isinstance(link, http.BadHttpMessage) and "Too many headers" in link.message)
        for link in chain(exc)
    )


def _is_truncated(exc: BaseException) -> bool:
    """A body that ended before its announced length. A broken chunk has the same class and another text."""
    return any(
        isinstance(link, http.ContentLengthError)
        or (isinstance(link, http.PayloadEncodingError) and "Not enough data" in str(link))
        for link in chain(exc)
    )


_ALL = frozenset(Phase)
_CONNECT = frozenset({Phase.CONNECT})
_HEAD = frozenset({Phase.HEAD})
_BODY = frozenset({Phase.BODY})
_SENT = frozenset({Phase.HEAD, Phase.BODY})

_ROWS: tuple[_Row, ...] = (
    _Row("dns", _CONNECT, _is(aiohttp.ClientConnectorDNSError), TransportFault.DNS, "the host name was not resolved"),
    _Row("tls", _ALL, _is(ssl.SSLError, ssl.CertificateError), TransportFault.TLS, "TLS failed"),
    _Row("tls-broken-off", _CONNECT, _is_handshake_break, TransportFault.TLS, "the TLS handshake broke off"),
    _Row(
        "proxy-answer",
        _CONNECT,
        _is(aiohttp.ClientHttpProxyError),
        TransportFault.CONNECT_FAILED,
        "the proxy refused the tunnel",
    ),
    _Row("refused", _CONNECT, _is(ConnectionRefusedError), TransportFault.REFUSED, "the connection was refused"),
    _Row("os-timeout", _CONNECT, _has_errno(errno.ETIMEDOUT), TransportFault.CONNECT_TIMEOUT, "no connection in time"),
    _Row("connect-limit", _CONNECT, _is(TimeoutError), TransportFault.CONNECT_TIMEOUT, "no connection in time"),
    _Row(
        "connect-other", _CONNECT, _is(Exception), TransportFault.CONNECT_FAILED, "the connection was not established"
    ),
    _Row("head-limit", _HEAD, _is(TimeoutError), TransportFault.HEAD_TIMEOUT, "no response head in time"),
    _Row("head-size", _HEAD, _is_oversized, TransportFault.TOO_LARGE, "the response head is too large"),
    _Row("truncated", _BODY, _is_truncated, TransportFault.TRUNCATED, "the body ended before its announced end"),
    _Row(
        "malformed",
        _SENT,
        _is(http.HttpProcessingError, aiohttp.ClientResponseError),
        TransportFault.MALFORMED,
        "the answer is not valid HTTP",
    ),
    _Row("reset", _SENT, _is(*_RESET_KINDS), TransportFault.RESET, "the connection was reset"),
    _Row("idle-limit", _BODY, _is(TimeoutError), TransportFault.IDLE_TIMEOUT, "the body came to a halt"),
    _Row("os-other", _SENT, _is(OSError), TransportFault.RESET, "the connection broke"),
    _Row("closed", _SENT, _is(Exception), TransportFault.CLOSED, "the connection was closed"),
)


def is_disconnect(exc: BaseException) -> bool:
    """Whether the other end went away: how a dead pooled connection shows itself, if it has said nothing before."""
    return any(
        isinstance(link, aiohttp.ServerDisconnectedError | aiohttp.ClientOSError | ConnectionError)
        for link in chain(exc)
    )


def _reason(exc: BaseException) -> str:
    """The reason that TLS or the operating system gives: their texts hold no request data."""
    for link in chain(exc):
        if isinstance(link, aiohttp.ClientConnectorError):
            continue  # shares a base class with what it wraps, not its attributes
        if isinstance(link, ssl.SSLCertVerificationError):
            return link.verify_message
        if isinstance(link, ssl.SSLError):
            return link.reason or "protocol error"
        if isinstance(link, aiohttp.ClientHttpProxyError):
            return f"status {link.status}"
    for link in chain(exc):
        if isinstance(link, OSError) and link.errno and not isinstance(link, aiohttp.ClientError):
            return link.strerror or errno.errorcode.get(link.errno, "")
    return ""


def fault_of(exc: BaseException, phase: Phase, where: str) -> UpstreamFault:
    """Translate what broke in `phase` of an exchange with `where` (host and port). A fault comes back unchanged."""
    if isinstance(exc, UpstreamFault):
        return exc
    row = next(row for row in _ROWS if phase in row.phases and row.matches(exc))
    reason = _reason(exc)
    return UpstreamFault(row.fault, f"{where}: {row.phrase}{f' ({reason})' if reason else ''}")
