"""`ocx provider`: list, add (by preset or by hand), show, remove, test, set the default; on the file."""

import sys
from collections.abc import Callable
from typing import Any

import click

from combos.admin.provider_edits import (
    add_provider,
    patch_provider,
    remove_provider,
    set_default_provider,
    unknown_provider,
)
from combos.admin.provider_view import provider_row
from combos.admin.redact import hinted, redacted
from combos.admin.store import Document, Edit
from combos.cli.files import (
    complete_providers,
    config_option,
    dry_run_option,
    existing,
    json_option,
    store_of,
    yes_option,
)
from combos.cli.grammar import Group
from combos.cli.output import Failed, confirm, emit_json, refusals, say, say_warnings, table
from combos.cli.provider_test import test_provider
from combos.core.config import Adapter, AuthMode, Config, ProviderConfig
from combos.core.config_provider import KeyTransport
from combos.core.config_types import near_miss
from combos.core.names import TYPESAFE_PROVIDER, derived_key_variable
from combos.core.presets import PRESETS, Preset, preset
from combos.core.secrets import variable_of

CLEAR = "-"
_LIST_KEYS = ("name", "adapter", "baseUrl", "authMode", "defaultModel", "isDefault", "models")


@click.group("provider", cls=Group, invoke_without_command=True)
@click.pass_context
def provider(ctx: click.Context) -> None:
    """Providers: where models are, and with which key.

    \b
    ocx provider add openai
    ocx provider add local --adapter openai-chat --base-url http://127.0.0.1:8000/v1 --allow-private-network
    """
    if ctx.invoked_subcommand is None:
        ctx.invoke(list_providers, config=None, as_json=False, as_lines=False)


@provider.command("list")
@json_option
@click.option("--jsonl", "as_lines", is_flag=True, help="One JSON document for each provider.")
@config_option
def list_providers(config: str | None, as_json: bool, as_lines: bool) -> None:
    """List the providers, and the presets that are left."""
    with refusals():
        rows = _rows(existing(config).config())
    if as_lines:
        for row in rows:
            emit_json(row)
    elif as_json:
        emit_json({"configured": rows, "registryCount": len(PRESETS)})
    else:
        table(
            ("Provider", "Adapter", "Base URL", "Login", ""),
            [(r["name"], r["adapter"], r["baseUrl"], r["authMode"], "default" if r["isDefault"] else "") for r in rows],
        )
        left = [row.id for row in PRESETS if row.id not in {r["name"] for r in rows}]
        say(("" if rows else "No providers configured. ") + f"Presets: {', '.join(left)}")


@provider.command("presets")
@json_option
def presets(as_json: bool) -> None:
    """List the presets: what `ocx provider add <preset>` writes."""
    if as_json:
        rows = [{"id": p.id, "adapter": p.adapter.value, "baseUrl": p.base_url, "auth": p.auth} for p in PRESETS]
        emit_json({"presets": [row | {"env": list(p.variables)} for row, p in zip(rows, PRESETS, strict=True)]})
    else:
        table(
            ("Preset", "Adapter", "Base URL", "Login", "Variable"),
            [(p.id, p.adapter.value, p.base_url, p.auth, ", ".join(p.variables)) for p in PRESETS],
        )


_FIELD_OPTIONS: tuple[Callable[..., Any], ...] = (
    click.option("--adapter", type=click.Choice([a.value for a in Adapter]), help="Wire format."),
    click.option("--base-url", metavar="URL", help="Where it is."),
    click.option("--auth-mode", type=click.Choice([m.value for m in AuthMode]), help="Whose login it gets."),
    click.option("--api-key", metavar="KEY", help="The key, or a reference: '${NAME}', keychain:<provider>."),
    click.option("--api-key-stdin", is_flag=True, help="Read the key from standard input."),
    click.option("--api-key-transport", type=click.Choice([t.value for t in KeyTransport]), help="Anthropic only."),
    click.option("--default-model", metavar="ID", help="Model of requests that name none of the provider's."),
    click.option("--model", "models", metavar="ID", multiple=True, help="A model it has; may be repeated."),
    click.option("--allow-private-network", is_flag=True, help="It is on this machine or in a private network."),
)
_ADD_OPTIONS: tuple[Callable[..., Any], ...] = (
    click.option("--preset", "preset_id", metavar="ID", help="Preset to start from; default: the one of this name."),
    *_FIELD_OPTIONS,
    click.option("--text-only", is_flag=True, help="The models given with --model take no images."),
    click.option("--set-default", is_flag=True, help="Bare model ids fall back to it."),
    click.option("--force", is_flag=True, help="Replace a provider of this name."),
)


