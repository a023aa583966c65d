"""Which handlers of mitmproxy's own addons would do nothing with a flow, found out for less than calling them costs.

Each row asks what the handler itself asks before it does anything, on the addon and the flow as they are now, so that
nothing has to be noticed when an option or a command changes them. Handlers without a row are always called, and so are
those of any other class, of a subclass, or replaced on the object or on the class. With a mitmproxy whose handlers
nobody has compared with the rows, every handler is called.

Nearly always all neighbours in a hook's order are idle: `Idlers` asks them together.
"""

import sys
from collections.abc import Callable, Sequence
from functools import lru_cache
from types import FunctionType
from typing import Any, NamedTuple

from mitmproxy import version
from mitmproxy.http import HTTPFlow
from mitmproxy.proxy.mode_specs import ReverseMode

from combos.core.values import dataclass
from combos.mitm.internals import is_switched_off

type Idle = Callable[[Any, HTTPFlow], bool]
"""Whether the addon's handler would leave the flow as it is."""


class _Row(NamedTuple):
    """`work` names the attribute of the addon that holds what it has to do, empty for nothing; or it asks."""

    module: str
    addon: str
    hooks: tuple[str, ...]
    work: str | Idle


def _is_for_another_host(addon: Any, flow: HTTPFlow) -> bool:
    """The page is served under one name. Parsing the Host field to compare it costs as much as forty rows."""
    request = flow.request.data
    name, spelled = _spelled(addon.host)
    if not spelled or name == request.host.lower() or (request.authority and _may_name(request.authority, spelled)):
        return False
    for field, value in request.headers.fields:
        if len(field) == 4 and field.lower() == b"host" and _may_name(value, spelled):
            return False
    return True


@lru_cache(8)
def _spelled(host: str) -> tuple[str, bytes]:
    """The name in lower case, and as it may stand in a request: empty for a name that has other spellings."""
    name = host.lower()
    return name, name.encode() if name.isascii() else b""


def _may_name(asked: bytes, host: bytes) -> bool:
    """A name in another spelling of IDNA is left to the addon."""
    lower = asked.lower()
    return lower.find(host) >= 0 or lower.find(b"xn--") >= 0  # `in` costs seven times as much for bytes


def _asks_for_no_upgrade(_addon: Any, flow: HTTPFlow) -> bool:
    """HTTP/2 without TLS is asked for by an `Upgrade` field, or by a preface that is read as a request."""
    data = flow.request.data
    for name, _ in data.headers.fields:
        if len(name) == 7 and name.lower() == b"upgrade":
            return False
    return data.method.upper() != b"PRI"


def _asks_for_no_revocations(_addon: Any, flow: HTTPFlow) -> bool:
    """The list is served under one path; with the options, some hosts of such lists are not asked."""
    is_list = flow.request.data.path.endswith(b".crl")
    return not is_list and is_switched_off("emudhra") and is_switched_off("emudhra_old")


def _is_no_reverse_proxy(_addon: Any, flow: HTTPFlow) -> bool:
    return flow.response is not None and not isinstance(flow.client_conn.proxy_mode, ReverseMode)


def _without(option: str) -> Idle:
    """Idle while the option is switched off."""
    return lambda _addon, _flow: is_switched_off(option)


