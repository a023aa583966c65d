"""A provider whose streams are paced: a chunk of each every so often, with the instant at which it was sent.

The first argument is the time between two chunks in milliseconds. The instants are of the machine's monotonic clock, so
that a client on the same machine can tell how long a chunk was on its way.
"""

import asyncio
import gc
import json
import sys
import time

HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
_EVENT = {"id": "chatcmpl-bench", "object": "chat.completion.chunk", "created": 1, "model": "m1"}
MARK = b"at="


def _chunk() -> bytes:
    delta = {"content": f"at={time.monotonic_ns()} and some words of an answer"}
    event = {**_EVENT, "choices": [{"index": 0, "delta": delta, "finish_reason": None}]}
    data = b"data: " + json.dumps(event).encode() + b"\n\n"
    return b"%x\r\n%s\r\n" % (len(data), data)


async def _serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    pace_s = int(sys.argv[1]) / 1000
    loop = asyncio.get_running_loop()
    try:
        head = await reader.readuntil(b"\r\n\r\n")
        length = head.lower().partition(b"content-length:")[2].split(b"\r\n", 1)[0].strip()
        await reader.readexactly(int(length or 0))
        writer.write(HEAD)
        due = loop.time()
        while not writer.is_closing():
            writer.write(_chunk())
            due += pace_s
            await asyncio.sleep(due - loop.time())
    except (asyncio.IncompleteReadError, ConnectionError):
        pass
    finally:
        writer.close()


async def main() -> None:
    gc.disable()  # it is the proxies' pauses that are to be seen
    server = await asyncio.start_server(_serve, "127.0.0.1", 0, backlog=4096)
    print(server.sockets[0].getsockname()[1], flush=True)
    async with server:
        await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(main())