def _edit_options(command: Callable[..., Any]) -> Callable[..., Any]:
    switch = click.option("--disable/--enable", "disabled", default=None, help="Whether it is asked at all.")
    for option in reversed((*_FIELD_OPTIONS, switch)):
        command = option(command)
    return command


def _add_options(command: Callable[..., Any]) -> Callable[..., Any]:
    for option in reversed(_ADD_OPTIONS):
        command = option(command)
    return command


@provider.command("add")
@click.argument("name")
@_add_options
@dry_run_option
@json_option
@config_option
def add(name: str, config: str | None, as_json: bool, dry_run: bool, **flags: Any) -> None:
    """Add a provider, from a preset or by hand."""
    chosen = _preset_of(name, flags)
    row = _row_of(name, chosen, flags)
    is_default = flags["set_default"]

    def change(document: Document) -> Edit[bool]:
        existed = name in document.get("providers", {})
        edit = add_provider(document, name, row, set_default=is_default, replace=flags["force"])
        return Edit(edit.document, existed)

    store = store_of(config)
    with refusals("Try: ocx provider add --help"):
        stored = store.preview(change) if dry_run else store.edit(change)
    action = "replaced" if stored.result else "added"
    _report_added(name, stored.config, action, chosen, as_json=as_json, dry_run=dry_run)


@provider.command("edit")
@click.argument("name", shell_complete=complete_providers)
@_edit_options
@dry_run_option
@json_option
@config_option
def edit(name: str, config: str | None, as_json: bool, dry_run: bool, **flags: Any) -> None:
    """Change what is given, keep the rest.

    \b
    ocx provider edit openai --disable
    ocx provider edit lab --base-url https://lab.example/v1 --api-key -
    """
    changes = _given(flags, _key_of(flags))
    if flags["disabled"] is not None:
        changes["disabled"] = flags["disabled"]
    changes = {field: None if value == CLEAR else value for field, value in changes.items()}
    if not changes:
        raise click.UsageError("nothing to change was given")
    store = existing(config)
    with refusals("Try: ocx provider edit --help", missing="Try: ocx provider list"):
        run = store.preview if dry_run else store.edit
        stored = run(lambda document: patch_provider(document, name, changes))
    if as_json:
        emit_json({"action": "changed", "provider": name} | ({"dryRun": True} if dry_run else {}))
    else:
        emit_json({"name": name, **redacted(stored.config.providers[name], hinted)}, pretty=True)
    say_warnings(stored.config, "providers", name)
    say(f"{'Would have ' if dry_run else ''}changed provider {name}.".capitalize())


@provider.command("show")
@click.argument("name", shell_complete=complete_providers)
@json_option
@config_option
def show(name: str, config: str | None, as_json: bool) -> None:
    """Print one provider as JSON: keys masked, references as they are."""
    with refusals("Try: ocx provider list"):
        found = existing(config).config()
        if name not in found.providers:
            raise unknown_provider({"providers": found.providers}, name)
    emit_json({"name": name, **redacted(found.providers[name], hinted)}, pretty=not as_json)


@provider.command("remove")
@click.argument("name", shell_complete=complete_providers)
@yes_option
@dry_run_option
@json_option
@config_option
def remove(name: str, config: str | None, yes: bool, dry_run: bool, as_json: bool) -> None:
    """Remove a provider that no combo needs."""
    store = existing(config)
    with refusals("Try: ocx provider list"):
        store.preview(lambda document: remove_provider(document, name))
        if not dry_run:
            confirm(f"Remove provider {name}?", yes=yes)
            store.edit(lambda document: remove_provider(document, name))
    if as_json:
        emit_json({"action": "removed", "provider": name} | ({"dryRun": True} if dry_run else {}))
    say(f"Would remove provider {name}." if dry_run else f"Removed provider {name}.")


