"""`ocx usage`: what was used, by whom, for how much; from the ledger file alone, with or without a running proxy."""

import sqlite3
import time
from typing import Any

import click

from combos.admin.jev_stats import decision_statistics
from combos.admin.ledger import LEDGER_NAME
from combos.admin.usage_query import Filters, reading
from combos.admin.usage_view import Wanted, usage
from combos.cli.files import complete_combos, complete_providers, config_option, json_option, located
from combos.cli.grammar import Command
from combos.cli.output import Failed, emit_json, say, table
from combos.core.usage_windows import Range, window_of

type Json = dict[str, Any]

UNKNOWN = "unknown"
"""What stands where nobody reported a number; a zero is a zero."""


@click.command("usage", cls=Command)
@click.option(
    "--range", "range_", type=click.Choice([one.value for one in Range]), default=Range.MONTH.value, show_default=True,
    help="Which window; days are local.",
)  # fmt: skip
@click.option("--combo", metavar="ID", shell_complete=complete_combos, help="Of one combo.")
@click.option("--provider", metavar="NAME", shell_complete=complete_providers, help="Of one provider.")
@click.option("--model", metavar="MODEL", help="Of one model.")
@click.option("--jev", is_flag=True, help="Statistics of decisions instead.")
@json_option
@config_option
def usage_command(
    range_: str,
    combo: str | None,
    provider: str | None,
    model: str | None,
    jev: bool,
    config: str | None,
    as_json: bool,
) -> None:
    """Show requests, tokens and costs, per combo and model.

    \b
    ocx usage --range today
    ocx usage --combo main --json
    """
    wanted, now_ms = Range(range_), time.time_ns() // 1_000_000
    window = window_of(wanted, now_ms)
    try:
        with reading(located(config).path.parent / LEDGER_NAME) as ledger:
            if jev:
                body = decision_statistics(ledger, combo, wanted, window, now_ms)
            else:
                asked = Wanted(wanted, window, Filters(combo=combo, provider=provider, model=model), now_ms)
                body = usage(ledger, asked)
    except sqlite3.Error as error:
        raise Failed(f"the usage ledger cannot be read: {error}") from None
    if as_json:
        emit_json(body)
    elif jev:
        _show_decisions(body)
    else:
        _show_usage(body)


def _show_usage(body: Json) -> None:
    summary = body["summary"]
    if not summary["attempts"] and not summary["requests"]:
        say("Nothing is recorded in this window.")
        return
    rows = [(row["combo"] or "direct", *_requests(row), *_tokens(row)) for row in body["combos"]]
    rows.append(("all", *_requests(summary), *_tokens(summary)))
    table(("Combo", "Requests", "Answered", "Hopped", "Input", "Output", "Cost"), rows)
    models = [
        (
            f"{row['provider']}/{row['model']}",
            *(_text(row[name]) for name in ("attempts", "served", "failed")),
            *_tokens(row),
        )
        for row in body["models"]
    ]
    click.echo()
    table(("Model", "Attempts", "Served", "Failed", "Input", "Output", "Cost"), models)
    unmeasured = summary["attempts"] - summary["measuredAttempts"]
    if unmeasured:
        say(f"{unmeasured} of {summary['attempts']} attempts reported no usage: their tokens are unknown, not zero.")
    unpriced = summary["attempts"] - summary["pricedAttempts"]
    if unpriced and summary["pricedAttempts"]:
        say(f"{unpriced} of {summary['attempts']} attempts have no known price: the cost is that of the others.")


def _show_decisions(body: Json) -> None:
    summary = body["summary"]
    if not summary["decisions"]:
        say("No decision is recorded in this window.")
        return
    click.echo(
        f"{summary['decisions']} decisions, {summary['appliedDecisions']} applied,"
        f" {summary['failOpenDecisions']} failed open, {_text(summary['averageLatencyMs'])} ms on average"
    )
    for gate in body["gates"]:
        click.echo(f"  {gate['gate']}: {gate['decisions']}")
    rows = [
        (
            "others" if row["overflow"] else f"{row['provider']}/{row['model']}",
            _text(row["picks"]),
            ", ".join(f"{one['effort'] or 'none'} × {one['picks']}" for one in row["efforts"]),
            _text(row["attempts"]),
            _text(row["inputTokens"] if row["measuredAttempts"] else None),
            _text(row["outputTokens"] if row["measuredAttempts"] else None),
        )
        for row in body["models"]
    ]
    table(("Model", "Picks", "Efforts", "Sends", "Input", "Output"), rows)


def _requests(row: Json) -> tuple[str, ...]:
    if row["requests"] is None:
        return (UNKNOWN, UNKNOWN, UNKNOWN)
    return (_text(row["requests"]), _text(row["outcomes"].get("success", 0)), _text(row["requestsWithFallback"]))


def _tokens(row: Json) -> tuple[str, ...]:
    cost = UNKNOWN if row["costUsd"] is None else f"${row['costUsd']:.4f}"
    return (_text(row["inputTokens"]), _text(row["outputTokens"]), cost)


def _text(number: float | None) -> str:
    return UNKNOWN if number is None else f"{number:,}"
