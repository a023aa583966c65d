"""Local refusals as answers to a flow, in the client's dialect."""

from mitmproxy.http import HTTPFlow

from combos.core.errors import ProxyError
from combos.core.facts import Dialect
from combos.mitm.writer import Responder, ResponseWriter
from combos.wire.errors import render


def refuse_with(error: ProxyError, dialect: Dialect) -> Responder:
    """A responder that answers with the error."""

    async def respond(_flow: HTTPFlow, writer: ResponseWriter) -> None:
        headers, body = render(error, dialect)
        await writer.respond(error.status, headers, body)

    return respond
