"""A model provider that costs next to nothing: a bare asyncio protocol, prepared answers. One process, HTTP and HTTPS.

/ok/…   1 KB of JSON, or 50 SSE chunks when the request asks for a stream
/slow/… the first SSE chunk at once, the rest never (for measuring held streams)
/down/… 503
"""

import asyncio
import json
import ssl
import sys
from collections.abc import Iterator
from pathlib import Path

CHUNKS = 50
_BUSY = b'{"error":{"message":"busy","type":"server_error","code":"server_is_overloaded"}}'
_PAYLOAD = {
    "id": "chatcmpl-bench",
    "object": "chat.completion",
    "created": 1,
    "model": "m1",
    "choices": [{"index": 0, "message": {"role": "assistant", "content": "x" * 830}, "finish_reason": "stop"}],
    "usage": {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2},
}


def _whole(status: str, body: bytes, extra: bytes = b"") -> bytes:
    return b"HTTP/1.1 %s\r\ncontent-type: application/json\r\n%scontent-length: %d\r\n\r\n%s" % (
        status.encode(),
        extra,
        len(body),
        body,
    )


def _chunk(data: bytes) -> bytes:
    return b"%x\r\n%s\r\n" % (len(data), data)


def _event(text: str, finish: str | None = None) -> bytes:
    delta = {"content": text} if finish is None else {}
    choice = {"index": 0, "delta": delta, "finish_reason": finish}
    event = {
        "id": "chatcmpl-bench",
        "object": "chat.completion.chunk",
        "created": 1,
        "model": "m1",
        "choices": [choice],
    }
    return b"data: " + json.dumps(event).encode() + b"\n\n"


OK = _whole("200 OK", json.dumps(_PAYLOAD).encode())
DOWN = _whole("503 Service Unavailable", _BUSY, b"retry-after: 0\r\n")
STREAM_HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
STREAM = [_chunk(_event(f"word {n} ")) for n in range(CHUNKS - 1)] + [
    _chunk(_event("", "stop") + b"data: [DONE]\n\n"),
    b"0\r\n\r\n",
]


class _Provider(asyncio.Protocol):
    """One connection. A protocol and not a pair of streams: this has to cost less than what is measured."""

    def __init__(self) -> None:
        self._data = b""
        self._loop = asyncio.get_running_loop()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        self._data += data
        head, found, body = self._data.partition(b"\r\n\r\n")
        if not found:
            return
        length = int(head.lower().partition(b"content-length:")[2].split(b"\r\n", 1)[0] or 0)
        if len(body) >= length:
            self._data = b""  # no client here sends a request before it has the answer to the last
            self._answer(head.split(b" ", 2)[1], body)

    def _answer(self, path: bytes, body: bytes) -> None:
        if path.startswith(b"/down"):
            self._transport.write(DOWN)
        elif path.startswith(b"/slow"):
            self._transport.write(STREAM_HEAD + STREAM[0])
        elif b'"stream":true' in body:
            self._transport.write(STREAM_HEAD)
            self._next(iter(STREAM))
        else:
            self._transport.write(OK)

    def _next(self, chunks: Iterator[bytes]) -> None:
        """One chunk in each pass of the event loop, so that each is a write of its own."""
        chunk = next(chunks, None)
        if chunk is not None and not self._transport.is_closing():
            self._transport.write(chunk)
            self._loop.call_soon(self._next, chunks)


async def main(certificate: Path) -> None:
    tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    tls.load_cert_chain(certificate)
    loop = asyncio.get_running_loop()
    plain = await loop.create_server(_Provider, "127.0.0.1", 0, backlog=2048)
    secure = await loop.create_server(_Provider, "127.0.0.1", 0, ssl=tls, backlog=2048)
    print(plain.sockets[0].getsockname()[1], secure.sockets[0].getsockname()[1], flush=True)
    async with plain, secure:
        await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1])))
