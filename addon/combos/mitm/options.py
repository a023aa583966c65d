"""mitmproxy options of the addon: their declaration, and the settings they are parsed into."""

import os
from collections.abc import Sequence
from enum import StrEnum
from importlib.util import find_spec

from mitmproxy.addonmanager import Loader
from mitmproxy.exceptions import OptionsError
from mitmproxy.options import Options

from combos.core.values import dataclass
from combos.mitm.access import is_loopback
from combos.upstream.state_url import StateAddress, parse_state

# By the package's own name: whoever asks an index for an extra of this project may be given another project.
_NO_REDIS = (
    "combos_state needs the Python package redis in the same environment: `pip install redis` there, or "
    "`pipx inject mitmproxy-combos redis`"
)


class AttemptFlows(StrEnum):
    """Which attempts become flows of their own."""

    AUTO = "auto"
    ALL = "all"
    NONE = "none"


@dataclass(frozen=True, slots=True)
class Option:
    """One mitmproxy option. `minimum` holds for integers."""

    name: str
    type: type
    default: object
    help: str
    choices: Sequence[str] | None = None
    minimum: int | None = None


OPTIONS = (
    Option(
        "combos_config",
        str,
        "",
        "Configuration file. Empty: $COMBOS_CONFIG, else $COMBOS_HOME/config.json, else ~/.combos/config.json.",
    ),
    Option(
        "combos_admin_listen",
        str,
        "127.0.0.1:10100",
        "Loopback address and port of the management listener. Empty: off.",
    ),
    Option(
        "combos_attempt_flows",
        str,
        AttemptFlows.AUTO.value,
        "Which attempts become flows. auto: those of requests that hopped or whose target speaks another dialect.",
        [choice.value for choice in AttemptFlows],
    ),
    Option(
        "combos_body_limit",
        int,
        65_536,
        "How many bytes of a streamed body are kept in an attempt's flow for inspection.",
        minimum=0,
    ),
    Option(
        "combos_connect_timeout_ms",
        int,
        10_000,
        "Time to connect to a target, TLS and name resolution included. A provider's connectTimeoutMs wins.",
        minimum=1,
    ),
    Option(
        "combos_head_timeout_ms",
        int,
        200_000,
        "Time for a target to send the head of its answer. A provider's headTimeoutMs wins.",
        minimum=1,
    ),
    Option(
        "combos_idle_timeout_ms",
        int,
        300_000,
        "Time for which a target's answer may be silent. A provider's idleTimeoutMs wins.",
        minimum=1,
    ),
    Option(
        "combos_state",
        str,
        "",
        "Server through which proxies share cooldowns, rotation, counts and recall: redis://[user:password@]host:port/db,"
        " rediss://… or unix:///path. A password may be ${NAME}, of the environment. Empty: nothing is shared.",
    ),
    Option(
        "combos_served_at",
        str,
        "",
        "Further addresses at which clients reach this proxy, behind a balancer: host:port, several with commas.",
    ),
    Option(
        "combos_reuse_port",
        bool,
        False,
        "Share the port of combos_admin_listen with other processes that say so too; the system spreads connections.",
    ),
    Option(
        "combos_response_headers",
        bool,
        False,
        "Tell clients in x-combos-… headers which target served, after how many attempts, under which request id.",
    ),
    Option(
        "combos_otel",
        bool,
        False,
        "Make an OpenTelemetry span of every request and attempt; where they go is up to the SDK you run with.",
    ),
)


@dataclass(frozen=True, slots=True)
class Settings:
    """The options, parsed. Durations in milliseconds, sizes in bytes."""

    config: str
    admin_listen: tuple[str, int] | None
    attempt_flows: AttemptFlows
    body_limit: int
    connect_timeout_ms: int
    head_timeout_ms: int
    idle_timeout_ms: int
    response_headers: bool = False
    otel: bool = False
    state: StateAddress | None = None
    served_at: tuple[tuple[str, int], ...] = ()
    reuse_port: bool = False


def declare(loader: Loader) -> None:
    """Add every option of the addon, all named `combos_…`."""
    for row in OPTIONS:
        loader.add_option(row.name, row.type, row.default, row.help, row.choices)


def parse_listen(value: str) -> tuple[str, int] | None:
    """`host:port`, `[::1]:port` or empty. Raises `ValueError`."""
    if not value:
        return None
    host, colon, port = value.rpartition(":")
    if not colon or not port.isdecimal() or not 0 < int(port) < 65_536:
        raise ValueError("must be host:port, such as 127.0.0.1:10100, or empty")
    host = host.removeprefix("[").removesuffix("]")
    if host != "localhost" and not is_loopback(host):
        raise ValueError("must be a loopback address: the management listener is never offered to the network")
    return host, int(port)


def parse_addresses(value: str) -> tuple[tuple[str, int], ...]:
    """`host:port`, several with commas, or empty. Raises `ValueError`."""
    found = []
    for text in filter(None, (part.strip() for part in value.split(","))):
        host, colon, port = text.rpartition(":")
        if not colon or not host or not port.isdecimal() or not 0 < int(port) < 65_536:
            raise ValueError("must be host:port, several with commas, or empty")
        found.append((host.removeprefix("[").removesuffix("]").lower(), int(port)))
    return tuple(found)


def _served_at(value: str) -> tuple[tuple[str, int], ...]:
    try:
        return parse_addresses(value)
    except ValueError as error:
        raise OptionsError(f"combos_served_at {error}, got {value!r}") from error


def _state(value: str) -> StateAddress | None:
    """Where state is shared. Raises `OptionsError`, which never repeats the value: it may hold a password."""
    try:
        address = parse_state(value, os.environ)
    except ValueError as error:
        raise OptionsError(f"combos_state {error}") from None
    if address is not None and find_spec("redis") is None:
        raise OptionsError(_NO_REDIS)
    return address


def _check(options: Options, row: Option) -> None:
    value = getattr(options, row.name)
    # mitmproxy offers the choices for completion and takes any other value as well.
    if row.choices is not None and value not in row.choices:
        raise OptionsError(f"{row.name} must be one of {', '.join(row.choices)}, got {value!r}")
    if row.minimum is not None and value < row.minimum:
        raise OptionsError(f"{row.name} must be an integer of at least {row.minimum}, got {value}")


def parse(options: Options) -> Settings:
    """All options as settings. Raises `OptionsError` that names the option and the rule."""
    for row in OPTIONS:
        _check(options, row)
    try:
        listen = parse_listen(options.combos_admin_listen)
    except ValueError as error:
        raise OptionsError(f"combos_admin_listen {error}, got {options.combos_admin_listen!r}") from error
    return Settings(
        config=options.combos_config,
        admin_listen=listen,
        attempt_flows=AttemptFlows(options.combos_attempt_flows),
        body_limit=options.combos_body_limit,
        connect_timeout_ms=options.combos_connect_timeout_ms,
        head_timeout_ms=options.combos_head_timeout_ms,
        idle_timeout_ms=options.combos_idle_timeout_ms,
        response_headers=options.combos_response_headers,
        otel=options.combos_otel,
        state=_state(options.combos_state),
        served_at=_served_at(options.combos_served_at),
        reuse_port=options.combos_reuse_port,
    )
