"""A model provider that costs next to nothing: raw asyncio, prepared answers. One process, HTTP and HTTPS.

/ok/…   1 KB of JSON, or 50 SSE chunks when the request asks for a stream
/slow/… the first SSE chunk at once, the rest never (for measuring held streams)
/down/… 503
"""

import asyncio
import json
import ssl
import sys
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


async def _answer(path: bytes, body: bytes, writer: asyncio.StreamWriter) -> None:
    if path.startswith(b"/down"):
        writer.write(DOWN)
    elif path.startswith(b"/slow"):
        writer.write(STREAM_HEAD + STREAM[0])
        await writer.drain()
        await asyncio.sleep(3600)
    elif b'"stream":true' in body:
        writer.write(STREAM_HEAD)
        for chunk in STREAM:
            writer.write(chunk)
            await asyncio.sleep(0)
    else:
        writer.write(OK)
    await writer.drain()


async def _serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        while True:
            head = await reader.readuntil(b"\r\n\r\n")
            length = head.lower().partition(b"content-length:")[2].split(b"\r\n", 1)[0].strip()
            body = await reader.readexactly(int(length or 0))
            await _answer(head.split(b" ", 2)[1], body, writer)
    except (asyncio.IncompleteReadError, ConnectionError):
        writer.close()


async def main(certificate: Path) -> None:
    tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    tls.load_cert_chain(certificate)
    plain = await asyncio.start_server(_serve, "127.0.0.1", 0, backlog=2048)
    secure = await asyncio.start_server(_serve, "127.0.0.1", 0, ssl=tls, backlog=2048)
    print(plain.sockets[0].getsockname()[1], secure.sockets[0].getsockname()[1], flush=True)
    async with plain, secure:
        await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1])))
