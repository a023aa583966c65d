"""Loaded into mitmdump beside the addon: answers what the process holds, and changes options from outside.

One line of JSON in, one out, on a port of loopback that the log names.
"""

import asyncio
import collections
import ctypes
import gc
import json
import logging
import os
import re
import time
import tracemalloc
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import aiohttp
from mitmproxy import ctx, http
from mitmproxy.addonmanager import traverse

logger = logging.getLogger(__name__)
_CANARY = re.compile(rb"canary-key-[a-z0-9-]+")
_LOOKED_AT = 20
_TOP = 12
_EXPIRING = (
    "state._affinity",
    "state._issuers",
    "state._responses",
    "state._makers",
    "state.cooldowns",
    "state.recall",
    "state.replay",
)
_DAYS_MS = 3 * 24 * 3_600_000
_OWN_LINES = (tracemalloc.Filter(False, tracemalloc.__file__), tracemalloc.Filter(False, __file__))


class Inside:
    """The addon. `leaks`: credentials of providers that were seen in a flow."""

    def __init__(self) -> None:
        self.leaks: collections.Counter[str] = collections.Counter()
        self._server: asyncio.Server | None = None
        self._seen = 0
        self._before: tracemalloc.Snapshot | None = None

    async def running(self) -> None:
        """Hook: listen."""
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        logger.info("soak control %d", self._server.sockets[0].getsockname()[1])

    def response(self, flow: http.HTTPFlow) -> None:
        """Hook: no flow holds the credential of a provider."""
        self._seen += 1
        if self._seen % _LOOKED_AT == 0 and (found := _CANARY.search(repr(flow.get_state()).encode())):
            self.leaks[found[0].decode()] += 1

    error = response

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while line := await reader.readline():
                try:
                    answer = self._do(json.loads(line))
                except Exception as error:
                    logger.exception("soak control failed")
                    answer = {"failed": repr(error)}
                writer.write(json.dumps(answer).encode() + b"\n")
        except OSError:
            pass  # whoever asked does not want to know any more
        finally:
            writer.close()

    def _do(self, asked: dict[str, Any]) -> Any:
        service = _service()
        match asked["do"]:
            case "set":
                return ctx.options.update(**asked["options"])
            case "clear":
                return service.state.clear_cooldowns(asked.get("combo"), asked.get("target"))
            case "reload":
                return ctx.master.commands.call("combos.reload")
            case "held":
                return self._held(service)
            case "traced":
                return self._traced(service)
            case "client":
                return _client(asked["port"])
            case "tasks":
                return _stacks(asked["name"], asked.get("older", float("-inf")), asked.get("younger", float("inf")))
        raise ValueError(asked["do"])

    def _traced(self, service: Any) -> dict[str, Any]:
        """How much more each line holds than when this was last asked, in KiB, the largest first.

        As if nothing had been asked for days: what the stores of the state keep for a time is none of it.
        """
        now = service.now()
        service.state.sweep(type(now)(now.mono_ms + _DAYS_MS, now.epoch_ms + _DAYS_MS))
        gc.collect()
        before, self._before = self._before, tracemalloc.take_snapshot().filter_traces(_OWN_LINES)
        if before is None:
            return {"total": 0.0, "lines": [], "kept": {}}
        grown = self._before.compare_to(before, "lineno")
        lines = [
            (_place(line.traceback[0]), line.size_diff / 1024, line.count_diff)
            for line in grown[:_TOP]
            if line.size_diff > 0
        ]
        kept = {name: size for name, size in _sizes(service).items() if name in _EXPIRING}
        return {"total": sum(line.size_diff for line in grown) / 1024, "lines": lines, "kept": kept}

    def _held(self, service: Any) -> dict[str, Any]:
        gc.collect()
        ctypes.CDLL(None).malloc_trim(0)
        tasks = collections.Counter(re.sub(r"\(.*|\d+", "", task.get_name())[:40] for task in asyncio.all_tasks())
        links = [_link(name) for name in os.listdir("/proc/self/fd")]
        rss = int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") // 1024
        return {
            "tasks": dict(tasks),
            "sockets": sum("socket" in link for link in links),
            "files": len(links),
            "clients": len(ctx.master.addons.get("proxyserver").connections),
            "rss_kib": rss,
            "registries": sum(type(thing).__name__ == "Registry" for thing in gc.get_objects()),
            "objects": len(gc.get_objects()),
            "state": _sizes(service),
            "leaks": dict(self.leaks),
            "bodies": sum(type(thing) is http.HTTPFlow for thing in gc.get_objects()),
        }


