"""`ocx provider quota`: what vendors report of quotas, as the running proxy knows it."""

import os
from datetime import datetime
from typing import Any
from urllib.parse import urlencode

import click

from combos.cli.files import complete_providers, config_option, json_option, located
from combos.cli.grammar import Command
from combos.cli.live import LiveError, open_live
from combos.cli.output import Failed, emit_json, say, table
from combos.core.config_types import near_miss

_WAIT_S = 12.0  # a refresh asks the vendors, each for 8 s at most
_WINDOWS = (("5 h", "fiveHour"), ("week", "weekly"), ("month", "monthly"))

type Json = dict[str, Any]


@click.command("quota", cls=Command)
@click.argument("name", required=False, shell_complete=complete_providers)
@click.option("--refresh", is_flag=True, help="Ask the vendors now.")
@json_option
@config_option
def quota(name: str | None, config: str | None, refresh: bool, as_json: bool) -> None:
    """Show the quota reports of the running proxy.

    \b
    ocx provider quota
    ocx provider quota openrouter --refresh
    """
    query = urlencode({"refresh": 1}) if refresh else ""
    try:
        live = open_live(located(config).path, os.environ)
        known = [] if name is None else [row["name"] for row in live.call("GET", "/api/providers")]
        if name is not None and name not in known:
            raise Failed(f"unknown provider: {name}{near_miss(name, known)}\nTry: ocx provider list")
        body = live.call("GET", f"/api/provider-quotas?{query}", wait_s=_WAIT_S)
    except LiveError as error:
        raise Failed(f"{error}\nTry: ocx run") from None
    reports = [report for report in body["reports"] if name in (None, report["provider"])]
    if as_json:
        emit_json({**body, "reports": reports})
    elif not reports:
        say("No vendor reports a quota.")
    else:
        table(("Provider", "Account", "State", "Used"), [_row(report) for report in reports])


def _row(report: Json) -> tuple[str, ...]:
    return report["provider"], report.get("account", ""), report["routingQuota"]["state"], ", ".join(_used(report))


def _used(report: Json) -> list[str]:
    known = report["quota"]
    parts = [
        _window(label, known.get(f"{key}Percent"), known.get(f"{key}ResetAt"))
        for label, key in _WINDOWS
        if f"{key}Percent" in known or f"{key}ResetAt" in known
    ]
    parts += [_window(one["label"], one["percent"], one.get("resetAt")) for one in known.get("customWindows", [])]
    money = known.get("creditsUsd", {})
    if "remaining" in money:
        parts.append(f"${money['remaining']:.2f} left")
    return parts


def _window(label: str, percent: float | None, reset_at: int | None) -> str:
    shown = f"{label} {'unknown' if percent is None else f'{percent:.0f} %'}"
    if reset_at is None:
        return shown
    return f"{shown} until {datetime.fromtimestamp(reset_at / 1000).astimezone():%Y-%m-%d %H:%M}"
