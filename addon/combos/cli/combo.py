"""`ocx combo`: list, show, set, remove; on the file, no running proxy needed."""

from typing import Any

import click

from combos.admin.combo_edits import ComboPut, merge_combo, put_combo, remove_combo, unknown_combo
from combos.admin.combo_view import combo_row, combo_rows, public_model
from combos.admin.store import Document, Edit, Stored
from combos.cli.combo_decisions import discover, template, test_decision
from combos.cli.combo_flags import changes_of, check_strategy, combo_options, flag_of, targets_of, with_last_resort
from combos.cli.files import complete_combos, config_option, dry_run_option, existing, json_option, store_of, yes_option
from combos.cli.grammar import Group
from combos.cli.output import confirm, emit_json, refusals, say, say_warnings
from combos.core.config_types import near_miss

# Fields that a new list of targets takes back to their default unless they are given again.
_RESET = ("alias", "displayName", "nativeAlias", "defaultEffort", "strategy", "stickyLimit")


@click.group("combo", cls=Group, invoke_without_command=True)
@click.pass_context
def combo(ctx: click.Context) -> None:
    """Combos: one virtual model in front of an ordered list of targets.

    \b
    ocx combo set main --targets anthropic/claude-opus-4-8,openai/gpt-5.6-sol
    ocx combo show main
    """
    if ctx.invoked_subcommand is None:
        ctx.invoke(list_combos, config=None, as_json=False)


@combo.command("list")
@json_option
@config_option
def list_combos(config: str | None, as_json: bool) -> None:
    """List the combos: id and public model."""
    with refusals():
        rows = combo_rows(existing(config).config())
    if as_json:
        emit_json({"combos": rows})
    elif not rows:
        say("No combos configured.")
    else:
        for row in rows:
            click.echo(f"{row['id']}  {row['model']}")


@combo.command("show")
@click.argument("id", shell_complete=complete_combos)
@json_option
@config_option
def show(id: str, config: str | None, as_json: bool) -> None:
    """Print one combo as JSON."""
    with refusals("Try: ocx combo list"):
        found = existing(config).config()
        if id not in found.combos:
            raise unknown_combo({"combos": found.combos}, id)
    emit_json(combo_row(id, found.combos[id]), pretty=not as_json)


@combo.command("set")
@click.argument("id", shell_complete=complete_combos)
@combo_options
@dry_run_option
@json_option
@config_option
def set_combo(id: str, config: str | None, as_json: bool, dry_run: bool, **flags: Any) -> None:
    """Create or change a combo. With --targets it is defined anew; without, only what is given changes.

    \b
    ocx combo set main --targets anthropic/claude-opus-4-8:2,openai/gpt-5.6-sol --strategy round-robin
    ocx combo set main --alias team/main
    """
    store = store_of(config)
    with refusals("Try: ocx combo set --help", missing="Try: ocx combo list"):
        before = store.read()
        old = before.get("combos", {}).get(flags["rename_from"] or id)
        put, is_merge = _put_of(id, flags, before, old)

        def change(document: Document) -> Edit[dict[str, Any]]:
            return (merge_combo if is_merge else put_combo)(document, put)

        stored = store.preview(change) if dry_run else store.edit(change)
    _report(put, old, stored, as_json=as_json, dry_run=dry_run)


@combo.command("remove")
@click.argument("id", shell_complete=complete_combos)
@yes_option
@dry_run_option
@json_option
@config_option
def remove(id: str, config: str | None, yes: bool, dry_run: bool, as_json: bool) -> None:
    """Remove a combo."""
    store = existing(config)
    with refusals("Try: ocx combo list"):
        store.preview(lambda document: remove_combo(document, id))
        if not dry_run:
            confirm(f"Remove combo {id}?", yes=yes)
            store.edit(lambda document: remove_combo(document, id))
    if as_json:
        emit_json({"success": True, "id": id} | ({"dryRun": True} if dry_run else {}))
    say(f"Would remove combo {id}." if dry_run else f"Removed combo {id}.")


combo.add_command(test_decision)
combo.add_command(discover)
combo.add_command(template)

for _alias, _command in (("create", set_combo), ("update", set_combo), ("delete", remove)):
    combo.add_command(_command, _alias)


@click.group("route", cls=Group)
def route() -> None:
    """The same commands under their longer name: ocx route combo …"""


route.add_command(combo)


def _put_of(id: str, flags: dict[str, Any], before: Document, old: dict[str, Any] | None) -> tuple[ComboPut, bool]:
    """What was asked for, and whether it changes a stored definition instead of replacing it."""
    changes, targets, rename_from = changes_of(flags), targets_of(flags), flags["rename_from"]
    clear = frozenset(key for key, value in changes.items() if value is None)
    if rename_from and old is None:
        raise unknown_combo(before, rename_from)
    if targets is None:
        if old is None:
            close = near_miss(id, list(before.get("combos", {})))
            raise click.UsageError(f"--targets is required: there is no combo {id} yet{close}")
        check_strategy(changes, changes.get("strategy") or old.get("strategy", "failover"))
        if flags["last_resort"] is not None:
            changes["targets"] = with_last_resort(old["targets"], flags["last_resort"])
        if "cooldownMs" in clear:
            del changes["cooldownMs"]
        return ComboPut(id, changes, rename_from, clear), True
    check_strategy(changes, changes.get("strategy") or "failover")
    changes["targets"] = with_last_resort(targets, flags["last_resort"])
    given = {key: value for key, value in changes.items() if value is not None or key.startswith("decision")}
    return ComboPut(id, given, rename_from, clear), False


def _report(
    put: ComboPut, old: dict[str, Any] | None, stored: Stored[dict[str, Any]], *, as_json: bool, dry_run: bool
) -> None:
    definition = stored.config.combos[put.id]
    if as_json:
        saved = {"success": True, "id": put.id, "model": public_model(put.id, definition), "combo": stored.result}
        emit_json(saved | ({"dryRun": True} if dry_run else {}))
    else:
        emit_json(combo_row(put.id, definition), pretty=True)
    sent = put.combo if isinstance(put.combo, dict) else {}
    lost = [key for key in _RESET if (old or {}).get(key) not in (None, stored.result.get(key)) and key not in sent]
    for key in lost:
        if key not in put.clear:
            say(f"{key} went back to its default: give {flag_of(key)} again, or leave out --targets to keep it.")
    say_warnings(stored.config, "combos", put.id)
    say(f"Would save combo {put.id}; nothing was written." if dry_run else f"Saved combo {put.id}.")