def _service() -> Any:
    """The part of the addon that requests share."""
    combos = next(addon for addon in traverse(ctx.master.addons.chain) if type(addon).__name__ == "Combos")
    return combos.service


def _place(frame: tracemalloc.Frame) -> str:
    """File and line, without the folders that are the same for all."""
    return f"{'/'.join(Path(frame.filename).parts[-3:])}:{frame.lineno}"


def _client(port: int) -> list[str]:
    """The connection of the client at this port: what is still to be written to it, and its streams."""
    found = []
    for handler in ctx.master.addons.get("proxyserver").connections.values():
        if handler.client.peername[1] == port:
            io = handler.transports.get(handler.client)
            unsent = None if io is None or io.writer is None else io.writer.transport.get_write_buffer_size()
            streams = [repr(layer) for layer in gc.get_objects() if _is_stream_of(layer, handler.client)]
            found.append(f"unsent {unsent}, {handler.client.state}, streams {streams}")
    return found


def _is_stream_of(layer: Any, client: Any) -> bool:
    return type(layer).__name__ == "ResponderStream" and layer.context.client is client


def _link(name: str) -> str:
    try:
        return os.readlink(f"/proc/self/fd/{name}")
    except OSError:
        return ""


def _stacks(name: str, older_s: float, younger_s: float) -> list[str]:
    """Where each task of this name and age waits, and in which state its parts are."""
    found = []
    for task in asyncio.all_tasks():
        age = time.time() - getattr(task, "created", time.time())
        if task.get_name().startswith(name) and older_s <= age < younger_s:
            found.append(f"{age:.0f} s, {task.cancelling()} cancellations: " + " > ".join(_chain(task.get_coro())))
    return found


def _chain(coro: Any) -> Iterator[str]:
    """The frames from the outermost to the one that waits, with what tells about their owners."""
    while coro is not None:
        frame = getattr(coro, "cr_frame", None)
        if frame is not None:
            yield f"{frame.f_code.co_qualname}:{frame.f_lineno}{_state(frame.f_locals.get('self'))}"
        coro = getattr(coro, "cr_await", None)


def _state(owner: Any) -> str:
    """What matters of an object on the way, by the names that it has."""
    match type(owner).__name__:
        case "ResponderStream":
            writer = owner.handler.transports.get(owner.context.client)
            size = None if writer is None else writer.writer.transport.get_write_buffer_size()
            return f" {{{owner!r}, paused {owner._paused!r}, gone {owner.gone}, unsent {size}}}"
        case "StreamedHttpLayer":
            return f" {{{_windows(owner)}}}"
        case "Answer":
            content = owner._content
            counts = f"received {owner._received} of {content.total_bytes}, held {content._size}"
            return f" {{{counts}, eof {content.is_eof()}, {content.exception()!r}, deadline {owner.at}}}"
    return ""


def _windows(layer: Any) -> str:
    """The flow control of an HTTP/2 client: what is held back, and what the client would take."""
    conn = getattr(layer.connections.get(layer.context.client), "h2_conn", None)
    if conn is None:
        return ""
    held = {stream: sum(len(piece.data) for piece in pieces) for stream, pieces in conn.stream_buffers.items()}
    windows = {stream: conn.streams[stream].outbound_flow_control_window for stream in held if stream in conn.streams}
    waiters = {stream: waiter.done() for stream, waiter in (layer.window_waiters or {}).items()}
    return f"held {held}, windows {windows}, connection {conn.outbound_flow_control_window}, waiters {waiters}"


def _sizes(service: Any) -> dict[str, int]:
    """How many entries every store of the state has."""
    sizes: dict[str, int] = {}
    for owner_name, owner in (("state", service.state), ("activity", service.activity), ("upstream", service.upstream)):
        for name, value in vars(owner).items():
            _measure(f"{owner_name}.{name}", value, sizes, 0)
    connectors = [thing for thing in gc.get_objects() if _is_connector(type(thing))]
    idle = sizes["upstream.idle"] = sum(len(connector.idle) for connector in connectors)
    sizes["upstream.busy"] = sum(len(connector._acquired) for connector in connectors) - idle
    return {name: size for name, size in sizes.items() if size}


def _is_connector(kind: type) -> bool:
    return aiohttp.TCPConnector in kind.__mro__


def _measure(name: str, value: Any, sizes: dict[str, int], depth: int) -> None:
    if hasattr(value, "__len__") and not isinstance(value, str | bytes):
        sizes[name] = len(value)
    elif depth < 2 and hasattr(value, "__dict__"):
        for inner, held in vars(value).items():
            _measure(f"{name}.{inner}", held, sizes, depth + 1)


addons = [Inside()]
