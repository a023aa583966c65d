"""What a client at the listener gets whose request could not be read, or whose answer could not be made.

The HTTP server by itself quotes what it stumbled over, which may be a key, in plain text and in its log. Nothing of
such a request is known, its path neither, so that the answer has the form of Chat Completions.
"""

from aiohttp import web
from aiohttp.http_exceptions import HttpProcessingError, LineTooLong

from combos.core.errors import ProxyError, bad_request, head_too_large, internal_failure
from combos.core.facts import Dialect
from combos.core.limits import INBOUND_HEAD_MAX
from combos.wire.errors import render


class Unreadable(web.RequestHandler):
    """A connection that says no more than that, in JSON."""

    __slots__ = ()

    def data_received(self, data: bytes) -> None:
        """Take what has come. The parser fails at some addresses with another error than its own, of which the event
        loop would make an entry in the log, and nothing for the client."""
        try:
            super().data_received(data)
        except Exception:
            self._refuse()

    def _refuse(self) -> None:
        """Relied upon: behind a head that it failed at the parser takes nothing more, and says so with its own error,
        which is answered. Where it does not the connection is closed without an answer."""
        try:
            super().data_received(b"\0")
        except Exception:
            self.force_close()

    def handle_error(
        self,
        request: web.BaseRequest,
        status: int = 500,
        exc: BaseException | None = None,
        message: str | None = None,  # noqa: ARG002 - the base class's signature
    ) -> web.StreamResponse:
        """The answer, after which the connection is closed. ConnectionError: another one was begun already."""
        told = None if isinstance(exc, HttpProcessingError) else exc  # the text of such an exception quotes
        super().handle_error(request, status, told)
        error = _error(status, exc)
        fields, body = render(error, Dialect.CHAT)
        headers = {name.decode(): value.decode() for name, value in fields}
        answer = web.Response(status=error.status, body=body, headers={**headers, "Server": "combos"})
        answer.force_close()
        return answer


def _error(status: int, exc: BaseException | None) -> ProxyError:
    if isinstance(exc, LineTooLong):
        return head_too_large(INBOUND_HEAD_MAX)
    if status < 500:
        return bad_request("The request is not HTTP as it is understood here")
    return internal_failure()