# Measured per request at the listener, of 0.5 ms: `Onboarding` 13 us, `MapLocal` 12 us (both parse the Host field),
# `DisableH2C` 8 us, `UpdateAltSvc` 3 us, the others under 2 us.
_ROWS = (
    _Row("anticache", "AntiCache", ("request",), _without("anticache")),
    _Row("anticomp", "AntiComp", ("request",), _without("anticomp")),
    _Row("blocklist", "BlockList", ("request",), "items"),
    _Row("disable_h2c", "DisableH2C", ("request",), _asks_for_no_upgrade),
    _Row("dumper", "Dumper", ("response",), _without("flow_detail")),
    _Row("maplocal", "MapLocal", ("request",), "replacements"),
    _Row("mapremote", "MapRemote", ("request",), "replacements"),
    _Row("modifybody", "ModifyBody", ("request", "response"), "replacements"),
    _Row("modifyheaders", "ModifyHeaders", ("requestheaders", "responseheaders"), "replacements"),
    _Row("onboarding", "Onboarding", ("request",), _is_for_another_host),
    _Row("proxyauth", "ProxyAuth", ("requestheaders",), "validator"),
    _Row("save", "Save", ("request", "response"), "stream"),
    _Row("savehar", "SaveHar", ("response",), _without("hardump")),
    _Row("serverplayback", "ServerPlayback", ("request",), "flowmap"),
    _Row("stickyauth", "StickyAuth", ("request",), "flt"),
    _Row("stickycookie", "StickyCookie", ("request", "response"), "flt"),
    _Row("tlsconfig", "TlsConfig", ("request",), _asks_for_no_revocations),
    _Row("update_alt_svc", "UpdateAltSvc", ("responseheaders",), _is_no_reverse_proxy),
    _Row("upstream_auth", "UpstreamAuth", ("requestheaders",), "auth"),
)


# The versions whose handlers the rows were compared with.
_COMPARED = "12.3."


@dataclass(frozen=True, slots=True)
class Left:
    """A handler that may be left out: while it is `function`, and if `is_idle` says so."""

    addon: Any
    function: FunctionType
    work: str | Idle

    def is_idle(self, flow: HTTPFlow) -> bool:
        """Whether `function` would leave the flow as it is."""
        if isinstance(self.work, str):
            return not getattr(self.addon, self.work, True)
        return self.work(self.addon, flow)

    def may_be_left_out(self, handler: Any, flow: HTTPFlow) -> bool:
        """The same of the handler that the addon has now."""
        return getattr(handler, "__func__", None) is self.function and self.is_idle(flow)


class Idlers:
    """Neighbours in the order of one hook, asked together."""

    __slots__ = ("_functions", "_holding", "_hook", "_kinds", "_questions")

    def __init__(self, hook: str, members: Sequence[Left]) -> None:
        self._hook = hook
        self._kinds = [type(left.addon) for left in members]
        self._functions = [left.function for left in members]
        self._holding = [(left.addon, left.work) for left in members if isinstance(left.work, str)]
        self._questions = [(left.addon, left.work) for left in members if not isinstance(left.work, str)]

    def are_idle(self, flow: HTTPFlow) -> bool:
        """Whether each of them may be left out. One that has been replaced on the object itself is not seen here."""
        hook = self._hook
        if [getattr(kind, hook, None) for kind in self._kinds] != self._functions:
            return False
        for addon, work in self._holding:
            if getattr(addon, work, True):
                return False
        for addon, is_idle in self._questions:  # noqa: SIM110 - a generator costs as much as three questions
            if not is_idle(addon, flow):
                return False
        return True


def idleness(addon: object, hook: str) -> Left | None:
    """How to find out whether the addon's handler of the hook would do nothing; None when it is to be called."""
    row = next((row for row in _ROWS if hook in row.hooks and _is_of(row, type(addon))), None)
    if row is None or not version.VERSION.startswith(_COMPARED) or hook in getattr(addon, "__dict__", ()):
        return None
    function = vars(type(addon)).get(hook)
    if not isinstance(function, FunctionType) or not _is_original(function, row, hook):
        return None
    return Left(addon, function, row.work)


def _is_of(row: _Row, kind: type) -> bool:
    # By name: importing them all costs a second where only a part of mitmproxy is in use.
    return kind.__qualname__ == row.addon and kind.__module__ == f"mitmproxy.addons.{row.module}"


def _is_original(function: FunctionType, row: _Row, hook: str) -> bool:
    """Whether mitmproxy's own module has defined it, and no script that was loaded before us."""
    module = sys.modules.get(f"mitmproxy.addons.{row.module}")
    is_from_there = function.__globals__ is getattr(module, "__dict__", None)
    return is_from_there and function.__code__.co_qualname == f"{row.addon}.{hook}"
