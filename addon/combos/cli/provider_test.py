"""`ocx provider test`: the connection test, by the running proxy if there is one, else from here."""

import asyncio
import os
from typing import Any
from urllib.parse import urlencode

import click

from combos.admin.provider_edits import unknown_provider
from combos.cli.files import config_option, existing, json_option, located
from combos.cli.grammar import Command
from combos.cli.live import LiveError, find_live
from combos.cli.output import Failed, emit_json, refusals, say

_TIMEOUT_S = 12.0  # the test itself takes eight seconds at most


@click.command("test", cls=Command)
@click.argument("name")
@click.option("--offline", is_flag=True, help="Test from here, with this shell's environment.")
@json_option
@config_option
def test_provider(name: str, config: str | None, as_json: bool, offline: bool) -> None:
    """Read the provider's model list once. Exit code 1 when that fails."""
    with refusals("Try: ocx provider list"):
        found = existing(config).config()
        if name not in found.providers:
            raise unknown_provider({"providers": found.providers}, name)
    result = None if offline else _by_the_proxy(name, config)
    if result is None:
        from combos.admin.probe_once import probe_once  # its HTTP client takes longer to load than all other commands

        result = asyncio.run(probe_once(found, name, os.environ))
    if as_json:
        emit_json(result)
    _say_result(name, result)


def _by_the_proxy(name: str, config: str | None) -> dict[str, Any] | None:
    live = find_live(located(config).path, os.environ)
    if live is None:
        return None
    try:
        answer: dict[str, Any] = live.call(
            "POST", f"/api/providers/test?{urlencode({'name': name})}", wait_s=_TIMEOUT_S
        )
    except LiveError as error:
        say(f"The running proxy did not test it ({error}); testing from here.")
        return None
    return answer


def _say_result(name: str, result: dict[str, Any]) -> None:
    if result.get("applicable") is False:
        say(f"{name}: there is no model list to read ({result['reason']}).")
    elif result["ok"]:
        say(f"{name}: {result['message']} in {result['latencyMs']} ms.")
    else:
        raise Failed(f"{name}: {result['error']}")