@provider.command("set-default")
@click.argument("name", shell_complete=complete_providers)
@dry_run_option
@json_option
@config_option
def set_default(name: str, config: str | None, dry_run: bool, as_json: bool) -> None:
    """Choose the provider that bare model ids fall back to."""
    store = existing(config)
    with refusals("Try: ocx provider list"):
        run = store.preview if dry_run else store.edit
        run(lambda document: set_default_provider(document, name))
    if as_json:
        emit_json({"action": "default", "provider": name} | ({"dryRun": True} if dry_run else {}))
    say(f"{name} {'would be' if dry_run else 'is'} the default provider.")


provider.add_command(test_provider)


def _rows(config: Config) -> list[dict[str, Any]]:
    rows = []
    for name, row in config.providers.items():
        shown = provider_row(name, row, is_default=config.default_provider == name)
        source = "preset" if preset(name) else "custom"
        rows.append({key: shown[key] for key in _LIST_KEYS} | {"source": source})
    return rows


def _preset_of(name: str, flags: dict[str, Any]) -> Preset | None:
    wanted = flags["preset_id"]
    found = preset(wanted or name)
    ids = [row.id for row in PRESETS]
    if wanted and found is None:
        raise click.UsageError(f"there is no preset {wanted}{near_miss(wanted, ids)}")
    missing = [flag for flag, key in (("--adapter", "adapter"), ("--base-url", "base_url")) if flags[key] is None]
    if found is None and missing:
        near = near_miss(name, ids)
        raise click.UsageError(f"{' and '.join(missing)} must be given: there is no preset {name}{near}")
    return found


def _row_of(name: str, chosen: Preset | None, flags: dict[str, Any]) -> dict[str, Any]:
    """The provider object that the flags describe."""
    key = _key_of(flags)
    row = (chosen.document(name, has_key=key is not None) if chosen else {}) | _given(flags, key)
    if flags["text_only"]:
        if not flags["models"]:
            raise click.UsageError("--text-only needs --model")
        row["modelInputModalities"] = {model: ["text"] for model in flags["models"]}
    return row


def _given(flags: dict[str, Any], key: str | None) -> dict[str, Any]:
    """The fields that were given."""
    given = {
        "adapter": flags["adapter"],
        "baseUrl": flags["base_url"],
        "authMode": flags["auth_mode"],
        "apiKey": key,
        "apiKeyTransport": flags["api_key_transport"],
        "allowPrivateNetwork": flags["allow_private_network"] or None,
        "defaultModel": flags["default_model"],
        "models": list(flags["models"]) or None,
    }
    return {field: value for field, value in given.items() if value is not None}


def _key_of(flags: dict[str, Any]) -> str | None:
    if not flags["api_key_stdin"]:
        key: str | None = flags["api_key"]
        return key
    if flags["api_key"] is not None:
        raise click.UsageError("--api-key and --api-key-stdin exclude each other")
    read = sys.stdin.readline().strip()
    if not read:
        raise Failed("there was no key on standard input")
    return read


def _report_added(
    name: str, config: Config, action: str, chosen: Preset | None, *, as_json: bool, dry_run: bool
) -> None:
    row = config.providers[name]
    if as_json:
        shown = {
            "action": action,
            "provider": name,
            "adapter": row.adapter.value,
            "baseUrl": row.base_url,
            "defaultModel": row.default_model,
            "isDefault": config.default_provider == name,
            "source": "preset" if chosen else "custom",
            "needsSync": False,
        }
        emit_json(shown | ({"dryRun": True} if dry_run else {}))
    else:
        emit_json({"name": name, **redacted(row, hinted)}, pretty=True)
    say_warnings(config, "providers", name)
    say(f"{'Would have ' if dry_run else ''}{action} provider {name}.".capitalize())
    variables = _variables(name, row, chosen)
    if variables:
        say(f"Its key is read from {' or '.join(variables)}.")


def _variables(name: str, row: ProviderConfig, chosen: Preset | None) -> tuple[str, ...]:
    """Where the key is looked for, unless it is in the file itself."""
    if row.auth_mode is not AuthMode.KEY or row.api_key_pool:
        return ()
    if row.api_key is not None:
        named = variable_of(row.api_key.get_secret_value())
        return (named,) if named else ()
    if row.adapter is Adapter.JEV_DECISION:  # only TypeSafe's own row looks further than its apiKey
        return chosen.variables if chosen is not None and name == TYPESAFE_PROVIDER else ()
    return (derived_key_variable(name),)
