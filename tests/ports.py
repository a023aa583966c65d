"""Ports for what has to be told its port before it listens.

They come from below the range from which systems give ports to clients and to `bind` with port 0, so that between the
choice and its use nobody is given one by chance; every worker of a test run has a stretch of its own.
"""

import itertools
import os
import socket

_FIRST, _STRETCH, _STRETCHES = 12_000, 1_000, 20

_worker = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw"))
_begin = (_worker + os.getppid()) % _STRETCHES
"""Two runs at once begin at different places, mostly; `free_port` passes over what is taken."""
_turns = itertools.count(os.getpid())


def free_port() -> int:
    """A port of 127.0.0.1 that nobody listens on, and that was not given before in this process."""
    while True:
        port = _FIRST + _begin * _STRETCH + next(_turns) % _STRETCH
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
        return port
