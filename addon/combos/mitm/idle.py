"""Which handlers of mitmproxy's own addons would do nothing with a flow, found out for less than calling them costs.

Each row asks what the handler itself asks before it does anything, on the addon and the flow as they are now, so that
nothing has to be noticed when an option or a command changes them. Handlers without a row are always called, and so are
those of any other class, of a subclass, or replaced on the object or on the class. With a mitmproxy whose handlers
nobody has compared with the rows, every handler is called.
"""

import sys
from collections.abc import Callable
from types import FunctionType
from typing import Any, NamedTuple

from mitmproxy import version
from mitmproxy.http import HTTPFlow
from mitmproxy.proxy.mode_specs import ReverseMode

type Idle = Callable[[Any, HTTPFlow], bool]
"""Whether the addon's handler would leave the flow as it is."""


class _Row(NamedTuple):
    module: str
    addon: str
    hooks: tuple[str, ...]
    is_idle: Idle


def _is_for_another_host(addon: Any, flow: HTTPFlow) -> bool:
    """The page is served under one name. Parsing the Host field to compare it costs as much as forty rows."""
    request = flow.request
    name = addon.host.lower()
    if not name.isascii() or name == request.host.lower():
        return False
    fields = [value for field, value in request.headers.fields if field.lower() == b"host"]
    asked = b" ".join((request.data.authority, *fields)).lower()
    # A name in another spelling of IDNA is left to the addon.
    return name.encode() not in asked and b"xn--" not in asked


def _asks_for_no_upgrade(_addon: Any, flow: HTTPFlow) -> bool:
    """HTTP/2 without TLS is asked for by an `Upgrade` field, or by a preface that is read as a request."""
    data = flow.request.data
    return data.method != b"PRI" and not any(
        len(name) == 7 and name.lower() == b"upgrade" for name, _ in data.headers.fields
    )


# Measured per request at the listener, of 0.5 ms: `Onboarding` 13 us, `MapLocal` 12 us (both parse the Host field),
# `DisableH2C` 8 us, `UpdateAltSvc` 3 us, the others under 2 us.
_ROWS = (
    _Row("blocklist", "BlockList", ("request",), lambda addon, _: not addon.items),
    _Row("disable_h2c", "DisableH2C", ("request",), _asks_for_no_upgrade),
    _Row("maplocal", "MapLocal", ("request",), lambda addon, _: not addon.replacements),
    _Row("mapremote", "MapRemote", ("request",), lambda addon, _: not addon.replacements),
    _Row("modifybody", "ModifyBody", ("request", "response"), lambda addon, _: not addon.replacements),
    _Row(
        "modifyheaders", "ModifyHeaders", ("requestheaders", "responseheaders"), lambda addon, _: not addon.replacements
    ),
    _Row("onboarding", "Onboarding", ("request",), _is_for_another_host),
    _Row(
        "update_alt_svc",
        "UpdateAltSvc",
        ("responseheaders",),
        lambda _, flow: flow.response is not None and not isinstance(flow.client_conn.proxy_mode, ReverseMode),
    ),
)


# The versions whose handlers the rows were compared with.
_COMPARED = "12.3."


class Left(NamedTuple):
    """A handler that may be left out: while it is `function`, and if `is_idle` says so."""

    function: FunctionType
    is_idle: Idle


def idleness(addon: object, hook: str) -> Left | None:
    """How to find out whether the addon's handler of the hook would do nothing; None when it is to be called."""
    row = next((row for row in _ROWS if hook in row.hooks and _is_of(row, type(addon))), None)
    if row is None or not version.VERSION.startswith(_COMPARED) or hook in getattr(addon, "__dict__", ()):
        return None
    function = vars(type(addon)).get(hook)
    if not isinstance(function, FunctionType) or not _is_original(function, row, hook):
        return None
    return Left(function, row.is_idle)


def _is_of(row: _Row, kind: type) -> bool:
    # By name: importing them all costs a second where only a part of mitmproxy is in use.
    return kind.__qualname__ == row.addon and kind.__module__ == f"mitmproxy.addons.{row.module}"


def _is_original(function: FunctionType, row: _Row, hook: str) -> bool:
    """Whether mitmproxy's own module has defined it, and no script that was loaded before us."""
    module = sys.modules.get(f"mitmproxy.addons.{row.module}")
    is_from_there = function.__globals__ is getattr(module, "__dict__", None)
    return is_from_there and function.__code__.co_qualname == f"{row.addon}.{hook}"
