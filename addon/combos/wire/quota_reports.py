"""The vendors' own reports of quota: where each is asked, and how its answer becomes a snapshot.

A table of sources by canonical base address: a provider at any other address is never probed. Sends nothing. A source
`routes` when what it reports limits exactly the inference of the key that asks; everything else is for display.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from datetime import datetime
from enum import StrEnum
from typing import Any

from combos.core.config_provider import AuthMode, ProviderConfig
from combos.core.ladder import CHATGPT_BASE_URL
from combos.core.quota import Credits, Snapshot, Window, reset_ms
from combos.core.values import dataclass
from combos.wire.quota_headers import place_windows

type Json = Mapping[str, Any]
type Parse = Callable[[Json, int], Snapshot | None]


class Login(StrEnum):
    """Whose credential the report is about."""

    KEY = "key"
    ACCOUNT = "account"


@dataclass(frozen=True, slots=True)
class Source:
    """One vendor: canonical base addresses, address of the report, its reader, whether it may steer routing."""

    name: str
    label: str
    bases: tuple[str, ...]
    url: str
    read: Parse
    routes: bool
    login: Login = Login.KEY


def source_of(config: ProviderConfig, sources: tuple[Source, ...] | None = None) -> Source | None:
    """The source of a provider's report, by its exact address and the way it signs in; None when it has none."""
    base = config.base_url.rstrip("/")
    login = Login.ACCOUNT if config.auth_mode is AuthMode.OAUTH else Login.KEY
    for source in SOURCES if sources is None else sources:
        if base in source.bases and source.login is login and config.auth_mode in (AuthMode.KEY, AuthMode.OAUTH):
            return source
    return None


# -- readers


def _chatgpt(document: Json, at: int) -> Snapshot | None:
    limits = _object(document.get("rate_limit"))
    windows = []
    for name in ("primary", "secondary", "tertiary"):
        row = _object(limits.get(f"{name}_window"))
        window = _window(name, row.get("used_percent"), row.get("reset_at"))
        if window is not None:
            seconds = _number(row.get("limit_window_seconds"))
            windows.append((window, None if seconds is None else seconds / 60))
    return place_windows(windows, at)


def _anthropic(document: Json, at: int) -> Snapshot | None:
    def window(name: str, label: str) -> Window | None:
        row = _object(document.get(name))
        return _window(label, row.get("utilization"), row.get("resets_at"))

    models = [name for name in document if name.startswith("seven_day_")]
    custom = (window(name, name.removeprefix("seven_day_")) for name in sorted(models))
    return Snapshot(
        at,
        five_hour=window("five_hour", "five-hour"),
        weekly=window("seven_day", "weekly"),
        custom=tuple(one for one in custom if one is not None),
    )


def _openrouter(document: Json, at: int) -> Snapshot | None:
    data = _object(document.get("data"))
    limit, remaining = _number(data.get("limit")), _number(data.get("limit_remaining"))
    if limit is None or limit <= 0 or remaining is None:
        return None  # a key without a cap has no quota
    used = limit - remaining
    return Snapshot(at, credits=Credits(used, limit, remaining, _clamped(used / limit * 100)))


_ZAI_WINDOWS: Mapping[tuple[int | None, int | None], str] = {(3, 5): "five_hour", (6, 1): "weekly"}


def _zai(document: Json, at: int) -> Snapshot | None:
    snapshot = Snapshot(at)
    for row in _rows(_object(document.get("data")).get("limits")):
        if row.get("type") not in ("TOKENS_LIMIT", "CREDIT_LIMIT"):
            continue  # the limit of tool calls says nothing of inference
        slot = _ZAI_WINDOWS.get((_whole(row.get("unit")), _whole(row.get("number"))))
        window = _window(slot or "limit", row.get("percentage"), row.get("nextResetTime"))
        if slot is not None and window is not None:
            snapshot = replace(snapshot, **{slot: window})  # type: ignore[arg-type]
    return snapshot


_MINUTES = {"TIME_UNIT_SECOND": 1 / 60, "TIME_UNIT_MINUTE": 1, "TIME_UNIT_HOUR": 60, "TIME_UNIT_DAY": 1440}


def _kimi(document: Json, at: int) -> Snapshot | None:
    snapshot = Snapshot(at)
    for row in _rows(document.get("limits")):
        span = _object(row.get("window"))
        minutes = (_number(span.get("duration")) or 0) * _MINUTES.get(str(span.get("timeUnit")), 1)
        window = _counted("five-hour" if minutes < 1440 else "weekly", _object(row.get("detail")))
        if window is not None and minutes < 1440:
            snapshot = replace(snapshot, five_hour=window)
        elif window is not None:
            snapshot = replace(snapshot, weekly=window)
    total = _counted("total", _object(document.get("usage")))
    return replace(snapshot, custom=(total,)) if total is not None else snapshot


def _ollama(document: Json, at: int) -> Snapshot | None:
    limits = _object(document.get("limits"))

    def window(name: str, label: str) -> Window | None:
        row = _object(limits.get(name))
        share = _number(row.get("usage"))
        reset = row.get("resets_at") or row.get("reset_at")
        return _window(label, None if share is None else share * 100, reset)

    return Snapshot(
        at,
        five_hour=window("session", "session"),
        weekly=window("weekly", "weekly"),
        monthly=window("monthly", "monthly"),
    )


def _opencode(document: Json, at: int) -> Snapshot | None:
    usage = _object(document.get("usage"))

    def window(name: str) -> Window | None:
        row = _object(usage.get(name))
        return _window(name, row.get("percent"), row.get("resetsAt"))

    return Snapshot(at, five_hour=window("rolling"), weekly=window("weekly"), monthly=window("monthly"))


