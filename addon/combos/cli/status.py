"""`ocx explain`, `health`, `ready`, `state`, `cooldowns`: what is, and what the next request would do."""

import os
import time
from http import HTTPStatus
from typing import Any
from urllib.parse import urlencode

import click

from combos.admin.offline import explain_offline
from combos.cli.files import complete_combos, config_option, existing, json_option, located
from combos.cli.grammar import Command, Group
from combos.cli.live import Live, LiveError, find_live, open_live, url_of
from combos.cli.output import Failed, emit_json, refusals, say, table
from combos.cli.state_text import explain_lines, seconds, state_rows

_POLL_S = 0.2
_NOT_RUNNING = "Try: ocx run"


@click.command("explain", cls=Command)
@click.argument("combo", shell_complete=complete_combos)
@click.option("--offline", is_flag=True, help="From the file alone, although a proxy runs.")
@json_option
@config_option
def explain(combo: str, config: str | None, offline: bool, as_json: bool) -> None:
    """Say what the next request for a combo would do, and why.

    \b
    ocx explain main
    ocx explain team/main --offline --json
    """
    live = None if offline else find_live(located(config).path, os.environ)
    row = None if live is None else _explained(live, combo)
    source = "file" if row is None else "live"
    if row is None:
        with refusals("Try: ocx combo list"):
            row = explain_offline(existing(config).config(), combo, os.environ)
    if as_json:
        emit_json(row | {"source": source})
        return
    for line in explain_lines(row):
        click.echo(line)
    if source == "file":
        say("From the file and this shell's environment; cooldowns are known to a running proxy only.")


@click.command("health", cls=Command)
@json_option
@config_option
def health(config: str | None, as_json: bool) -> None:
    """Say whether the proxy runs. Exit code 1 when it does not."""
    live = _anybody(config)
    body = _ask(live, "GET", "/healthz")
    if as_json:
        emit_json(body)
    else:
        click.echo(
            f"{body['status']}  {live.url}  version {body['version']}  pid {body['pid']}  up {body['uptime']:.0f} s"
        )


@click.command("ready", cls=Command)
@click.option("--wait", is_flag=True, help="Wait until it is.")
@click.option(
    "--timeout", type=click.FloatRange(0, 3600), default=30.0, show_default=True, metavar="S", help="How long."
)
@json_option
@config_option
def ready(config: str | None, wait: bool, timeout: float, as_json: bool) -> None:
    """Say whether requests are served. Exit code 1 when they are not.

    \b
    ocx ready --wait --timeout 10 && codex
    """
    deadline = time.monotonic() + (timeout if wait else 0)
    while True:
        try:
            live = Live(url_of(located(config).path, os.environ), "")
            body = live.call("GET", "/readyz")
            break
        except LiveError as error:
            if time.monotonic() >= deadline:
                raise Failed(f"not ready: {error}\n{_NOT_RUNNING}") from None
        time.sleep(_POLL_S)
    if as_json:
        emit_json(body)
    else:
        fault = "" if body["configValid"] else "is gone" if body["configGone"] else "is not valid"
        note = f"  (the file {fault}; the last good configuration is in force)" if fault else ""
        click.echo(f"ready  {body['combos']} combo{'' if body['combos'] == 1 else 's'}{note}")


@click.command("state", cls=Command)
@click.argument("combo", required=False, shell_complete=complete_combos)
@json_option
@config_option
def state(combo: str | None, config: str | None, as_json: bool) -> None:
    """Show every target of the running proxy: ready or why not, successes, last error."""
    body = _ask(_running(config), "GET", f"/api/combos/state{_query(id=combo)}")
    if as_json:
        emit_json(body)
    else:
        table(("Combo", "Target", "State", "Served", "Last error"), state_rows(body))


@click.group("cooldowns", cls=Group, invoke_without_command=True)
@json_option
@config_option
@click.pass_context
def cooldowns(ctx: click.Context, config: str | None, as_json: bool) -> None:
    """List the running cooldowns, or end them.

    \b
    ocx cooldowns
    ocx cooldowns clear --combo main
    """
    if ctx.invoked_subcommand is not None:
        return
    body = _ask(_running(config), "GET", "/api/combos/state")
    rows = [
        {"combo": combo["id"], "target": target["target"], "until": target["coolingUntil"], **target["cooldown"]}
        for combo in body["combos"]
        for target in combo["targets"]
        if target["cooldown"]
    ]
    if as_json:
        emit_json({"cooldowns": rows})
    elif not rows:
        say("No target is cooling.")
    else:
        table(
            ("Combo", "Target", "Left", "Rule", "Source"),
            [(r["combo"], r["target"], seconds(r["leftMs"]), r["rule"], r["source"]) for r in rows],
        )


@cooldowns.command("clear")
@click.option("--combo", metavar="ID", help="Those of one combo.")
@click.option("--target", metavar="PROVIDER/MODEL", help="Those of one target.")
@json_option
@config_option
def clear(combo: str | None, target: str | None, config: str | None, as_json: bool) -> None:
    """End cooldowns now: all of them, or those of one combo or target."""
    body = _ask(_running(config), "POST", f"/api/combos/cooldowns/clear{_query(id=combo, target=target)}")
    if as_json:
        emit_json(body)
    say(f"{body['cleared']} cooldown{'' if body['cleared'] == 1 else 's'} cleared.")


def _anybody(config: str | None) -> Live:
    """Whoever is there, asked without a token."""
    try:
        return Live(url_of(located(config).path, os.environ), "")
    except LiveError as error:
        raise Failed(f"{error}\n{_NOT_RUNNING}") from None


def _running(config: str | None) -> Live:
    try:
        return open_live(located(config).path, os.environ)
    except LiveError as error:
        raise Failed(f"{error}\n{_NOT_RUNNING}") from None


def _ask(live: Live, method: str, path: str, body: object = None) -> Any:
    try:
        return live.call(method, path, body)
    except LiveError as error:
        raise Failed(str(error) if error.status else f"{error}\n{_NOT_RUNNING}") from None


def _explained(live: Live, combo: str) -> Any:
    """What the proxy says; None for a combo that it does not know, which may have been saved a moment ago."""
    try:
        return live.call("POST", "/api/combos/dry-run", {"model": combo})
    except LiveError as error:
        if error.status == HTTPStatus.NOT_FOUND:
            return None
        raise Failed(str(error)) from None


def _query(**given: str | None) -> str:
    found = {name: value for name, value in given.items() if value}
    return f"?{urlencode(found)}" if found else ""
