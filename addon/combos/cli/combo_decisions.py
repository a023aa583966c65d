"""`ocx combo test`, `discover` and `jev-auto`: try the way a combo decides, see who could decide, begin with one."""

import asyncio
import os
from typing import Any

import click

from combos.admin.combo_edits import unknown_combo
from combos.admin.discover_offline import discover_offline
from combos.admin.jev_template import check_targets, save_template, template_of
from combos.cli.files import complete_combos, config_option, existing, json_option, located, store_of
from combos.cli.grammar import Command, Whole
from combos.cli.live import LiveError, find_live
from combos.cli.output import Failed, emit_json, refusals, say, table
from combos.core.config import Config
from combos.core.limits import DECISION_TIMEOUT_MAX_MS, DECISION_TIMEOUT_MIN_MS

_MARGIN_S = 5.0


@click.command("test", cls=Command)
@click.argument("id", required=False, shell_complete=complete_combos)
@click.option("--decision-provider", metavar="ID", help="Decision service; default: that of the combo, else TypeSafe.")
@click.option("--decision-model", metavar="ROUTE", help="Model that decides.")
@click.option(
    "--decision-timeout", type=Whole(DECISION_TIMEOUT_MIN_MS, DECISION_TIMEOUT_MAX_MS), metavar="MS", help="Deadline."
)
@json_option
@config_option
def test_decision(
    id: str | None,
    decision_provider: str | None,
    decision_model: str | None,
    decision_timeout: int | None,
    config: str | None,
    as_json: bool,
) -> None:
    """Make one decision. Exit code 1 when it failed open. May cost a call.

    \b
    ocx combo test jev-auto
    ocx combo test --decision-provider ollama-tev1
    """
    given = (decision_provider, decision_model, decision_timeout)
    with refusals("Try: ocx combo discover"):
        found = existing(config).config()
        body = _body(found, id, *given)
        result = _by_the_proxy(body, config)
        if result is None:
            from combos.admin.decide_once import decide_once  # its HTTP client is slow to load

            result = asyncio.run(decide_once(found, body, os.environ))
    if as_json:
        emit_json(result)
    said = f"{result['backend']}, {result['gate']}, {result['latencyMs']} ms"
    if not result["ok"]:
        raise Failed(f"failed open: {said}")
    say(f"applied: {said}, effort {result['effort']}")


@click.command("discover", cls=Command)
@click.argument("query", default="")
@json_option
@config_option
def discover(query: str, config: str | None, as_json: bool) -> None:
    """List the configured decision services, and models whose name suggests one."""
    with refusals():
        found = discover_offline(existing(config).config(), query)
    if as_json:
        emit_json(found)
        return
    rows = [("service", r["id"], r["url"], r.get("model", r.get("issue", ""))) for r in found["configured"]]
    rows += [("model", r["provider"], r["endpoint"], r["model"]) for r in found["discovered"]]
    table(("Kind", "Provider", "Endpoint", "Model"), rows)
    if not rows:
        say("No decision service is configured. Try: ocx provider add jev")


@click.command("jev-auto", cls=Command)
@click.option("--decision-provider", metavar="ID", help="The row it is made for; default: TypeSafe.")
@click.option("--save", is_flag=True, help="Store it.")
@json_option
@config_option
def template(decision_provider: str | None, save: bool, config: str | None, as_json: bool) -> None:
    """Print the combo jev-auto as it is proposed for this configuration; with --save, store it.

    \b
    ocx combo jev-auto
    ocx combo jev-auto --decision-provider ollama-tev1 --save
    """
    store = store_of(config) if save else existing(config)
    with refusals("Try: ocx combo jev-auto --help", missing="Try: ocx combo discover"):
        row = template_of(store.config(), decision_provider)
        if save:
            row["combo"] = store.edit(lambda document: save_template(document, decision_provider)).result
    with refusals("Try: ocx provider add openai"):
        check_targets(row)
    emit_json(row if as_json else row["combo"], pretty=not as_json)
    if row["missing"]:
        say(f"Not configured here, so left out: {', '.join(row['missing'])}.")
    if save:
        say(f"Saved combo {row['id']}.")
    elif row["existing"] is not None:
        say(f"Combo {row['existing']} has this id or alias already.")


def _body(
    found: Config, id: str | None, provider: str | None, model: str | None, timeout_ms: int | None
) -> dict[str, Any]:
    """The method that is given, else that of the combo."""
    if provider is not None and model is not None:
        raise click.UsageError("--decision-model and --decision-provider exclude each other")
    if id is not None and id not in found.combos:
        raise unknown_combo({"combos": found.combos}, id)
    combo = found.combos[id] if id is not None else None
    if combo is not None and provider is None and model is None:
        provider, model = combo.decision_provider, combo.decision_model
    if combo is not None and timeout_ms is None:
        timeout_ms = combo.decision_timeout_ms
    given = {"comboId": id, "decisionProvider": provider, "decisionModel": model, "decisionTimeoutMs": timeout_ms}
    return {key: value for key, value in given.items() if value is not None}


def _by_the_proxy(body: dict[str, Any], config: str | None) -> dict[str, Any] | None:
    live = find_live(located(config).path, os.environ)
    if live is None:
        if "decisionModel" in body:
            raise Failed("a model decides only in a running proxy\nTry: ocx run")
        return None
    wait_s = body.get("decisionTimeoutMs", DECISION_TIMEOUT_MAX_MS) / 1000 + _MARGIN_S
    try:
        answer: dict[str, Any] = live.call("POST", "/api/combos/decision-test", body, wait_s)
    except LiveError as error:
        raise Failed(str(error)) from None
    return answer