def _synthetic(document: Json, at: int) -> Snapshot | None:
    def window(name: str, label: str) -> Window | None:
        row = _object(document.get(name))
        used, limit = _number(row.get("requests")), _number(row.get("limit"))
        percent = _number(row.get("percentUsed"))
        if percent is None and used is not None and limit:
            percent = used / limit * 100
        return _window(label, percent, row.get("renewsAt") or row.get("resetsAt"))

    five_hour = window("rollingFiveHourLimit", "five-hour") or window("subscription", "five-hour")
    return Snapshot(at, five_hour=five_hour, weekly=window("weeklyTokenLimit", "weekly"))


def _balance(*path: str) -> Parse:
    """A reader of a balance in USD: money left, of which no share is known."""

    def read(document: Json, at: int) -> Snapshot | None:
        value: Any = document
        for part in path:
            value = (value[0] if value else None) if isinstance(value, list) else value
            value = _object(value).get(part)
        left = _number(value)
        return None if left is None else Snapshot(at, credits=Credits(remaining=left, percent=0.0))

    return read


SOURCES: tuple[Source, ...] = (
    Source(
        "chatgpt",
        "ChatGPT",
        (CHATGPT_BASE_URL,),
        "https://chatgpt.com/backend-api/wham/usage",
        _chatgpt,
        routes=False,
        login=Login.ACCOUNT,
    ),
    Source(
        "anthropic",
        "Claude",
        ("https://api.anthropic.com", "https://api.anthropic.com/v1"),
        "https://api.anthropic.com/api/oauth/usage",
        _anthropic,
        routes=False,
        login=Login.ACCOUNT,
    ),
    Source(
        "openrouter",
        "OpenRouter",
        ("https://openrouter.ai/api/v1",),
        "https://openrouter.ai/api/v1/key",
        _openrouter,
        routes=True,
    ),
    Source(
        "zai",
        "Z.AI",
        ("https://api.z.ai/api/coding/paas/v4", "https://api.z.ai/api/anthropic", "https://api.z.ai"),
        "https://api.z.ai/api/monitor/usage/quota/limit",
        _zai,
        routes=True,
    ),
    Source(
        "bigmodel",
        "BigModel",
        ("https://open.bigmodel.cn/api/coding/paas/v4", "https://open.bigmodel.cn/api/anthropic"),
        "https://open.bigmodel.cn/api/monitor/usage/quota/limit",
        _zai,
        routes=True,
    ),
    Source(
        "kimi-code",
        "Kimi",
        ("https://api.kimi.com/coding/v1", "https://api.kimi.com/coding"),
        "https://api.kimi.com/coding/v1/usages",
        _kimi,
        routes=True,
    ),
    Source(
        "ollama-cloud",
        "Ollama",
        ("https://ollama.com/v1", "https://ollama.com"),
        "https://ollama.com/api/usage",
        _ollama,
        routes=True,
    ),
    Source(
        "opencode-go",
        "OpenCode Go",
        ("https://opencode.ai/zen/go/v1",),
        "https://opencode.ai/zen/go/v1/usage",
        _opencode,
        routes=True,
    ),
    Source(
        "synthetic",
        "Synthetic",
        ("https://api.synthetic.new/v1", "https://api.synthetic.new/openai/v1", "https://api.synthetic.new/anthropic"),
        "https://api.synthetic.new/v2/quotas",
        _synthetic,
        routes=True,
    ),
    Source(
        "deepseek",
        "DeepSeek",
        ("https://api.deepseek.com", "https://api.deepseek.com/v1", "https://api.deepseek.com/anthropic"),
        "https://api.deepseek.com/user/balance",
        _balance("balance_infos", "total_balance"),
        routes=False,
    ),
    Source(
        "moonshot",
        "Moonshot",
        ("https://api.moonshot.ai/v1",),
        "https://api.moonshot.ai/v1/users/me/balance",
        _balance("data", "available_balance"),
        routes=False,
    ),
    Source(
        "venice",
        "Venice",
        ("https://api.venice.ai/api/v1",),
        "https://api.venice.ai/api/v1/billing/balance",
        _balance("balances", "USD"),
        routes=False,
    ),
)
"""Vendors with a report, in the order in which they are looked up."""


def _window(label: str, percent: object, reset: object) -> Window | None:
    number, at = _number(percent), _instant(reset)
    return None if number is None and at is None else Window(label, _clamped(number), at)


def _counted(label: str, row: Json) -> Window | None:
    limit, used, left = (_number(row.get(name)) for name in ("limit", "used", "remaining"))
    if limit is None or limit <= 0:
        return None
    if used is None:
        used = limit - left if left is not None else None
    reset = row.get("resetTime") or row.get("resetAt") or row.get("reset_at")
    return _window(label, None if used is None else used / limit * 100, reset)


def _instant(value: object) -> int | None:
    """A reset as epoch ms: a number, or an ISO date and time with a zone."""
    number = _number(value)
    if number is not None:
        return reset_ms(number)
    try:
        moment = datetime.fromisoformat(value) if isinstance(value, str) else None
    except ValueError:
        return None
    return None if moment is None or moment.tzinfo is None else round(moment.timestamp() * 1000)


def _number(value: object) -> float | None:
    """A finite number, also one that was written as text."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        number = float(value)
    except (ValueError, OverflowError):
        return None
    return number if abs(number) < 10**15 else None


def _whole(value: object) -> int | None:
    number = _number(value)
    return None if number is None else int(number)


def _clamped(percent: float | None) -> float | None:
    return None if percent is None else min(100.0, max(0.0, percent))


def _object(value: object) -> Json:
    return value if isinstance(value, Mapping) else {}


def _rows(value: object) -> Iterator[Json]:
    for row in value if isinstance(value, list) else ():
        if isinstance(row, Mapping):
            yield row
