"""Starts and measures mitmdump processes: plain ones, the floor, and ones with the addon."""

import asyncio
import json
import os
import socket
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
MITMDUMP = Path(sys.executable).with_name("mitmdump")
_TICKS = os.sysconf("SC_CLK_TCK")
_STREAM_EVENTS = """
def responseheaders(flow):
    flow.response.stream = "event-stream" in flow.response.headers.get("content-type", "")
"""


@dataclass
class Proxy:
    """A running mitmdump. `listener` is the port of the addon's own listener, 0 when there is none."""

    process: subprocess.Popen[bytes]
    port: int
    startup_s: float
    listener: int = 0

    def cpu_s(self) -> float:
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / _TICKS

    def rss_kib(self) -> int:
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        return int(status.partition("VmRSS:")[2].split()[0])

    def stop(self) -> None:
        self.process.terminate()
        self.process.wait()


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


async def _start(work: Path, *arguments: str) -> Proxy:
    port = free_port()
    command = [str(MITMDUMP), "-q", "--set", f"confdir={work}", "--listen-host", "127.0.0.1", "-p", str(port)]
    begin = time.perf_counter()
    process = subprocess.Popen([*command, *arguments], stdout=subprocess.DEVNULL)
    await _listening(process, port, begin)
    return Proxy(process, port, time.perf_counter() - begin)


async def _listening(process: subprocess.Popen[bytes], port: int, begin: float) -> None:
    while True:
        try:
            _, writer = await asyncio.open_connection("127.0.0.1", port)
        except ConnectionError:
            if process.poll() is not None or time.perf_counter() - begin > 30:
                raise RuntimeError(f"mitmdump did not start: {process.args}") from None
            await asyncio.sleep(0.01)
        else:
            writer.close()
            return


async def plain(work: Path, upstream: str, *arguments: str) -> Proxy:
    """mitmdump as a reverse proxy of the upstream; event streams are streamed, nothing else is changed."""
    script = work / "stream_events.py"
    script.write_text(_STREAM_EVENTS)
    return await _start(work, "--mode", f"reverse:{upstream}", "--ssl-insecure", "-s", str(script), *arguments)


def configuration(plain_url: str, tls_url: str) -> dict[str, object]:
    """Combos `ok`, `hop`, `tls` and `slow` over one target each, `hop` with a failing one before it."""

    def provider(url: str) -> dict[str, object]:
        return {"adapter": "openai-chat", "baseUrl": url, "authMode": "local", "allowPrivateNetwork": True}

    def combo(*providers: str) -> dict[str, object]:
        return {"targets": [{"provider": name, "model": "m1"} for name in providers]}

    return {
        "providers": {
            "good": provider(f"{plain_url}/ok/v1"),
            "down": provider(f"{plain_url}/down/v1"),
            "idle": provider(f"{plain_url}/slow/v1"),
            "secure": provider(f"{tls_url}/ok/v1"),
        },
        "combos": {"ok": combo("good"), "hop": combo("down", "good"), "tls": combo("secure"), "slow": combo("idle")},
    }


async def with_addon(
    work: Path, plain_url: str, tls_url: str, *options: str, listen: str = "", addons: tuple[Path, ...] = ()
) -> Proxy:
    """mitmdump with the addon, and others behind it; `listen` is the address of its listener."""
    config = work / "config.json"
    config.write_text(json.dumps(configuration(plain_url, tls_url)))
    script = str(ROOT / "addon" / "main.py")
    settings = [f"combos_config={config}", f"combos_admin_listen={listen}", *options]
    scripts = [part for path in (script, *addons) for part in ("-s", str(path))]
    return await _start(work, *scripts, "--ssl-insecure", *(part for name in settings for part in ("--set", name)))


async def with_listener(work: Path, plain_url: str, tls_url: str) -> Proxy:
    """mitmdump with the addon and its listener."""
    port = free_port()
    proxy = await with_addon(work, plain_url, tls_url, listen=f"127.0.0.1:{port}")
    await _listening(proxy.process, port, time.perf_counter())
    proxy.listener = port
    return proxy
